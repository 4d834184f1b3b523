"""Sums of zero-padded, disjoint values, as gradients of many slices give them, become concatenations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from graphc.base.records import dataclass
from graphc.base.sizes.size import always, is_size
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.types import TensorType
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise
from graphc.passes.base import PassResult
from graphc.passes.dce import DeadCodeElimination


@dataclass(frozen=True)
class JoinPaddedParts:
    """Turn sums of many padded operands into one concatenation, which is written once instead of once per operand.

    Needs: a graph that is not differentiated any more. Does: finds more than ``parts`` consecutive terms of a sum,
    each padded with zeros along one axis, to disjoint ranges. It concatenates the operands, with
    zeros between them, and adds 0, which turns -0 into 0 as the other terms did. No value changes, since all but one
    term of each element were zeros.
    Leaves: none of these paddings.

        %p = pad(%a) {low=[0], high=[2]} : f32[4]           %c = concat(%a, %b) {axis=0} : f32[4]
        %q = pad(%b) {low=[2], high=[0]} : f32[4]     ->    %s = add(%c, f32(0.0)) : f32[4]
        %s = add(%p, %q) : f32[4]
    """

    name: str = "join-padded-parts"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Count sums."""
        reasons: list[str] = []
        visited: set[Node] = set()
        for node in reversed(graph.nodes()):
            if node.op is elementwise.add.op and node not in visited:
                terms = _terms(graph, node, visited)
                joined = _joined(terms, self.costs.fusion.parts)
                if len(joined) < len(terms):
                    _replace(graph, node, joined)
                    reasons.append(
                        f"%{node.result.name}: a sum of {len(terms)} terms, most padded, is one of {len(joined)}"
                    )
        return PassResult(DeadCodeElimination().run(graph).graph if reasons else graph, len(reasons), tuple(reasons))


@dataclass
class _Run:
    """Consecutive terms, padded along one axis to disjoint ranges."""

    axis: int
    type: TensorType
    """Type of each term."""
    operands: dict[int, Value] = field(default_factory=dict)
    """Unpadded operands by the offset of their first element along the axis."""
    covered_indices: set[int] = field(default_factory=set)
    """Indices along the axis that an operand covers."""

    def take(self, term: Value) -> bool:
        """Add a term if it fits; return whether it did."""
        if _axis(term) != self.axis or self.type != term.type:
            return False
        start, operand = term.node.attrs["low"][self.axis], term.node.operands[0]
        if is_size(start) or is_size(operand.shape[self.axis]):
            return False
        covered = range(start, start + operand.shape[self.axis])
        if not self.covered_indices.isdisjoint(covered):
            return False
        self.covered_indices.update(covered)
        if covered:
            self.operands[start] = operand
        return True


def _terms(graph: Graph, last: Node, visited: set[Node]) -> list[Value]:
    """Return the terms of a sum, in the order in which they are added; collect its additions in ``visited``."""
    terms: list[Value] = []
    node = last
    while True:
        visited.add(node)
        first, second = node.operands
        terms.append(second)
        goes_on = first.node.op is node.op and graph.is_used_once(first) and first.type == last.result.type
        if not goes_on:
            return [first, *reversed(terms)]
        node = first.node


def _axis(term: Value) -> int | None:
    """Return the only axis along which zeros surround a padded operand; None for any other value."""
    node = term.node
    if node.op is not shape.pad.op or node.attrs["value"] != 0 or any(node.attrs["interior"]):
        return None
    sides = [(low, high) for low, high in zip(node.attrs["low"], node.attrs["high"], strict=True)]
    axes = [axis for axis, side in enumerate(sides) if any(side)]
    return axes[0] if len(axes) == 1 and all(always("<=", 0, n) for n in sides[axes[0]]) else None


def _joined(terms: Sequence[Value], few: int) -> list[Value | _Run]:
    """Return the terms; more than ``few`` consecutive terms that can be joined become one run."""
    members: list[list[Value]] = []
    runs: list[_Run | None] = []
    for term in terms:
        present = runs[-1] if runs else None
        if present is not None and present.take(term):
            members[-1].append(term)
            continue
        axis = _axis(term)
        run = None if axis is None else _Run(axis, term.type)
        if run is not None:
            run.take(term)
        runs.append(run)
        members.append([term])
    result: list[Value | _Run] = []
    for run, run_terms in zip(runs, members, strict=True):
        result += [run] if run is not None and len(run_terms) > few else run_terms
    return result


def _replace(graph: Graph, last: Node, terms: Sequence[Value | _Run]) -> None:
    """Replace a sum by the sum of the terms."""
    with use(GraphDispatcher(graph, last.location)):
        total: Value | None = None
        for term in terms:
            value = _written_out(graph, term) if isinstance(term, _Run) else term
            total = value if total is None else elementwise.add(total, value)
    assert total is not None
    graph.replace_uses(last.result, total)


def _written_out(graph: Graph, run: _Run) -> Value:
    """Emit the concatenation of a run."""
    zero, extents = graph.scalar(0, run.type.dtype), run.type.shape
    pieces: list[Value] = []

    def fill(start: int, stop: int) -> None:
        if stop > start:
            gap = (*extents[: run.axis], stop - start, *extents[run.axis + 1 :])
            pieces.append(shape.broadcast_to(zero, shape=gap))

    end = 0
    for start, operand in sorted(run.operands.items()):
        fill(end, start)
        pieces.append(operand)
        end = start + operand.shape[run.axis]
    fill(end, extents[run.axis])
    return elementwise.add(shape.concat(*pieces, axis=run.axis), zero)
