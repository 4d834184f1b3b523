"""Native programs on tensors that each call passes by address: norms, and changes in place, without copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from graphc.base.dtypes import DType, dtype_of
from graphc.calls.bound_program import build
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops.define import as_type
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects.state import state_write
from graphc.runtime.arena import address_of, addresses_of

Type = tuple[DType, tuple[int, ...]]
_DENSE = 0x501
"""C-contiguous, aligned and writeable, in ``ndarray.flags.num``."""


def addresses(tensors: Sequence[Any]) -> list[int] | None:
    """Return the addresses of dense, writeable host tensors that share no memory; None for others."""
    arrays = [t._data for t in tensors]
    for tensor, data in zip(tensors, arrays, strict=True):
        if data.__class__ is not np.ndarray or tensor._view is not None or data.flags.num & _DENSE != _DENSE:
            return None
    starts = addresses_of(arrays)
    return starts if _are_apart([(start, start + a.nbytes) for start, a in zip(starts, arrays, strict=True)]) else None


def can_be_written(arrays: Sequence[np.ndarray]) -> bool:
    """Return whether all arrays are writeable and share no memory."""
    return all([a.flags.writeable for a in arrays]) and _are_apart([byte_bounds(a) for a in arrays if a.size])


def _are_apart(spans: list[tuple[int, int]]) -> bool:
    end = 0
    for start, stop in sorted(spans):
        if start < end:
            return False
        end = stop
    return True


class InPlace:
    """An in-place change of each of some tensors by a number."""

    def __init__(self, name: str, types: Sequence[Type], number: DType, change: Callable[[Any, Any], Any]):
        """``change`` computes a tensor's new content from the old one and the number."""
        graph = Graph(name)
        factor = graph.add_input(TensorType(number), "number")
        paths = [str(i) for i in range(len(types))]
        with use(GraphDispatcher(graph)):
            for path, (dtype, shape) in zip(paths, types, strict=True):
                tensor = graph.add_input(TensorType(dtype, shape), f"tensor.{path}", "state", path)
                changed = as_type(change(tensor, factor), dtype)
                emit(graph, state_write.op, (tensor, changed), {}, name=f"tensor.{path}.next")
        graph.set_outputs([])
        self._program = build(graph)
        self._program.give_at(paths)
        self.nbytes = self._program.nbytes
        self._dtype = number.numpy

    def run(self, tensors: Sequence[Any], pointers: Sequence[int], number: Any) -> None:
        """Change tensors at these addresses, and count a write to each."""
        scalar = np.array(number, self._dtype)
        program = self._program
        arrays = [scalar, *[t._data for t in tensors]]
        program.run_at([address_of(scalar), *pointers], program.sizes.fixed, (), lambda: arrays)
        for tensor in tensors:
            if tensor._counter is not None:
                tensor._counter[0] += 1


class Norm:
    """A norm over all elements of some tensors."""

    def __init__(self, name: str, types: Sequence[Type], measure: Callable[[Sequence[Any]], Any]):
        graph = Graph(name)
        with use(GraphDispatcher(graph)):
            tensors = [graph.add_input(TensorType(d, s), f"tensor.{i}") for i, (d, s) in enumerate(types)]
            graph.set_outputs([measure(tensors)])
        self._program = build(graph)
        self.nbytes = self._program.nbytes
        self._dtype = dtype_of(graph.outputs[0].dtype.name)

    def run(self, tensors: Sequence[Any], pointers: Sequence[int]) -> np.ndarray:
        """Return the norm of tensors at these addresses."""
        result = np.empty((), self._dtype.numpy)
        program = self._program
        program.run_at([*pointers, address_of(result)], program.sizes.fixed, (), lambda: [t._data for t in tensors])
        return result
