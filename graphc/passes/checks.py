"""Removal of index checks that always hold, proven by integer range analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base import config
from graphc.base.records import dataclass
from graphc.base.sizes.size import always, bounds, is_size
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.op import Bounds, Trait
from graphc.ops.effects.check import NOT_FINITE, holds, limits_of
from graphc.ops.effects.host import FAILED
from graphc.passes.base import PassResult


@dataclass(frozen=True)
class SettleChecks:
    """Remove checks that cannot fail.

    Needs: any valid graph. Does: removes checks of elements provably in range and duplicates of other checks;
    with GRAPHC_CHECK_INDICES=off, all index checks of users' ops. Leaves: checks of values known only at the call, and
    of constants out of range.

        %i = argmax(%x) {axis=1} : i64[8]
        %ok = check_index(%i) {low=0, high=9} : bool[]     ->     %i = argmax(%x) {axis=1} : i64[8]
        %y = gather(%w, %i) {axis=0} : f32[8,4]                   %y = gather(%w, %i) {axis=0} : f32[8,4]
    """

    name: str = "checks"

    def run(self, graph: Graph) -> PassResult:
        """Count removed checks."""
        checks = graph.having(Trait.CHECK)
        if not checks:
            return PassResult(graph, 0)
        removable = _checks_of_users(checks) if not config.read().check_indices else _removable_checks(graph, checks)
        needed = {v.node for v in graph.outputs} | {v.node for n in graph.nodes() for v in n.operands}
        removable -= needed
        return PassResult(_Without(removable).transform(graph) if removable else graph, len(removable))


OWN = FAILED, NOT_FINITE
"""Messages of the checks that compiled code itself relies on; they are always compiled."""


def _checks_of_users(checks: list[Node]) -> set[Node]:
    return {node for node in checks if node.attrs.get("message") not in OWN}


class _Without(Reemitter):
    def __init__(self, removed: set[Node]):
        super().__init__()
        self.removed = removed

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        return (None,) if node in self.removed else self.copy_node(node, operands)


def _removable_checks(graph: Graph, checks: list[Node]) -> set[Node]:
    ranges = integer_ranges(graph)
    removable: set[Node] = set()
    proven: set[Any] = set()
    for node in checks:
        (x,) = node.operands
        limits = limits_of(node.attrs)
        if is_inside(node, ranges) or _is_constant_inside(x.node, *limits) or (x, limits) in proven:
            removable.add(node)
        proven.add((x, limits))
    return removable


def is_inside(check: Node, ranges: Mapping[Value, Bounds]) -> bool:
    """Check whether a check cannot fail."""
    (x,) = check.operands
    low, high = ranges[x]
    least, most, _ = limits_of(check.attrs)
    inside = always("<=", least, low) and always("<=", high, most)
    return inside or always("==", x.type.size, 0)


def _is_constant_inside(node: Node, low: int, high: int, allowed: Sequence[int]) -> bool:
    if node.op is not CONSTANT:
        return False
    # Limits may be sizes known only at run time: use the narrowest interval that they allow.
    return holds(node.attrs["value"], bounds(low)[1], bounds(high)[0], tuple(a for a in allowed if not is_size(a)))


def integer_ranges(graph: Graph) -> dict[Value, Bounds]:
    """Return the smallest and largest possible element of each integer value; bools count as 0 and 1."""
    ranges = {value: _limits(value) for value in graph.inputs}
    for node in graph.nodes():
        for result in node.results:
            if not result.dtype.is_differentiable:
                ranges[result] = _bounds(node, result, ranges)
    return ranges


def _bounds(node: Node, result: Value, operand_ranges: Mapping[Value, Bounds]) -> Bounds:
    """Return the bounds that follow from the operands, or the range of the type where they exceed it."""
    limits = _limits(result)
    if node.op.bounds is None:
        return limits
    ranges = [operand_ranges.get(v, EVERYTHING) for v in node.operands]
    derived = node.op.bounds(ranges, tuple(v.type for v in node.operands), node.attrs)
    if derived is None or not (always("<=", limits[0], derived[0]) and always("<=", derived[1], limits[1])):
        return limits
    return derived


EVERYTHING: Bounds = (-(2**80), 2**80)
"""Bounds of values that are not integers."""


def _limits(value: Value) -> Bounds:
    if value.dtype.kind not in "iu":
        return (0, 1) if value.dtype.kind == "b" else EVERYTHING
    info = np.iinfo(value.dtype.numpy)
    return int(info.min), int(info.max)
