"""Context of an operator's rule beyond its tensors: the node, and its subgraphs to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphc.base.records import dataclass
from graphc.interop.onnx.elements import Element
from graphc.interop.onnx.graph import OnnxGraph, OnnxNode

if TYPE_CHECKING:
    from graphc.interop.onnx.run import Runner

Scope = dict[str, Any]
"""Values by name: a Value, a list of Values (a sequence), or None (an absent optional value)."""


@dataclass
class Call:
    """One application of an operator, for rules that need more than its tensors."""

    node: OnnxNode
    runner: Runner
    scope: Scope
    inputs: Sequence[Any]
    """The values, None for each input that is left out."""

    @property
    def outputs(self) -> int:
        """Count the results that the node asks for. Intermediate results may be left out."""
        return len(self.node.outputs)

    def element(self, number: int) -> Element:
        """Return the element type of an input."""
        return self.inputs[number].element

    def graph(self, name: str) -> OnnxGraph:
        """Return the graph of an attribute."""
        return self.node.attributes[name]

    def run(self, graph: OnnxGraph, *args: Any) -> list[Any]:
        """Run a branch, or one step of a loop, and return its results."""
        return self.runner.inner(graph).run(self.scope, args)

    def runner_of(self, graph: OnnxGraph) -> Runner:
        """Return a runner for another graph, such as a segment of this one."""
        return type(self.runner)(graph)

    def kept(self, make: Callable[[], Any]) -> Any:
        """Return this operator's state, which lives from call to call. ``make`` builds it at the first call."""
        return self.runner.kept(self.node, make)
