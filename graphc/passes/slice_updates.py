"""Slices that are assigned in a state become updates of it, of which only the slice is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphc.base.size import always, is_size
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.op import Trait
from graphc.ops import dispatch, elementwise, shape
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.index import iota, scatter
from graphc.passes.base import PassResult
from graphc.passes.dce import DeadCodeElimination
from graphc.passes.updates import unmoved, updated


@dataclass(frozen=True)
class UpdateSlices:
    """Turns the assignment of a slice, which selects by a mask of the whole, into an update of a state.

    Needs: a graph that is not differentiated any more. Does: where what is written to a state is its content with
    slices along one dimension replaced, makes each a scatter at the places of the slice. Leaves: assignments to all
    else, which are computed along with what reads them.

        %p = pad(%u) {low=[2], high=[1]} : f32[4]
        %n = where(%mask, %p, %s) : f32[4]             ->   %n = scatter(%s, %places, %u) {axis=0} : f32[4]
        %w = state_write(%s, %n) : f32[4]                   %w = state_write(%s, %n) : f32[4]
    """

    name: str = "update-slices"

    def run(self, graph: Graph) -> PassResult:
        """Counts assignments."""
        found = [a for n in graph.nodes() if n.op.has(Trait.STATE_WRITE) for a in _assignments(n)]
        for assignment in dict.fromkeys(found):
            node = assignment.result.node
            with use(GraphDispatcher(graph, node.location)):
                updated = scatter(node.operands[2], assignment.places.emit(), assignment.part, axis=assignment.axis)
                graph.replace_uses(assignment.result, updated)
        return PassResult(DeadCodeElimination().run(graph).graph if found else graph, len(found))


class _Places(NamedTuple):
    """``first``, ``first + step``, ...; their number may be known at run time."""

    first: int
    step: int
    number: int

    def emit(self) -> Value:
        """They as a tensor."""
        if any(map(is_size, self)):
            counted = iota(shape=(self.number,), axis=0)
            counted = counted if self.step == 1 else elementwise.mul(counted, self.step)
            return counted if always("==", self.first, 0) else elementwise.add(counted, self.first)
        return dispatch.current().constant(np.array(self.listed()))

    def listed(self) -> tuple[int, ...]:
        """They as numbers, where these are known."""
        return tuple(range(self.first, self.first + self.number * self.step, self.step))


class _Assignment(NamedTuple):
    """A value that is another one with ``part`` at ``places`` along ``axis``."""

    result: Value
    part: Value
    axis: int
    places: _Places


def _assignments(write: Node) -> list[_Assignment]:
    """Those by which a state becomes what is written to it; none where it becomes that in other ways."""
    found: list[_Assignment] = []
    state, value = write.operands
    present: Value | None = value
    while present is not None and present is not state:
        assignment = _assignment(present)
        if assignment is not None:
            found.append(assignment)
            present = present.node.operands[2]
        else:
            before = updated(present)
            present = unmoved(present) if before is None else before
    return found if present is state else []


def _assignment(value: Value) -> _Assignment | None:
    node = value.node
    if node.op is not elementwise.where.op:
        return None
    mask, padded, old = node.operands
    if padded.node.op is not shape.pad.op or not mask.shape == padded.shape == old.shape == value.shape:
        return None
    part, attrs = padded.node.operands[0], padded.node.attrs
    covered = [
        _Places(low, gap + 1, count)
        for low, gap, count in zip(attrs["low"], attrs["interior"], part.shape, strict=True)
    ]
    axes = [d for d, places in enumerate(covered) if places != (0, 1, value.shape[d])]
    if len(axes) != 1 or not _covers(mask.node, padded.node, axes[0], covered[axes[0]]):
        return None
    return _Assignment(value, part, axes[0], covered[axes[0]])


def _covers(mask: Node, padded: Node, axis: int, places: _Places) -> bool:
    """Whether a mask holds at these places along an axis and nowhere else."""
    if mask.op is shape.pad.op:  # of what is padded the same way
        ones = mask.operands[0].node
        filled = ones.op is shape.broadcast_to.op and ones.operands[0].node.op is CONSTANT
        same = mask.attrs == padded.attrs and not mask.attrs["value"]
        return same and filled and bool(ones.operands[0].node.attrs["value"].all())
    if mask.op is not CONSTANT or any(map(is_size, places)):
        return False
    held, listed = mask.attrs["value"], places.listed()
    if not listed or listed[0] < 0 or listed[-1] >= held.shape[axis]:
        return False
    line = np.zeros(held.shape[axis], bool)
    line[list(listed)] = True
    return bool((held == np.expand_dims(line, [d for d in range(held.ndim) if d != axis])).all())
