"""Models that tests make libraries of, each with inputs for several calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import graphc
from graphc import nn
from graphc.nn import functional as F


class Digits(nn.Module):
    """The network of examples/mnist.py: two convolutions and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 16, 3, padding=1)
        self.last = nn.Linear(16 * 49, 10)

    def forward(self, image: Any) -> Any:
        x = F.max_pool2d(F.relu(self.first(image)), 2)
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        return self.last(x.flatten(1))


class Sequences(nn.Module):
    """An LSTM that gives the scores of its last step, and its state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.last = nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        steps, (h, _) = self.lstm(x)
        return self.last(steps[:, -1]), h


class Decoder(nn.Module):
    """One step of attention over the keys and values of the steps before, which it keeps."""

    def __init__(self, tokens: int = 40, width: int = 16, steps: int = 24):
        super().__init__()
        self.steps = steps
        self.embedding = nn.Embedding(tokens, width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.last = nn.Linear(width, tokens)
        self.register_buffer("keys", graphc.zeros(1, steps, width))
        self.register_buffer("values", graphc.zeros(1, steps, width))
        self.register_buffer("count", graphc.zeros(1, dtype=graphc.int64))

    def forward(self, token: Any) -> Any:
        x, places = self.embedding(token), graphc.arange(self.steps)
        here = (places == self.count).reshape(1, self.steps, 1)
        self.keys.copy_(graphc.where(here, self.key(x), self.keys))
        self.values.copy_(graphc.where(here, self.value(x), self.values))
        later = (places > self.count).reshape(1, 1, self.steps)
        scores = (self.query(x) @ self.keys.transpose(1, 2)).masked_fill(later, -1e9)
        self.count.add_(1)
        return self.last(F.softmax(scores, -1) @ self.values)


class Bag(nn.Module):
    """Sums of rows that indices choose."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 8)

    def forward(self, index: Any) -> Any:
        return self.embedding(index).sum(1)


def policy() -> nn.Module:
    """Three linear layers, as policies of robots have."""
    return nn.Sequential(nn.Linear(17, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 6))


@dataclass(frozen=True)
class Net:
    """A model, and inputs of calls one after the other."""

    make: Callable[[], nn.Module]
    calls: Sequence[tuple[np.ndarray, ...]]
    dims: Any = None

    def model(self) -> nn.Module:
        """The model, the same each time, for evaluation."""
        graphc.manual_seed(5)
        return self.make().eval()


def _numbers(*shapes: tuple[int, ...]) -> list[tuple[np.ndarray, ...]]:
    generator = np.random.default_rng(len(shapes))
    return [(generator.standard_normal(shape).astype(np.float32),) for shape in shapes]


def _indices(below: int, *shapes: tuple[int, ...]) -> list[tuple[np.ndarray, ...]]:
    generator = np.random.default_rng(below)
    return [(generator.integers(0, below, shape),) for shape in shapes]


def _dims() -> Any:
    return [(graphc.Dim("batch", max=64), graphc.Dim("time", max=500))]


NETS = {
    "policy": Net(policy, _numbers((1, 17), (1, 17))),
    "digits": Net(Digits, _numbers((1, 1, 28, 28), (1, 1, 28, 28))),
    "lstm": Net(Sequences, _numbers((2, 12, 8))),
    "sizes": Net(Sequences, _numbers((2, 12, 8), (1, 1, 8), (64, 3, 8), (3, 200, 8)), _dims()),
    "decoder": Net(Decoder, _indices(40, (1, 1), (1, 1), (1, 1), (1, 1))),
    "wide": Net(lambda: nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)), _numbers((256, 512))),
    "bag": Net(Bag, _indices(50, (2, 4), (2, 4))),
}
