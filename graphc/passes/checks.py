"""Checks of indices: those that always hold are left out, for the ranges of integers follow from how they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphc.base import config
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.interpret import Reemitter
from graphc.ops.check import check_index, holds
from graphc.passes.base import PassResult

Range = tuple[int, int]


@dataclass(frozen=True)
class SettleChecks:
    """Leaves out checks that cannot fail.

    Needs: any valid graph. Does: removes checks of elements that are known to be in range, a check that another one
    makes too, and with GRAPHC_CHECK_INDICES=off all. Leaves: checks of what is known at the call only, and of constants
    that are out of range.

        %i = argmax(%x) {axis=1} : i64[8]
        %ok = check_index(%i) {low=0, high=9} : bool[]     ->     %i = argmax(%x) {axis=1} : i64[8]
        %y = gather(%w, %i) {axis=0} : f32[8,4]                   %y = gather(%w, %i) {axis=0} : f32[8,4]
    """

    name: str = "checks"

    def run(self, graph: Graph) -> PassResult:
        """Counts the checks that were left out."""
        checks = [n for n in graph.nodes() if n.op is check_index.op]
        if not checks:
            return PassResult(graph, 0)
        settled = set(checks) if not config.read().check_indices else _settled(graph, checks)
        kept = {v.node for v in graph.outputs} | {v.node for n in graph.nodes() for v in n.operands}
        settled -= kept
        return PassResult(_Without(settled).transform(graph) if settled else graph, len(settled))


class _Without(Reemitter):
    def __init__(self, left_out: set[Node]):
        super().__init__()
        self.left_out = left_out

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        return (None,) if node in self.left_out else self.copy_node(node, operands)


def _settled(graph: Graph, checks: list[Node]) -> set[Node]:
    ranges = integer_ranges(graph)
    found: set[Node] = set()
    known: set[Any] = set()
    for node in checks:
        (x,) = node.operands
        limits = tuple(node.attrs[name] for name in ("low", "high", "allowed"))
        fixed = x.node.op is CONSTANT and holds(x.node.attrs["value"], *limits)
        if is_inside(node, ranges) or fixed or (x, limits) in known:
            found.add(node)
        known.add((x, limits))
    return found


def is_inside(check: Node, ranges: Mapping[Value, Range]) -> bool:
    """Whether a check cannot fail."""
    (x,) = check.operands
    low, high = ranges[x]
    return not x.type.size or (check.attrs["low"] <= low and high <= check.attrs["high"])


def integer_ranges(graph: Graph) -> dict[Value, Range]:
    """The smallest and largest element that each integer value can have; bools count as 0 and 1."""
    found: dict[Value, Range] = {}
    for value in graph.inputs:
        found[value] = _limits(value)
    for node in graph.nodes():
        for result in node.results:
            if result.dtype.kind == "f":
                continue
            limits, rule = _limits(result), _RULES.get(node.op.name)
            low, high = limits if rule is None else rule(node, [found.get(v, _EVERYTHING) for v in node.operands])
            found[result] = (low, high) if limits[0] <= low and high <= limits[1] else limits
    return found


_EVERYTHING = (-(2**80), 2**80)


def _limits(value: Value) -> Range:
    if value.dtype.kind not in "iu":
        return (0, 1) if value.dtype.kind == "b" else _EVERYTHING
    info = np.iinfo(value.dtype.numpy)
    return int(info.min), int(info.max)


def _union(node: Node, ranges: Sequence[Range]) -> Range:
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def _same(node: Node, ranges: Sequence[Range]) -> Range:
    return ranges[0]


def _constant(node: Node, ranges: Sequence[Range]) -> Range:
    array = node.attrs["value"]
    return (int(array.min()), int(array.max())) if array.size and array.dtype.kind in "iub" else _EVERYTHING


def _pad(node: Node, ranges: Sequence[Range]) -> Range:
    fill = int(node.attrs["value"])
    return min(ranges[0][0], fill), max(ranges[0][1], fill)


def _positions(node: Node, ranges: Sequence[Range]) -> Range:
    """Of a place along ``axis`` of the operand."""
    return 0, max(0, node.operands[0].shape[node.attrs["axis"]] - 1)


def _product(node: Node, ranges: Sequence[Range]) -> Range:
    products = [a * b for a in ranges[0] for b in ranges[1]]
    return min(products), max(products)


def _mod(node: Node, ranges: Sequence[Range]) -> Range:
    low, high = ranges[1]
    return (0, high - 1) if low > 0 else _EVERYTHING


def _clamp(node: Node, ranges: Sequence[Range]) -> Range:
    x, low, high = ranges
    return min(max(x[0], low[0]), high[0]), min(max(x[1], low[1]), high[1])


_RULES: dict[str, Callable[[Node, Sequence[Range]], Range]] = {
    "constant": _constant,
    "iota": lambda node, ranges: (0, max(0, node.attrs["shape"][node.attrs["axis"]] - 1)),
    "pad": _pad,
    "concat": _union,
    "where": lambda node, ranges: _union(node, ranges[1:]),
    "gather": _same,
    "scatter": lambda node, ranges: _union(node, (ranges[0], ranges[2])),
    "cast": _same,
    "add": lambda node, r: (r[0][0] + r[1][0], r[0][1] + r[1][1]),
    "sub": lambda node, r: (r[0][0] - r[1][1], r[0][1] - r[1][0]),
    "mul": _product,
    "mod": _mod,
    "neg": lambda node, r: (-r[0][1], -r[0][0]),
    "minimum": lambda node, r: (min(r[0][0], r[1][0]), min(r[0][1], r[1][1])),
    "maximum": lambda node, r: (max(r[0][0], r[1][0]), max(r[0][1], r[1][1])),
    "clamp": _clamp,
    "max": _same,
    "min": _same,
    "argmax": _positions,
    "argmin": _positions,
    "rank": _positions,
    **dict.fromkeys(("reshape", "transpose", "broadcast_to", "slice", "flip", "as_strided", "stop_gradient"), _same),
}
"""Ranges that follow from those of the operands; an operation that is not here gives all of its type."""
