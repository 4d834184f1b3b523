"""Complex values become pairs of real ones: behind this pass only the memory of arguments and results is complex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import graphc.ops.registry  # noqa: F401  (fills REGISTRY)
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.op import Attrs, Trait
from graphc.ir.types import TensorType
from graphc.ops.complex import interleaved, parts, view_as_complex, view_as_real
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.parts_of_complex import Complex, PartsDispatcher, apply_to_parts
from graphc.passes.base import PassResult, held_graphs


@dataclass(frozen=True)
class SplitComplex:
    """Splits every complex value into its real and its imaginary part.

    Needs: a graph that will not be differentiated any more, or whose gradient is taken of real values. Does: applies
    the rule ``complex`` of every op with complex operands or results. Leaves: complex arguments, read by view_as_real
    or as states, and complex results and written states, made by view_as_complex. Raises UnsupportedError for an op
    that has no such rule.

        %a = exp(%x) : c64[4]           %p = view_as_real(%x) : f32[4,2]
                                 ->     %re, %im = the halves of %p; %e = exp(%re); ...
                                        %a = view_as_complex(%e cos(%im) beside %e sin(%im)) : c64[4]
    """

    name: str = "split-complex"

    def run(self, graph: Graph) -> PassResult:
        """A new graph where some value is complex; counts the nodes that were."""
        found = sum(_is_complex(node) for node in graph.nodes())
        if not found and not any(v.dtype.is_complex for v in graph.inputs):
            return PassResult(graph, 0)
        return PassResult(_Splitter().transform(graph), found)


def _is_complex(node: Node) -> bool:
    """Whether a node has complex operands or results, or holds a graph with such nodes."""
    if any(v.dtype.is_complex for v in (*node.operands, *node.results)):
        return True
    held = [value for value in node.attrs.values() if isinstance(value, Graph)]
    return any(_is_complex(inner) for graph in held for inner in graph.nodes())


class _Splitter(Reemitter):
    """Copies a graph, whose arguments and outputs stay; complex values are ``Complex`` or, as they come from outside,
    values of the new graph."""

    def __init__(self) -> None:
        super().__init__()
        self.split: dict[Value, Complex] = {}

    def transform(self, graph: Graph) -> Graph:
        """The copy."""
        self.target = Graph(graph.name)
        self.target.bound, self.target.assumptions = graph.bound, graph.assumptions
        self.target.set_outputs(self.outputs(self.run(graph, [self.copy_input(v) for v in graph.inputs])))
        return self.target

    def outputs(self, values: Sequence[Any]) -> list[Value]:
        """What the copy gives for what the graph does."""
        return [self.whole(v) for v in values]

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Emits what a node becomes."""
        if not _is_complex(node) or node.op.has(Trait.STATE_READ):
            return self.copy_node(node, operands)
        if node.op.has(Trait.STATE_WRITE):
            self.copy_node(node, [operands[0], self.whole(operands[1])])
            return operands[1:]
        given = [self.parts(v) for v in operands]
        if held_graphs(node):
            return self._held(node, given)
        with use(PartsDispatcher(self.target, node.location, f"{node.results[0].name}.")) as made:
            found = (
                made.constant(node.attrs["value"])
                if node.op is CONSTANT
                else apply_to_parts(node.op, given, node.attrs)
            )
        return found if isinstance(found, tuple) else (found,)

    def parts(self, value: Any) -> Any:
        """A value as ops take it here: a complex one of the new graph as its parts."""
        if isinstance(value, Complex) or not value.dtype.is_complex:
            return value
        if value not in self.split:
            with use(GraphDispatcher(self.target, value.node.location, f"{value.name}.")):
                self.split[value] = parts(view_as_real(value))
        return self.split[value]

    def whole(self, value: Any) -> Value:
        """A value of the new graph."""
        if not isinstance(value, Complex):
            return value
        with use(GraphDispatcher(self.target)):
            return view_as_complex(interleaved(value))

    def _held(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """A node that applies graphs, with two operands and results for each complex one."""
        attrs = {**node.attrs, **_counts(node.attrs, operands)}
        attrs.update({name: _OfParts().transform(node.attrs[name]) for name in held_graphs(node)})
        results = iter(emit(self.target, node.op, _flat(operands), attrs, node.location, node.results[0].name))
        return [Complex(next(results), next(results)) if r.dtype.is_complex else next(results) for r in node.results]


class _OfParts(_Splitter):
    """Copies a graph whose complex arguments and outputs become two each."""

    def outputs(self, values: Sequence[Any]) -> list[Value]:
        """Complex values as two each."""
        return _flat(values)

    def copy_input(self, value: Value) -> Any:
        """The argument, or two."""
        if not value.dtype.is_complex:
            return super().copy_input(value)
        type = TensorType(value.dtype.real, value.shape)
        return Complex(*(self.target.add_input(type, f"{value.name}.{part}") for part in ("re", "im")))


def _flat(values: Sequence[Any]) -> list[Value]:
    """Complex values as two each."""
    return [part for v in values for part in ((v.real, v.imag) if isinstance(v, Complex) else (v,))]


def _counts(attrs: Attrs, operands: Sequence[Any]) -> Attrs:
    """How many operands are carries and sequences, when complex ones are two each."""
    found, start = {}, 0
    for name in ("carries", "sequences"):
        if name in attrs:
            stop = start + attrs[name]
            found[name], start = len(_flat(operands[start:stop])), stop
    return found
