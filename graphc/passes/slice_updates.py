"""Slices that are assigned in a state become updates of it, of which only the slice is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, has_sizes
from graphc.ir.op import Trait
from graphc.ops import dispatch, elementwise, shape
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.index import scatter
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
                places = dispatch.current().constant(np.array(assignment.places))
                graph.replace_uses(
                    assignment.result, scatter(node.operands[2], places, assignment.part, axis=assignment.axis)
                )
        return PassResult(DeadCodeElimination().run(graph).graph if found else graph, len(found))


class _Assignment(NamedTuple):
    """A value that is another one with ``part`` at ``places`` along ``axis``."""

    result: Value
    part: Value
    axis: int
    places: tuple[int, ...]


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
    if mask.node.op is not CONSTANT or padded.node.op is not shape.pad.op or has_sizes(padded.node):
        return None
    if not mask.shape == padded.shape == old.shape == value.shape:
        return None
    part, attrs = padded.node.operands[0], padded.node.attrs
    covered = [
        tuple(low + i * (gap + 1) for i in range(count))
        for low, gap, count in zip(attrs["low"], attrs["interior"], part.shape, strict=True)
    ]
    axes = [d for d, places in enumerate(covered) if places != tuple(range(value.shape[d]))]
    if len(axes) != 1 or not _covers(mask.node.attrs["value"], axes[0], covered[axes[0]]):
        return None
    return _Assignment(value, part, axes[0], covered[axes[0]])


def _covers(mask: np.ndarray, axis: int, places: tuple[int, ...]) -> bool:
    """Whether a mask holds at these places along an axis and nowhere else."""
    if not places or places[0] < 0 or places[-1] >= mask.shape[axis]:
        return False
    line = np.zeros(mask.shape[axis], bool)
    line[list(places)] = True
    return bool((mask == np.expand_dims(line, [d for d in range(mask.ndim) if d != axis])).all())
