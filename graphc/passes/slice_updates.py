"""Slice assignment: rewrite assigned slices of a state as in-place updates, which write only the slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from graphc.base.records import dataclass
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.interpret import copy
from graphc.ir.op import Trait
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement import shape
from graphc.ops.movement.slice_update import update_slice
from graphc.ops.pointwise import elementwise
from graphc.passes.base import PassResult
from graphc.passes.dce import DeadCodeElimination
from graphc.passes.lifted_updates import SliceRegion, content_before, lift_updates, tiled


@dataclass(frozen=True)
class UpdateSlices:
    """Turn the assignment of a slice, which selects by a mask of the entire state, into an update of a state.

    Needs: a graph that is not differentiated any more. Does: where the value written to a state, or carried from
    step to step of a scan, is its content with slices replaced, makes each an ``update_slice``. An update of an
    assigned slice becomes an update of the state; consecutive slices that cover the state are concatenated. Leaves:
    all other assignments, which fuse with their readers.

        %p = pad(%u) {low=[2], high=[1]} : f32[4]
        %n = where(%mask, %p, %s) : f32[4]             ->   %n = update_slice(%s, %u) {starts=[2], steps=[1]} : f32[4]
        %w = state_write(%s, %n) : f32[4]                   %w = state_write(%s, %n) : f32[4]
    """

    name: str = "update-slices"

    def run(self, graph: Graph) -> PassResult:
        """Count rewritten assignments and updates, those in steps included."""
        return _run(graph, 0)


def _run(graph: Graph, carries: int) -> PassResult:
    """Run the pass on a graph, or on the step of a scan with that many carries."""
    steps = 0
    for node in graph.having(Trait.LOOP):
        inner = _run(copy(node.attrs["body"]), node.attrs["carries"])
        if inner.changed:
            node.attrs = {**node.attrs, "body": inner.graph}
            steps += inner.changed
    rewritten = sum(_update(graph, written) for written in _written(graph, carries))
    return PassResult(DeadCodeElimination().run(graph).graph if rewritten else graph, steps + rewritten)


class _Written(NamedTuple):
    """A use of a graph's value as the next content of a state: an operand of a node, or an output."""

    state: Value
    node: Node | None
    number: int = 1

    def value(self, graph: Graph) -> Value:
        """Return the next content."""
        return graph.outputs[self.number] if self.node is None else self.node.operands[self.number]


def _written(graph: Graph, carries: int) -> list[_Written]:
    """Return the writes to states and, in the step of a scan, the next values of carries."""
    states = [_Written(n.operands[0], n) for n in graph.having(Trait.STATE_WRITE)]
    return states + [_Written(graph.inputs[i], None, i) for i in range(carries)]


def _update(graph: Graph, written: _Written) -> int:
    """Rewrite the assignments between a state and its next content; return the number of rewritten nodes."""
    assignments = _assignments(written.value(graph), lambda v: v is written.state)
    if not assignments and (last := _assignment(written.value(graph))) is not None:
        return _join(graph, last)
    for assignment in assignments:
        node = assignment.result.node
        with use(GraphDispatcher(graph, node.location)):
            new = update_slice(assignment.old, assignment.new, **assignment.region.attrs)
        graph.replace_uses(assignment.result, new)
    return len(assignments) + lift_updates(graph, written.state, written.value(graph))


def _join(graph: Graph, assignment: _Assignment) -> int:
    """Make an assigned slice a segment of a concatenation, as in a rolling window."""
    with use(GraphDispatcher(graph, assignment.result.node.location)):
        new = tiled(assignment.old, assignment.new, assignment.region)
    return 0 if new is None else graph.replace_uses(assignment.result, new)


class _Assignment(NamedTuple):
    """A value that equals ``old`` except for ``new`` in ``region``."""

    result: Value
    new: Value
    region: SliceRegion

    @property
    def old(self) -> Value:
        """Content outside of the assigned slice."""
        return self.result.node.operands[2]


def _assignments(value: Value, ends: Callable[[Value], bool]) -> list[_Assignment]:
    """List the assignments that turn a value accepted by ``ends`` into ``value``, nested ones included; empty where
    other ops do it."""
    assignments: list[_Assignment] = []
    current: Value | None = value
    while current is not None and not ends(current):
        assignment = _assignment(current)
        if assignment is None:
            current = content_before(current)
            continue
        assignments.append(assignment)
        assignments += _assignments(assignment.new, lambda v, a=assignment: a.region.is_slice(v, a.old))
        current = assignment.old
    return [] if current is None else assignments


def _assignment(value: Value) -> _Assignment | None:
    node = value.node
    if node.op is not elementwise.where.op:
        return None
    mask, padded, old = node.operands
    if padded.node.op is not shape.pad.op or not mask.shape == padded.shape == old.shape == value.shape:
        return None
    operand, attrs = padded.node.operands[0], padded.node.attrs
    region = SliceRegion(attrs["low"], tuple(gap + 1 for gap in attrs["interior"]), operand.shape)
    covered = (
        region.inside(value.shape) and not region.covers_all(value.shape) and _covers(mask.node, padded.node, region)
    )
    return _Assignment(value, operand, region) if covered else None


def _covers(mask: Node, padded: Node, region: SliceRegion) -> bool:
    """Check whether a mask is true exactly at these indices."""
    if mask.op is shape.pad.op:  # Ones, padded as the assigned slice is.
        ones = mask.operands[0].node
        filled = ones.op is shape.broadcast_to.op and ones.operands[0].node.op is CONSTANT
        same = mask.attrs == padded.attrs and not mask.attrs["value"]
        return same and filled and bool(ones.operands[0].node.attrs["value"].all())
    if mask.op is not CONSTANT or region.has_sizes:
        return False
    selected = mask.attrs["value"]
    return int(np.count_nonzero(selected)) == region.size and bool(selected[region.as_index].all())
