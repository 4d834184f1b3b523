"""A decoder that draws the next token itself, as one model file for all sizes, and the loop around it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from decoder import BLOCK, CHARACTERS, PLACES, ROWS, Decoder

import graphc as gc
from graphc import nn

Call = Callable[..., Any]  # (tokens, position, temperature, top_k, top_p) to the next token of each row


class Generator(nn.Module):
    """Sampler of tokens from ``position`` on, up to the one after the last token, with random numbers per row. A token
    outside of the ``top_k`` most likely ones, or after a share of ``top_p``, is never drawn."""

    def __init__(self, decoder: Decoder):
        super().__init__()
        self.decoder = decoder

    def forward(
        self, tokens: gc.Tensor, position: int, temperature: gc.Tensor, top_k: gc.Tensor, top_p: gc.Tensor
    ) -> gc.Tensor:
        logits = self.decoder.head(self.decoder.hidden(tokens, position)[:, -1])
        likely, order = logits.sort(-1, descending=True)
        shares = (likely / temperature).softmax(-1)
        before = shares.cumsum(-1) - shares
        allowed = (gc.arange(CHARACTERS) < top_k) & (before < top_p)
        # The least of exponential waiting times, each divided by its share, is drawn as often as the shares say.
        waits = gc.empty_like(shares).exponential_()
        chosen = (shares / waits).masked_fill(~allowed, -1.0).argmax(-1, keepdim=True)
        return order.gather(-1, chosen)


def settings(temperature: float = 1.0, top_k: int = CHARACTERS, top_p: float = 1.0) -> list[gc.Tensor]:
    """Return the settings of the token choice, as tensors without dimensions."""
    return [
        gc.tensor(temperature, dtype=gc.float32),
        gc.tensor(top_k, dtype=gc.int64),
        gc.tensor(top_p, dtype=gc.float32),
    ]


def export(generator: Generator, path: Path) -> None:
    """Write one file for all numbers of rows, tokens per call and positions."""
    rows, count = gc.Dim("rows", 1, ROWS, hint=1), gc.Dim("count", 1, BLOCK, hint=1)
    dims = {"tokens": (rows, count), "position": gc.Dim("position", 0, PLACES - BLOCK)}
    gc.export(generator.eval(), gc.zeros(1, 2, dtype=gc.int64), PLACES // 4, *settings(), path=path, dims=dims)


def generate(model: Call, prompt: np.ndarray, count: int, choice: list[gc.Tensor]) -> tuple[np.ndarray, float, float]:
    """Generate ``count`` tokens after a prompt [rows, length]; return them with the seconds for the prompt and for the
    tokens."""
    start_time, token = time.perf_counter(), gc.zeros(0)
    for position in range(0, prompt.shape[1], BLOCK):
        token = model(gc.tensor(prompt[:, position : position + BLOCK].copy()), position, *choice)
    tokens, first = [token.numpy()], time.perf_counter()
    for position in range(prompt.shape[1], prompt.shape[1] + count - 1):
        token = model(token, position, *choice)
        tokens.append(token.numpy())
    return np.concatenate(tokens, axis=1), first - start_time, time.perf_counter() - first
