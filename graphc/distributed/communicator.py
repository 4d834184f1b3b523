"""What a group of processes is asked for: collectives on arrays of the host, and one process alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Protocol

import numpy as np

from graphc.base.dtypes import bfloat16, float16, narrow, widen

OPS = ("sum", "prod", "min", "max")
"""What reductions combine elements by."""


class Communicator(Protocol):
    """Collectives of ``size`` processes, of which this one has number ``rank``. All of them call the same ones in the
    same order. Arrays are dense, of the same shape and type on all; those of complex numbers or of bf16 and f16 are
    those of numpy. ``result`` of a reduction may be ``source``."""

    name: str
    rank: int
    size: int
    purpose: str
    """What the next collectives are for, which messages say; may be empty."""

    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """``result`` becomes the reduction of all sources, with the same bits on all processes."""
        ...

    def reduce_scatter(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """``result`` becomes part ``rank`` of the reduction of the sources, cut along the first dimension."""
        ...

    def all_gather(self, source: np.ndarray, result: np.ndarray) -> None:
        """``result`` becomes the sources one behind the other, along the first dimension."""
        ...

    def broadcast(self, array: np.ndarray, root: int) -> None:
        """``array`` becomes that of process ``root``."""
        ...

    def all_to_all(self, source: np.ndarray, result: np.ndarray) -> None:
        """Part i of ``source`` along the first dimension goes to process i; ``result`` becomes what came, by sender."""
        ...

    def barrier(self) -> None:
        """Returns when all have called it."""
        ...

    def gather_objects(self, value: Any) -> list[Any]:
        """The values of all processes, by rank; they are pickled."""
        ...

    def duplicate(self) -> Communicator:
        """The same processes with messages of their own, for another thread. All call it."""
        ...

    def abort(self, message: str) -> None:
        """Ends all processes at once, with exit status 1; the message is on stderr."""
        ...


def in_parts(array: np.ndarray, size: int) -> list[np.ndarray]:
    """Views of the ``size`` equal parts along the first dimension."""
    length = array.shape[0] // size
    return [array[i * length : (i + 1) * length] for i in range(size)]


class Alone:
    """One process: all collectives are copies."""

    name = "local"
    rank, size = 0, 1
    purpose = ""

    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """See Communicator."""
        if result is not source:
            np.copyto(result, source)

    def reduce_scatter(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """See Communicator."""
        self.all_reduce(source, result, op)

    def all_gather(self, source: np.ndarray, result: np.ndarray) -> None:
        """See Communicator."""
        np.copyto(result, source.reshape(result.shape))

    def broadcast(self, array: np.ndarray, root: int) -> None:
        """See Communicator."""

    def all_to_all(self, source: np.ndarray, result: np.ndarray) -> None:
        """See Communicator."""
        np.copyto(result, source)

    def barrier(self) -> None:
        """See Communicator."""

    def gather_objects(self, value: Any) -> list[Any]:
        """See Communicator."""
        return [value]

    def duplicate(self) -> Alone:
        """See Communicator."""
        return self

    def abort(self, message: str) -> None:
        """See Communicator."""
        raise SystemExit(message)


_FOLDS: dict[str, Callable[..., Any]] = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


def folded(arrays: Sequence[np.ndarray], op: str) -> np.ndarray:
    """The reduction of arrays, in their order; of f16 and bf16 computed in f32 and rounded once."""
    first = arrays[0]
    if first.dtype not in (float16.numpy, bfloat16.numpy):
        return reduce(_FOLDS[op], arrays)
    return narrow(reduce(_FOLDS[op], map(widen, arrays)), bfloat16 if first.dtype == bfloat16.numpy else float16)
