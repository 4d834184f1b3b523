"""Values of a graph of whole sequences, as they appear in a stream: one block of samples per tick."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from graphc.base.records import dataclass
from graphc.ir.graph.graph import Node, Value


@dataclass(frozen=True)
class Decay:
    """Weights of earlier samples: ``first * ratio^distance``, one or an array of both for the dimensions before."""

    first: np.ndarray
    ratio: np.ndarray

    def powers(self, start: int, count: int, step: int = 1) -> np.ndarray:
        """Return ``ratio`` to the powers ``start``, ``start + step`` ..., in a new last dimension."""
        return self.ratio[..., None] ** (start + step * np.arange(count))

    def tile(self, count: int) -> np.ndarray:
        """Return the weights [..., count, count] of columns for rows of the same samples; those of later ones are 0."""
        distance = np.subtract.outer(np.arange(count), np.arange(count))
        weights = self.first[..., None, None] * self.ratio[..., None, None] ** np.maximum(distance, 0)
        return np.where(distance >= 0, weights, 0)


@dataclass(frozen=True)
class Factors:
    """Factors whose product is a value of pairs of samples."""

    rows: Signal
    columns: Signal
    attrs: dict[str, bool]
    """Attributes of the product."""
    decay: Decay | None = None
    """Weights that the pairs are multiplied with."""


@dataclass(frozen=True)
class Signal:
    """A value in a stream.

    Tick ``n`` has the samples ``n * block - delay`` to ``(n + 1) * block - delay - 1`` of the sequence along ``axis``.
    Those with a negative number are before its start: they have no meaning, and no later sample may depend on them.
    """

    value: Value
    """The value in the graph."""
    slot: int
    """Index among the tensors of a tick."""
    shape: tuple[int, ...]
    """Shape in a tick."""
    axis: int | None = None
    """Dimension of time; None for a value that is the same in all ticks."""
    block: int = 0
    delay: int = 0
    prefix: np.ndarray | None = field(default=None, compare=False)
    """The first ``-delay`` samples of the sequence, known before the first tick; None unless ``delay`` is negative."""
    least: int = 0
    """The delay in a stream with the smallest ticks."""
    ahead: int = 0
    """Samples at the end of a sequence that no stream can compute when the last input has come: they need more."""
    cause: Node | None = field(default=None, compare=False)
    """The op that looks ahead, if any does."""
    rows: int = 1
    """Number of sequences that follow each other in the dimension of time, which an earlier one was merged with."""
    latest: bool = False
    """Whether the value belongs to the last sample of the tick, without a dimension of time."""
    columns: int | None = None
    """Second dimension of time, of the samples that a row of an attention looks at: the last ones up to its tick."""
    hidden: float | None = None
    """Content of columns that a row must not see: 0, minus infinity, or None where they contain numbers."""
    factors: Factors | None = field(default=None, compare=False)
    """For pairs with all earlier samples: what they are a product of, as long as they are linear in it."""
    positional: bool = False
    """Whether the elements depend on their positions only."""
    constant: np.ndarray | None = field(default=None, compare=False)
    """Its elements, if they are the same in all streams."""

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def alone(self) -> tuple[int, ...]:
        """Shape with the merged sequences in a dimension of their own, before time."""
        if self.axis is None:
            return self.shape
        return (*self.shape[: self.axis], self.rows, self.block, *self.shape[self.axis + 1 :])

    @property
    def moves(self) -> bool:
        """Whether the value depends on time."""
        return self.axis is not None or self.latest

    @property
    def known(self) -> int:
        """Number of samples known before the first tick."""
        return max(0, -self.delay)


def resized(shape: Sequence[Any], axis: int, size: int) -> tuple[int, ...]:
    """Return a shape with another size of one dimension."""
    return (*(int(n) for n in shape[:axis]), size, *(int(n) for n in shape[axis + 1 :]))


def of_axis(axis: int, rank: int, at: slice) -> tuple[slice, ...]:
    """Return an index that selects along one of ``rank`` dimensions."""
    return tuple(at if i == axis else slice(None) for i in range(rank))


def ceil_to(number: int, multiple: int) -> int:
    """Return the smallest multiple that is not below a number."""
    return math.ceil(number / multiple) * multiple
