"""Residuals: values handed from a forward program to its backward program, which may recompute some of them."""

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
    """A joint graph whose nodes belong to a forward program or to the backward program that runs after it."""

    def __init__(self, graph: Graph, forward: set[Node], costs: FusionCosts = DEFAULT.fusion):
        super().__init__(graph, costs)
        self.lasting = set()  # returned values are handed over in memory of their own
        ordered = sorted(graph.nodes(), key=lambda node: node not in forward)
        self.place = {node: i for i, node in enumerate(ordered)}
        self.until = sum(node in forward for node in ordered) - 1
        """The position of the last node of the forward program."""

    def is_stored(self, value: Value) -> bool:
        """Check whether a value would need memory of its own to be handed from one program to the other."""
        return value.node.op not in (INPUT, CONSTANT) and not is_virtual(value.node)

    def is_late(self, value: Value) -> bool:
        """Check whether a value is computed by the backward program and may be stored."""
        return self.is_stored(value) and self.place[value.node] > self.until

    def behind(self, value: Value) -> Iterable[Value]:
        """Yield the values that can be handed over, from which views compute ``value``."""
        stack, visited = [value], {value}
        while stack:
            current = stack.pop()
            if self.is_stored(current) or not current.node.operands:
                yield current
                continue
            new = [v for v in current.node.operands if v not in visited]
            visited.update(new)
            stack += new


class ResidualRecomputation(Recomputation):
    """Recomputation in a backward program; it minimizes the memory of the residuals."""

    def __init__(self, lifetimes: TwoParts, roofline: Roofline):
        super().__init__(lifetimes, lifetimes.until, roofline)

    def segmentations(self) -> list[tuple[int, ...]]:
        """Return the only segmentation: the forward program is one segment."""
        return [()]

    def choice(self, second: Second) -> Choice:
        """Return the choice with the bytes of residuals and the nanoseconds of the recomputation."""
        residual_bytes = sum(hint(v.type.nbytes) for v in self.kept_values(second))
        return Choice(second, residual_bytes, sum(map(self.price, second.again)))
