"""Residuals: what a forward program hands to its backward program, where some of it may be computed again there."""

from __future__ import annotations

from collections.abc import Iterable

from graphc.base.sizes.size import hint
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.codegen.machine.roofline import Roofline
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value
from graphc.passes.operand_access import is_virtual
from graphc.recompute.cut import Choice, Recomputation, Second
from graphc.recompute.lifetimes import Lifetimes


class TwoParts(Lifetimes):
    """A graph of which some nodes belong to a forward program, and the others to a backward program behind it."""

    def __init__(self, graph: Graph, forward: set[Node], costs: FusionCosts = DEFAULT.fusion):
        super().__init__(graph, costs)
        self.lasting = set()  # what is returned is handed over in memory of its own
        ordered = sorted(graph.nodes(), key=lambda node: node not in forward)
        self.place = {node: i for i, node in enumerate(ordered)}
        self.until = sum(node in forward for node in ordered) - 1
        """The place of the last node of the forward program."""

    def is_stored(self, value: Value) -> bool:
        """Whether a value has memory where it goes from one program to the other."""
        return value.node.op not in (INPUT, CONSTANT) and not is_virtual(value.node)

    def is_late(self, value: Value) -> bool:
        """Whether a value is one of the backward program that has memory, perhaps."""
        return self.is_stored(value) and self.place[value.node] > self.until

    def behind(self, value: Value) -> Iterable[Value]:
        """What can be handed over, through views."""
        stack, seen = [value], {value}
        while stack:
            present = stack.pop()
            if self.is_stored(present) or not present.node.operands:
                yield present
                continue
            new = [v for v in present.node.operands if v not in seen]
            seen.update(new)
            stack += new


class ResidualRecomputation(Recomputation):
    """What a backward program may compute again; the memory that counts is what it is handed."""

    def __init__(self, parts: TwoParts, roofline: Roofline):
        super().__init__(parts, parts.until, roofline)

    def segmentations(self) -> list[tuple[int, ...]]:
        """The forward program as a whole."""
        return [()]

    def choice(self, second: Second) -> Choice:
        """The bytes that are handed over, and the time that it takes."""
        handed = sum(hint(v.type.nbytes) for v in self.kept_values(second))
        return Choice(second, handed, sum(map(self.price, second.again)))
