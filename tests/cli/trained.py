"""A model file that can be trained, and data for it, for the tests of commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import graphc as gc
from graphc import nn
from graphc.nn.functional import cross_entropy
from graphc.tensors.tensor import Tensor


def loss_and_accuracy(scores: Tensor, wanted: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the loss and the accuracy."""
    return cross_entropy(scores, wanted), {"accuracy": (scores.argmax(1) == wanted).float().mean()}


def make_trainable(path: Path, batch: object = None) -> None:
    """A net of three classes with the entries ``infer`` and ``train_step``, and dropout: random numbers count."""
    gc.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    dims = [(gc.Dim("batch", 1, 64),)] * 2 if batch is None else None
    step = gc.compile_step(net, loss_and_accuracy, gc.optim.Adam(net.parameters(), lr=0.02), dims=dims)
    x, y = gc.randn(8, 6), gc.randint(0, 3, (8,))
    infer = gc.Entry(net, x, train=False, dims=[(gc.Dim("batch", 1, 64),)] if batch is None else None)
    gc.export({"infer": infer, "train_step": gc.Entry(step, x, y)}, path=path)


def make_data(path: Path, count: int = 100, seed: int = 1) -> None:
    """Return points, and their classes by the side of a plane."""
    x = np.random.default_rng(seed).standard_normal((count, 6)).astype(np.float32)
    y = (x @ np.random.default_rng(0).standard_normal((6, 3))).argmax(1)
    np.savez(path, x=x, y=y)
