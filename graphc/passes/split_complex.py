"""Complex lowering: split complex values into real pairs; only memory of arguments and results stays complex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphc.ops.registry  # noqa: F401  (fills REGISTRY)
from graphc.base.records import dataclass
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.op import Attrs, Trait
from graphc.ir.types import TensorType
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.complex import interleaved, parts, view_as_complex, view_as_real
from graphc.ops.pointwise.parts_of_complex import Complex, PartsDispatcher, apply_to_parts
from graphc.passes.base import PassResult, held_graphs


@dataclass(frozen=True)
class SplitComplex:
    """Split every complex value into its real and its imaginary part.

    Needs: a graph that will not be differentiated any more, or only with respect to real values. Does: applies the
    rule ``complex`` of every op with complex operands or results. Leaves: complex arguments, which view_as_real or
    state reads convert, and complex results and written states, which view_as_complex builds. Raises UnsupportedError
    for an op without such a rule.

        %a = exp(%x) : c64[4]           %p = view_as_real(%x) : f32[4,2]
                                 ->     %re, %im = the halves of %p; %e = exp(%re); ...
                                        %a = view_as_complex([%e cos(%im), %e sin(%im)]) : c64[4]
    """

    name: str = "split-complex"

    def run(self, graph: Graph) -> PassResult:
        """Return a new graph if any value is complex; count the complex nodes."""
        dtypes = {v.type.dtype for v in graph.inputs} | {r.type.dtype for n in graph.nodes() for r in n.results}
        nested = graph.nodes_of(lambda op: any(attr.kind == "graph" for attr in op.attrs))
        if not any(dtype.is_complex for dtype in dtypes) and not any(map(_is_complex, nested)):
            return PassResult(graph, 0)
        count = sum(_is_complex(node) for node in graph.nodes())
        return PassResult(_Splitter().transform(graph), count)


def _is_complex(node: Node) -> bool:
    """Check whether a node has complex operands or results, or contains a graph with such nodes."""
    for value in (*node.operands, *node.results):
        if value.type.dtype.is_complex:
            return True
    graphs = [value for value in node.attrs.values() if isinstance(value, Graph)] if node.attrs else ()
    return any(_is_complex(inner) for inner_graph in graphs for inner in inner_graph.nodes())


class _Splitter(Reemitter):
    """Rewriter that keeps the types of arguments and outputs. Complex values are ``Complex`` or, where they come from
    outside, values of the new graph."""

    def __init__(self) -> None:
        super().__init__()
        self.split: dict[Value, Complex] = {}

    def transform(self, graph: Graph) -> Graph:
        """Return the rewritten copy."""
        self.target = Graph(graph.name)
        self.target.bound, self.target.assumptions = graph.bound, graph.assumptions
        self.target.set_outputs(self.outputs(self.run(graph, [self.copy_input(v) for v in graph.inputs])))
        return self.target

    def outputs(self, values: Sequence[Any]) -> list[Value]:
        """Convert results to outputs of the copy."""
        return [self.whole(v) for v in values]

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Emit the replacement of a node."""
        if not _is_complex(node) or node.op.has(Trait.STATE_READ):
            return self.copy_node(node, operands)
        if node.op.has(Trait.STATE_WRITE):
            self.copy_node(node, [operands[0], self.whole(operands[1])])
            return operands[1:]
        split = [self.parts(v) for v in operands]
        if held_graphs(node):
            return self._nested(node, split)
        with use(PartsDispatcher(self.target, node.location, f"{node.results[0].name}.")) as dispatcher:
            results = (
                dispatcher.constant(node.attrs["value"])
                if node.op is CONSTANT
                else apply_to_parts(node.op, split, node.attrs)
            )
        return results if isinstance(results, tuple) else (results,)

    def parts(self, value: Any) -> Any:
        """Return a value in the form that real ops take: complex values of the new graph as ``Complex``."""
        if isinstance(value, Complex) or not value.dtype.is_complex:
            return value
        if value not in self.split:
            with use(GraphDispatcher(self.target, value.node.location, f"{value.name}.")):
                self.split[value] = parts(view_as_real(value))
        return self.split[value]

    def whole(self, value: Any) -> Value:
        """Return a value of the new graph, joined from its parts if it is ``Complex``."""
        if not isinstance(value, Complex):
            return value
        with use(GraphDispatcher(self.target)):
            return view_as_complex(interleaved(value))

    def _nested(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Emit a node that applies graphs, with two operands and results for each complex one."""
        attrs = {**node.attrs, **_counts(node.attrs, operands)}
        attrs.update({name: _RealSplitter().transform(node.attrs[name]) for name in held_graphs(node)})
        results = iter(emit(self.target, node.op, _flat(operands), attrs, node.location, node.results[0].name))
        return [Complex(next(results), next(results)) if r.dtype.is_complex else next(results) for r in node.results]


class _RealSplitter(_Splitter):
    """Rewriter whose complex arguments and outputs become two each."""

    def outputs(self, values: Sequence[Any]) -> list[Value]:
        """Split complex outputs into two each."""
        return _flat(values)

    def copy_input(self, value: Value) -> Any:
        """Copy the argument; a complex one becomes two."""
        if not value.dtype.is_complex:
            return super().copy_input(value)
        type = TensorType(value.dtype.real, value.shape)
        return Complex(*(self.target.add_input(type, f"{value.name}.{suffix}") for suffix in ("re", "im")))


def _flat(values: Sequence[Any]) -> list[Value]:
    """Flatten complex values into two each."""
    return [component for v in values for component in ((v.real, v.imag) if isinstance(v, Complex) else (v,))]


def _counts(attrs: Attrs, operands: Sequence[Any]) -> Attrs:
    """Count the carries and sequences among the operands, when complex ones are two each."""
    counts, start = {}, 0
    for name in ("carries", "sequences"):
        if name in attrs:
            stop = start + attrs[name]
            counts[name], start = len(_flat(operands[start:stop])), stop
    return counts
