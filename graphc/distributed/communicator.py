"""Communicator protocol: collectives on host arrays; and its implementation for a single process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Protocol

import numpy as np

from graphc.base.dtypes import bfloat16, float16, narrow, widen

OPS = ("sum", "prod", "min", "max")
"""Reductions of a communicator."""


class Communicator(Protocol):
    """Collectives of ``size`` processes, of which this one is ``rank``.

    All processes call the same collectives in the same order. Arrays are dense, with the same shape and type on all of
    them, in numpy's layout for complex numbers, bf16 and f16. ``result`` of a reduction may be ``source``.
    """

    name: str
    rank: int
    size: int
    purpose: str
    """Purpose of the next collectives, for messages; may be empty."""

    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """Write the reduction of all sources to ``result``, with the same bits on all processes."""
        ...

    def reduce_scatter(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """Write part ``rank`` of the reduction of all sources, cut along the first dimension, to ``result``."""
        ...

    def all_gather(self, source: np.ndarray, result: np.ndarray) -> None:
        """Write the sources, concatenated along the first dimension, to ``result``."""
        ...

    def broadcast(self, array: np.ndarray, root: int) -> None:
        """Overwrite ``array`` with the array of rank ``root``."""
        ...

    def all_to_all(self, source: np.ndarray, result: np.ndarray) -> None:
        """Send part i of ``source`` along the first dimension to rank i; write the received parts to ``result`` by
        sender."""
        ...

    def barrier(self) -> None:
        """Return when all processes have called it."""
        ...

    def gather_objects(self, value: Any) -> list[Any]:
        """Return the pickled values of all processes, by rank."""
        ...

    def duplicate(self) -> Communicator:
        """Return a communicator of the same processes with separate messages, for another thread. All must call it."""
        ...

    def abort(self, message: str) -> None:
        """Print the message on stderr and end all processes at once, with exit status 1."""
        ...


def in_parts(array: np.ndarray, size: int) -> list[np.ndarray]:
    """Return views of ``size`` equal parts along the first dimension."""
    length = array.shape[0] // size
    return [array[i * length : (i + 1) * length] for i in range(size)]


class Alone:
    """Communicator of a single process: every collective is a copy."""

    name = "local"
    rank, size = 0, 1
    purpose = ""

    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        if result is not source:
            np.copyto(result, source)

    def reduce_scatter(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        self.all_reduce(source, result, op)

    def all_gather(self, source: np.ndarray, result: np.ndarray) -> None:
        np.copyto(result, source.reshape(result.shape))

    def broadcast(self, array: np.ndarray, root: int) -> None:
        """Do nothing, since this process is the root."""

    def all_to_all(self, source: np.ndarray, result: np.ndarray) -> None:
        np.copyto(result, source)

    def barrier(self) -> None:
        """Do nothing, since there is no other process."""

    def gather_objects(self, value: Any) -> list[Any]:
        return [value]

    def duplicate(self) -> Alone:
        return self

    def abort(self, message: str) -> None:
        raise SystemExit(message)


_REDUCTIONS: dict[str, Callable[..., Any]] = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


def reduce_arrays(arrays: Sequence[np.ndarray], op: str) -> np.ndarray:
    """Reduce arrays in their order; f16 and bf16 are reduced in f32 and rounded once."""
    first = arrays[0]
    if first.dtype not in (float16.numpy, bfloat16.numpy):
        return reduce(_REDUCTIONS[op], arrays)
    return narrow(reduce(_REDUCTIONS[op], map(widen, arrays)), bfloat16 if first.dtype == bfloat16.numpy else float16)
