"""What a graph pass is: a named, frozen record that takes a graph and returns one, with the number of changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from graphc.codegen.machine.costs import Costs
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.op import Trait


@dataclass(frozen=True)
class PassResult:
    """What a pass leaves."""

    graph: Graph
    """The graph that was given, changed in place, or a new one; the given one must not be used any more."""
    changed: int
    """How many nodes were rewritten, merged, folded or removed; 0 means that the graph is as it was."""
    reasons: tuple[str, ...] = ()
    """Why it chose what it chose, a line for each choice."""


class Pass(Protocol):
    """A frozen dataclass whose fields are its options; its docstring says what it needs, does and leaves."""

    @property
    def name(self) -> str:
        """The name under which options and errors mention the pass."""
        ...

    def run(self, graph: Graph) -> PassResult:
        """Transforms a valid graph into a valid graph of the same inputs, outputs and effects."""
        ...


def held_graphs(node: Node) -> tuple[str, ...]:
    """The attributes of a node with graphs that are compiled as a part of this one: steps, branches."""
    if node.op.has(Trait.LOOP):
        return ("body",)
    if node.op.has(Trait.WHILE):
        return ("test", "body")
    return ("then", "otherwise") if node.op.has(Trait.BRANCH) else ()


def with_costs(step: Pass, costs: Costs) -> Pass:
    """The pass, choosing by the costs of a target if it chooses by costs."""
    present = getattr(step, "costs", None)
    return replace(cast(Any, step), costs=costs) if isinstance(present, Costs) and present != costs else step
