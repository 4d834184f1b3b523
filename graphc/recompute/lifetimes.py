"""Lifetimes of temporaries: the first and last group that needs each, estimated before anything is lowered."""

from __future__ import annotations

from collections.abc import Iterable

from graphc.base.records import dataclass
from graphc.base.sizes.size import hint
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.fusion.vertical import FusionPlan, fuse
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value
from graphc.ir.op import Trait
from graphc.passes.operand_access import written_value


@dataclass(frozen=True)
class Span:
    """Live range of a temporary: its bytes, and the numbers of the first and last group that need it (inclusive)."""

    nbytes: int
    first: int
    last: int


class Lifetimes:
    """Schedule of a graph's nodes by their fusion groups, and the values in memory between groups."""

    def __init__(self, graph: Graph, costs: FusionCosts = DEFAULT.fusion):
        self.graph = graph
        self.plan: FusionPlan = fuse(graph, costs)
        self.place: dict[Node, int] = {}
        """The number of the group that computes a node; the first of them if it is duplicated."""
        for number, group in enumerate(self.plan.groups):
            for node in group.nodes:
                self.place.setdefault(node, number)
        self.lasting = {written_value(v) for v in graph.outputs}
        self.lasting |= {written_value(n.operands[1]) for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
        """Values that are stored in outputs or states (at least in most cases), not in temporaries."""
        self._settle_views()
        self.readers: dict[Value, list[int]] = {}
        """The groups that read a stored value, directly or through nodes that have no memory."""
        self._find_readers()

    def _settle_views(self) -> None:
        """Give nodes that no group computes the position of their latest operand."""
        for node in self.graph.nodes():
            if node not in self.place:
                self.place[node] = max((self.place.get(v.node, -1) for v in node.operands), default=-1)

    def is_stored(self, value: Value) -> bool:
        """Check whether a value is a temporary: stored, but neither in the caller's memory nor in a constant's."""
        return value in self.plan.stored and value not in self.lasting

    def nbytes(self, value: Value) -> int:
        """Return the bytes of a value in temporary memory, 0 if it has none."""
        return hint(value.type.nbytes) if self.is_stored(value) else 0

    def behind(self, value: Value) -> Iterable[Value]:
        """Yield the values in memory from which a value is computed when it is read."""
        stack, visited = [value], {value}
        while stack:
            current = stack.pop()
            if current in self.plan.stored or current.node.op in (INPUT, CONSTANT):
                yield current
                continue
            for operand in current.node.operands:
                if operand not in visited:
                    visited.add(operand)
                    stack.append(operand)

    def _find_readers(self) -> None:
        for number, group in enumerate(self.plan.groups):
            inside = set(group.nodes)
            visited: set[Value] = set()
            stack = [v for n in group.nodes for v in n.operands if v.node not in inside]
            while stack:
                value = stack.pop()
                if value in visited or value.node in inside:
                    continue
                visited.add(value)
                if value in self.plan.stored:
                    self.readers.setdefault(value, []).append(number)
                elif value.node.op not in (INPUT, CONSTANT):
                    stack += value.node.operands

    def spans(self) -> list[Span]:
        """Return the live ranges of all temporaries of the graph."""
        live_ranges = []
        for value in self.plan.stored:
            if size := self.nbytes(value):
                first = self.place[value.node]
                live_ranges.append(Span(size, first, max(self.readers.get(value, (first,)))))
        return live_ranges


def profile(spans: Iterable[Span], length: int) -> list[int]:
    """Return the live bytes of temporaries at each of ``length`` groups."""
    changes = [0] * (length + 2)
    for span in spans:
        changes[span.first] += span.nbytes
        changes[span.last + 1] -= span.nbytes
    totals, live_bytes = [], 0
    for change in changes[:length]:
        live_bytes += change
        totals.append(live_bytes)
    return totals
