"""Lifetimes: which values of a graph will lie in temporary memory, from when to when, before anything is lowered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from graphc.base.sizes.size import hint
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.fusion.vertical import FusionPlan, fuse
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value
from graphc.ir.op import Trait
from graphc.passes.operand_access import written_value


@dataclass(frozen=True)
class Span:
    """A temporary and the groups (numbers, inclusive) between which it is needed."""

    nbytes: int
    first: int
    last: int


class Lifetimes:
    """When the nodes of a graph run, and what lies in memory between them, by the groups that fusion makes of them."""

    def __init__(self, graph: Graph, costs: FusionCosts = DEFAULT.fusion):
        self.graph = graph
        self.plan: FusionPlan = fuse(graph, costs)
        self.place: dict[Node, int] = {}
        """The number of the group that computes a node; of those that compute it too, the first."""
        for number, group in enumerate(self.plan.groups):
            for node in group.nodes:
                self.place.setdefault(node, number)
        self.lasting = {written_value(v) for v in graph.outputs}
        self.lasting |= {written_value(n.operands[1]) for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
        """Values that lie in outputs or states, or will in most cases."""
        self._settle_views()
        self.readers: dict[Value, list[int]] = {}
        """The groups that read a stored value, looked at through what needs no memory."""
        self._find_readers()

    def _settle_views(self) -> None:
        """What needs no memory is there as soon as what it is made of."""
        for node in self.graph.nodes():
            if node not in self.place:
                self.place[node] = max((self.place.get(v.node, -1) for v in node.operands), default=-1)

    def is_stored(self, value: Value) -> bool:
        """Whether a value lies in memory that is neither the caller's nor a constant's."""
        return value in self.plan.stored and value not in self.lasting

    def nbytes(self, value: Value) -> int:
        """Bytes of temporary memory that a value takes."""
        return hint(value.type.nbytes) if self.is_stored(value) else 0

    def behind(self, value: Value) -> Iterable[Value]:
        """The values in memory through which a value is read."""
        stack, seen = [value], {value}
        while stack:
            present = stack.pop()
            if present in self.plan.stored or present.node.op in (INPUT, CONSTANT):
                yield present
                continue
            for operand in present.node.operands:
                if operand not in seen:
                    seen.add(operand)
                    stack.append(operand)

    def _find_readers(self) -> None:
        for number, group in enumerate(self.plan.groups):
            inside = set(group.nodes)
            seen: set[Value] = set()
            stack = [v for n in group.nodes for v in n.operands if v.node not in inside]
            while stack:
                value = stack.pop()
                if value in seen or value.node in inside:
                    continue
                seen.add(value)
                if value in self.plan.stored:
                    self.readers.setdefault(value, []).append(number)
                elif value.node.op not in (INPUT, CONSTANT):
                    stack += value.node.operands

    def spans(self) -> list[Span]:
        """The temporaries of the graph as it is."""
        found = []
        for value in self.plan.stored:
            if size := self.nbytes(value):
                first = self.place[value.node]
                found.append(Span(size, first, max(self.readers.get(value, (first,)))))
        return found


def profile(spans: Iterable[Span], length: int) -> list[int]:
    """Bytes that are needed at each of ``length`` groups."""
    changes = [0] * (length + 2)
    for span in spans:
        changes[span.first] += span.nbytes
        changes[span.last + 1] -= span.nbytes
    found, present = [], 0
    for change in changes[:length]:
        present += change
        found.append(present)
    return found
