"""Reduction of the sizes in a failing graph, one number at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Value, input_role
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.op import Attrs
from graphc.ir.types import TensorType

_NO_SIZES = frozenset({"axis", "axes", "dim", "dims", "permutation", "perm", "seed", "value"})
"""Attributes whose numbers are not sizes."""
Arguments = Sequence[np.ndarray]


def with_smaller_shapes(
    graph: Graph, arguments: Arguments, fails: Callable[[Graph, Arguments], bool], end: float
) -> tuple[Graph, Arguments]:
    """Return the graph with sizes as small as possible while it ``fails``, with the first elements of its arguments.

    Each size is replaced wherever its number occurs in the type of an input or in the attributes of a node. A
    replacement without valid types, or without the fault, is discarded. Start no new attempt once ``time.monotonic()``
    is past ``end``.
    """
    if graph.dims:
        return graph, arguments
    for old in sorted({n for v in graph.inputs for n in v.shape if n > 1}, reverse=True):
        for new in _smaller(old):
            if time.monotonic() > end:
                return graph, arguments
            smaller = _resized(graph, arguments, old, new)
            if smaller is not None and _still(fails, smaller):
                graph, arguments = smaller
                break
    return graph, arguments


def _smaller(size: int) -> Iterator[int]:
    yield from (n for n in (1, 2, 3, 4, 8, 16) if n < size)
    if size > 32:
        yield size // 2


def _still(fails: Callable[[Graph, Arguments], bool], candidate: tuple[Graph, Arguments]) -> bool:
    try:
        return fails(*candidate)
    # NOTE: meaningless sizes may raise anything; they do not show the fault then.
    except Exception:
        return False


def _resized(graph: Graph, arguments: Arguments, old: int, new: int) -> tuple[Graph, Arguments] | None:
    try:
        resized = _Resizer(old, new).transform(graph)
    # NOTE: a type rule may raise anything where the number was not a size. Discard it then.
    except Exception:
        return None
    return resized, [_first(a, old, new) for a in arguments]


def _first(array: np.ndarray, old: int, new: int) -> np.ndarray:
    return np.array(array[tuple(slice(new) if n == old else slice(None) for n in array.shape)], order="C")


class _Resizer(Reemitter):
    def __init__(self, old: int, new: int):
        super().__init__()
        self.old, self.new = old, new

    def copy_input(self, value: Value) -> Value:
        shape = tuple(self.new if n == self.old else n for n in value.shape)
        return self.target.add_input(TensorType(value.dtype, shape), value.name, *input_role(value))

    def apply(self, node: Any, operands: list[Any]) -> Sequence[Any]:
        attrs: Attrs = {k: v if k in _NO_SIZES else self._replaced(v) for k, v in node.attrs.items()}
        if node.op is CONSTANT:
            attrs = {**attrs, "value": _first(np.asarray(node.attrs["value"]), self.old, self.new)}
            return emit(self.target, CONSTANT, (), attrs, node.location, node.results[0].name)
        return self.copy_node(node, operands, attrs)

    def _replaced(self, value: Any) -> Any:
        if type(value) is int:
            return self.new if value == self.old else value
        if isinstance(value, tuple | list):
            return type(value)([self._replaced(v) for v in value])
        return value
