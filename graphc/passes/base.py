"""Interface of a graph pass: a named, frozen record that takes a graph and returns one, with the number of changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from graphc.base.lazy import LazySequence
from graphc.base.records import dataclass
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.graph.interpret import copy
from graphc.ir.op import Trait

if TYPE_CHECKING:
    from graphc.codegen.machine.costs import Costs


@dataclass(frozen=True)
class PassResult:
    """Result of a pass."""

    graph: Graph
    """The graph that was passed in, changed in place, or a new one; the argument must not be used any more."""
    changed: int
    """Number of nodes that were rewritten, merged, folded or removed; 0 means that the graph is unchanged."""
    reasons: tuple[str, ...] = ()
    """One line for each decision of the pass."""


class Pass(Protocol):
    """A frozen dataclass whose fields are its options; its docstring says what the pass needs, does and leaves."""

    @property
    def name(self) -> str:
        """Name of the pass in options and errors."""
        ...

    def run(self, graph: Graph) -> PassResult:
        """Transform a valid graph into a valid graph with the same inputs, outputs and effects."""
        ...


STANDARD: Sequence[Pass] = LazySequence("graphc.passes.pipeline:PASSES")
"""The standard passes, ``passes.pipeline.PIPELINE``: a program from the cache runs none, so none is imported for it."""


def held_graphs(node: Node) -> tuple[str, ...]:
    """Return the names of a node's attributes whose graphs are compiled as part of this one: steps, branches."""
    if not node.op.has_any(_HOLDING):
        return ()
    if node.op.has(Trait.LOOP):
        return ("body",)
    if node.op.has(Trait.WHILE):
        return ("test", "body")
    return ("then", "otherwise")


def holding_graphs(graph: Graph) -> list[Node]:
    """Return the nodes for which ``held_graphs`` returns names."""
    return graph.nodes_of(lambda op: op.has_any(_HOLDING))


def run_inside(step: Pass, graph: Graph) -> int:
    """Run a pass on the graphs that the nodes of a graph hold; return the number of changes."""
    changed = 0
    for node in holding_graphs(graph):
        for name in held_graphs(node):
            result = step.run(copy(node.attrs[name]))
            changed += result.changed
            if result.changed:
                node.attrs = {**node.attrs, name: result.graph}
    return changed


_HOLDING = Trait.LOOP | Trait.WHILE | Trait.BRANCH


def with_costs(step: Pass, costs: Costs) -> Pass:
    """Return the pass with the costs of a target, if it has a field ``costs``."""
    present = getattr(step, "costs", None)
    return replace(cast(Any, step), costs=costs) if isinstance(present, type(costs)) and present != costs else step
