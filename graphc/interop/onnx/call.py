"""What rules of ONNX operators may ask for beside tensors: the node, and graphs inside of it to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphc.interop.onnx.elements import Element
from graphc.interop.onnx.graph import Node, OnnxGraph

if TYPE_CHECKING:
    from graphc.interop.onnx.run import Runner

Scope = dict[str, Any]
"""Values by name: a Value, a list of such (a sequence), or None (an optional one that is not there)."""


@dataclass(slots=True)
class Call:
    """One application of an operator, for rules that ask for more than tensors."""

    node: Node
    runner: Runner
    scope: Scope
    inputs: Sequence[Any]
    """The values, None where they are left out."""

    @property
    def outputs(self) -> int:
        """How many results are asked for; those in the middle may be left out."""
        return len(self.node.outputs)

    def element(self, number: int) -> Element:
        """The element type of an input."""
        return self.inputs[number].element

    def graph(self, name: str) -> OnnxGraph:
        """The graph that an attribute is."""
        return self.node.attributes[name]

    def run(self, graph: OnnxGraph, *args: Any) -> list[Any]:
        """The results of a branch or of the step of a loop for these values."""
        return self.runner.inner(graph).run(self.scope, args)

    def runner_of(self, graph: OnnxGraph) -> Runner:
        """What runs another graph, such as a part of this one."""
        return type(self.runner)(graph)

    def kept(self, make: Callable[[], Any]) -> Any:
        """What this operator remembers from call to call, made at the first one."""
        return self.runner.kept(self.node, make)
