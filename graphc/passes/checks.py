"""Checks of indices: those that always hold are left out, for the ranges of integers follow from how they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphc.base import config
from graphc.base.sizes.size import always, bounds, is_size
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.op import Bounds, Trait
from graphc.ops.check import NOT_FINITE, holds, limits_of
from graphc.ops.host import FAILED
from graphc.passes.base import PassResult


@dataclass(frozen=True)
class SettleChecks:
    """Leaves out checks that cannot fail.

    Needs: any valid graph. Does: removes checks of elements that are known to be in range, a check that another one
    makes too, and with GRAPHC_CHECK_INDICES=off all that users ask for. Leaves: checks of what is known at the call
    only, and of constants that are out of range.

        %i = argmax(%x) {axis=1} : i64[8]
        %ok = check_index(%i) {low=0, high=9} : bool[]     ->     %i = argmax(%x) {axis=1} : i64[8]
        %y = gather(%w, %i) {axis=0} : f32[8,4]                   %y = gather(%w, %i) {axis=0} : f32[8,4]
    """

    name: str = "checks"

    def run(self, graph: Graph) -> PassResult:
        """Counts the checks that were left out."""
        checks = [n for n in graph.nodes() if n.op.has(Trait.CHECK)]
        if not checks:
            return PassResult(graph, 0)
        settled = _of_users(checks) if not config.read().check_indices else _settled(graph, checks)
        kept = {v.node for v in graph.outputs} | {v.node for n in graph.nodes() for v in n.operands}
        settled -= kept
        return PassResult(_Without(settled).transform(graph) if settled else graph, len(settled))


OWN = FAILED, NOT_FINITE
"""Messages of checks that are how compiled code works."""


def _of_users(checks: list[Node]) -> set[Node]:
    return {node for node in checks if node.attrs.get("message") not in OWN}


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
        limits = limits_of(node.attrs)
        if is_inside(node, ranges) or _is_constant_inside(x.node, *limits) or (x, limits) in known:
            found.add(node)
        known.add((x, limits))
    return found


def is_inside(check: Node, ranges: Mapping[Value, Bounds]) -> bool:
    """Whether a check cannot fail."""
    (x,) = check.operands
    low, high = ranges[x]
    least, most, _ = limits_of(check.attrs)
    inside = always("<=", least, low) and always("<=", high, most)
    return inside or always("==", x.type.size, 0)


def _is_constant_inside(node: Node, low: int, high: int, allowed: Sequence[int]) -> bool:
    if node.op is not CONSTANT:
        return False
    # Of limits that are sizes known at run time those count that leave the least between them.
    return holds(node.attrs["value"], bounds(low)[1], bounds(high)[0], tuple(a for a in allowed if not is_size(a)))


def integer_ranges(graph: Graph) -> dict[Value, Bounds]:
    """The smallest and largest element that each integer value can have; bools count as 0 and 1."""
    found = {value: _limits(value) for value in graph.inputs}
    for node in graph.nodes():
        for result in node.results:
            if not result.dtype.is_differentiable:
                found[result] = _bounds(node, result, found)
    return found


def _bounds(node: Node, result: Value, known: Mapping[Value, Bounds]) -> Bounds:
    """What follows from the operands, or all of the type where that is not inside of it."""
    limits = _limits(result)
    if node.op.bounds is None:
        return limits
    ranges = [known.get(v, EVERYTHING) for v in node.operands]
    found = node.op.bounds(ranges, tuple(v.type for v in node.operands), node.attrs)
    if found is None or not (always("<=", limits[0], found[0]) and always("<=", found[1], limits[1])):
        return limits
    return found


EVERYTHING: Bounds = (-(2**80), 2**80)
"""Of elements that are no integers."""


def _limits(value: Value) -> Bounds:
    if value.dtype.kind not in "iu":
        return (0, 1) if value.dtype.kind == "b" else EVERYTHING
    info = np.iinfo(value.dtype.numpy)
    return int(info.min), int(info.max)
