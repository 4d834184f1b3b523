"""Sums of parts that do not overlap, each with zeros around it, are those parts joined: gradients of many slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from graphc.base.sizes.size import always, is_size
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.types import TensorType
from graphc.ops import elementwise, shape
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.passes.base import PassResult
from graphc.passes.dce import DeadCodeElimination


@dataclass(frozen=True)
class JoinPaddedParts:
    """Turns sums of many padded parts into one concatenation, which is written once instead of once for each part.

    Needs: a graph that is not differentiated any more. Does: where more than ``parts`` terms in a row of a sum are
    operands padded with zeros along one axis, to places that do not overlap, joins the operands, with zeros between
    them, and adds 0, which turns -0 into 0 as the other terms did. No number changes: an element had one term beside
    zeros.
    Leaves: none of the padded parts.

        %p = pad(%a) {low=[0], high=[2]} : f32[4]           %c = concat(%a, %b) {axis=0} : f32[4]
        %q = pad(%b) {low=[2], high=[0]} : f32[4]     ->    %s = add(%c, f32(0.0)) : f32[4]
        %s = add(%p, %q) : f32[4]
    """

    name: str = "join-padded-parts"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Counts sums."""
        reasons: list[str] = []
        seen: set[Node] = set()
        for node in reversed(graph.nodes()):
            if node.op is elementwise.add.op and node not in seen:
                terms = _terms(graph, node, seen)
                joined = _joined(terms, self.costs.fusion.parts)
                if len(joined) < len(terms):
                    _replace(graph, node, joined)
                    reasons.append(
                        f"%{node.result.name}: a sum of {len(terms)} terms, most padded, is one of {len(joined)}"
                    )
        return PassResult(DeadCodeElimination().run(graph).graph if reasons else graph, len(reasons), tuple(reasons))


@dataclass
class _Run:
    """Terms in a row that are padded along one axis, to places that do not overlap."""

    axis: int
    type: TensorType
    """Of each term."""
    parts: dict[int, Value] = field(default_factory=dict)
    """What is padded, by the place of its first element."""
    taken: set[int] = field(default_factory=set)
    """Places along the axis."""

    def take(self, term: Value) -> bool:
        """Takes a term in if it belongs here."""
        if _axis(term) != self.axis or self.type != term.type:
            return False
        start, part = term.node.attrs["low"][self.axis], term.node.operands[0]
        if is_size(start) or is_size(part.shape[self.axis]):
            return False
        places = range(start, start + part.shape[self.axis])
        if not self.taken.isdisjoint(places):
            return False
        self.taken.update(places)
        if places:
            self.parts[start] = part
        return True


def _terms(graph: Graph, last: Node, seen: set[Node]) -> list[Value]:
    """The terms of a sum, in the order in which they are added; ``seen`` takes the additions."""
    terms: list[Value] = []
    node = last
    while True:
        seen.add(node)
        first, second = node.operands
        terms.append(second)
        goes_on = first.node.op is node.op and graph.is_used_once(first) and first.type == last.result.type
        if not goes_on:
            return [first, *reversed(terms)]
        node = first.node


def _axis(term: Value) -> int | None:
    """The only dimension along which zeros surround what is padded; None for all else."""
    node = term.node
    if node.op is not shape.pad.op or node.attrs["value"] != 0 or any(node.attrs["interior"]):
        return None
    sides = [(low, high) for low, high in zip(node.attrs["low"], node.attrs["high"], strict=True)]
    axes = [axis for axis, side in enumerate(sides) if any(side)]
    return axes[0] if len(axes) == 1 and all(always("<=", 0, n) for n in sides[axes[0]]) else None


def _joined(terms: Sequence[Value], few: int) -> list[Value | _Run]:
    """The terms, those in a row that are joined as one if they are more than ``few``."""
    found: list[list[Value]] = []
    runs: list[_Run | None] = []
    for term in terms:
        present = runs[-1] if runs else None
        if present is not None and present.take(term):
            found[-1].append(term)
            continue
        axis = _axis(term)
        run = None if axis is None else _Run(axis, term.type)
        if run is not None:
            run.take(term)
        runs.append(run)
        found.append([term])
    result: list[Value | _Run] = []
    for run, members in zip(runs, found, strict=True):
        result += [run] if run is not None and len(members) > few else members
    return result


def _replace(graph: Graph, last: Node, terms: Sequence[Value | _Run]) -> None:
    """Puts the sum of the terms in the place of a sum."""
    with use(GraphDispatcher(graph, last.location)):
        total: Value | None = None
        for term in terms:
            value = _written_out(graph, term) if isinstance(term, _Run) else term
            total = value if total is None else elementwise.add(total, value)
    assert total is not None
    graph.replace_uses(last.result, total)


def _written_out(graph: Graph, run: _Run) -> Value:
    """The sum of the terms of a run."""
    zero, extents = graph.scalar(0, run.type.dtype), run.type.shape
    pieces: list[Value] = []

    def fill(start: int, stop: int) -> None:
        if stop > start:
            gap = (*extents[: run.axis], stop - start, *extents[run.axis + 1 :])
            pieces.append(shape.broadcast_to(zero, shape=gap))

    end = 0
    for start, part in sorted(run.parts.items()):
        fill(end, start)
        pieces.append(part)
        end = start + part.shape[run.axis]
    fill(end, extents[run.axis])
    return elementwise.add(shape.concat(*pieces, axis=run.axis), zero)
