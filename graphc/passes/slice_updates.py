"""Slices that are assigned in a state become updates of it, of which only the slice is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.interpret import copy
from graphc.ir.op import Trait
from graphc.ops import elementwise, shape
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.slice_update import update_slice
from graphc.passes.base import PassResult
from graphc.passes.dce import DeadCodeElimination
from graphc.passes.lifted_updates import SlicePlaces, content_before, lift_updates, tiled


@dataclass(frozen=True)
class UpdateSlices:
    """Turns the assignment of a slice, which selects by a mask of the whole, into an update of a state.

    Needs: a graph that is not differentiated any more. Does: where what is written to a state, or carried from step to
    step of a scan, is its content with slices replaced, makes each an ``update_slice``; an update of a slice that is
    assigned becomes one of the state; slices that make up the whole, one behind the other, are concatenated. Leaves:
    assignments to all else, which are computed along with what reads them.

        %p = pad(%u) {low=[2], high=[1]} : f32[4]
        %n = where(%mask, %p, %s) : f32[4]             ->   %n = update_slice(%s, %u) {starts=[2], steps=[1]} : f32[4]
        %w = state_write(%s, %n) : f32[4]                   %w = state_write(%s, %n) : f32[4]
    """

    name: str = "update-slices"

    def run(self, graph: Graph) -> PassResult:
        """Counts assignments and updates that were rewritten, those in steps too."""
        return _run(graph, 0)


def _run(graph: Graph, carries: int) -> PassResult:
    """What the pass does to a graph, or to the step of a scan with that many carries."""
    steps = 0
    for node in graph.nodes():
        if node.op.has(Trait.LOOP):
            inner = _run(copy(node.attrs["body"]), node.attrs["carries"])
            if inner.changed:
                node.attrs = {**node.attrs, "body": inner.graph}
                steps += inner.changed
    found = sum(_update(graph, written) for written in _written(graph, carries))
    return PassResult(DeadCodeElimination().run(graph).graph if found else graph, steps + found)


class _Written(NamedTuple):
    """A place of a graph at which a state gets its next content: an operand of a node, or an output."""

    state: Value
    node: Node | None
    number: int = 1

    def value(self, graph: Graph) -> Value:
        """The content."""
        return graph.outputs[self.number] if self.node is None else self.node.operands[self.number]


def _written(graph: Graph, carries: int) -> list[_Written]:
    """What is written to states, and, in the step of a scan, what carries become."""
    states = [_Written(n.operands[0], n) for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)]
    return states + [_Written(graph.inputs[i], None, i) for i in range(carries)]


def _update(graph: Graph, written: _Written) -> int:
    """Rewrites what leads from a state to its next content; the number of steps that changed."""
    found = _assignments(written.value(graph), lambda v: v is written.state)
    if not found and (last := _assignment(written.value(graph))) is not None:
        return _join(graph, last)
    for assignment in found:
        node = assignment.result.node
        with use(GraphDispatcher(graph, node.location)):
            new = update_slice(assignment.old, assignment.part, **assignment.places.attrs)
        graph.replace_uses(assignment.result, new)
    return len(found) + lift_updates(graph, written.state, written.value(graph))


def _join(graph: Graph, assignment: _Assignment) -> int:
    """Makes what is assigned one of the parts that a value consists of, as those of a window that was rolled."""
    with use(GraphDispatcher(graph, assignment.result.node.location)):
        new = tiled(assignment.old, assignment.part, assignment.places)
    return 0 if new is None else graph.replace_uses(assignment.result, new)


class _Assignment(NamedTuple):
    """A value that is ``old`` with ``part`` at some places."""

    result: Value
    part: Value
    places: SlicePlaces

    @property
    def old(self) -> Value:
        """What is there elsewhere."""
        return self.result.node.operands[2]


def _assignments(value: Value, ends: Callable[[Value], bool]) -> list[_Assignment]:
    """Those by which what ``ends`` becomes a value, those in its parts too; none where it becomes that otherwise."""
    found: list[_Assignment] = []
    present: Value | None = value
    while present is not None and not ends(present):
        assignment = _assignment(present)
        if assignment is None:
            present = content_before(present)
            continue
        found.append(assignment)
        found += _assignments(assignment.part, lambda v, a=assignment: a.places.is_slice(v, a.old))
        present = assignment.old
    return [] if present is None else found


def _assignment(value: Value) -> _Assignment | None:
    node = value.node
    if node.op is not elementwise.where.op:
        return None
    mask, padded, old = node.operands
    if padded.node.op is not shape.pad.op or not mask.shape == padded.shape == old.shape == value.shape:
        return None
    part, attrs = padded.node.operands[0], padded.node.attrs
    places = SlicePlaces(attrs["low"], tuple(gap + 1 for gap in attrs["interior"]), part.shape)
    covered = places.inside(value.shape) and not places.is_all(value.shape) and _covers(mask.node, padded.node, places)
    return _Assignment(value, part, places) if covered else None


def _covers(mask: Node, padded: Node, places: SlicePlaces) -> bool:
    """Whether a mask holds at these places and nowhere else."""
    if mask.op is shape.pad.op:  # of what is padded the same way
        ones = mask.operands[0].node
        filled = ones.op is shape.broadcast_to.op and ones.operands[0].node.op is CONSTANT
        same = mask.attrs == padded.attrs and not mask.attrs["value"]
        return same and filled and bool(ones.operands[0].node.attrs["value"].all())
    if mask.op is not CONSTANT or places.has_sizes:
        return False
    held = mask.attrs["value"]
    return int(np.count_nonzero(held)) == places.size and bool(held[places.as_index].all())
