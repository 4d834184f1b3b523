"""Graph interpreters: the base loop, the numpy evaluator (the meaning of a graph), copies, binding of sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, GraphcError
from graphc.base.sizes.assumptions import holding
from graphc.base.sizes.named_dims import chosen_sizes, size_of
from graphc.base.sizes.shape_patterns import Number, ShapePatterns, as_pattern
from graphc.base.sizes.size import Dimension, at, is_size
from graphc.base.sizes.size_limits import limits, sizes_now
from graphc.base.sizes.size_questions import Asker, asker
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_path, input_pattern, input_role
from graphc.ir.op import Attrs, Trait
from graphc.ir.types import TensorType


class Interpreter:
    """Node-by-node interpreter over any domain of ``apply``; base class of analyses and passes."""

    def run(self, graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Bind ``arguments`` to the inputs, apply every node in order, return the outputs.

        Errors raised by ``apply`` get the user's line.
        """
        if len(arguments) != len(graph.inputs):
            raise ArgumentError(f"@{graph.name} takes {len(graph.inputs)} arguments, got {len(arguments)}")
        values: dict[Value, Any] = dict(zip(graph.inputs, arguments, strict=True))
        self.values = values
        apply = self.apply
        for node in graph.nodes():
            operands = [values[v] for v in node.operands]
            try:
                results = apply(node, operands)
            except GraphcError as error:
                error.origin = error.origin or node.location.describe() or None
                raise
            if len(results) == len(node.results) == 1:
                values[node.results[0]] = results[0]
            else:
                values.update(zip(node.results, results, strict=True))
        return tuple(values[v] for v in graph.outputs)

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Return the results of one node, one entry per result."""
        raise NotImplementedError


def solved_sizes(graph: Graph, arguments: Sequence[Any]) -> dict[Dimension, int]:
    """Return the sizes of the named dimensions of a graph in a call with numpy arrays; raise ArgumentError or
    ShapeError."""
    shapes = [input_pattern(v) for v in graph.inputs]
    if len(arguments) != len(shapes) or not any(is_size(n) or type(s) is Number for s in shapes for n in s):
        return {}
    patterns = ShapePatterns(shapes, [f"%{v.name}" for v in graph.inputs])
    return patterns.solve([as_pattern(a, s) for a, s in zip(arguments, shapes, strict=True)])


class Evaluator(Interpreter):
    """Reference interpreter, which defines the meaning of a graph: it runs every op by its numpy reference, on a
    private copy of the state inputs.

    Named dimensions take their sizes from the arguments. After ``run``, ``state`` maps the path of each written state
    or param input to its new array.
    """

    def __init__(self) -> None:
        self.state: dict[str, np.ndarray] = {}
        self.sizes: dict[Dimension, int] = {}

    def run(self, graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs for numpy arrays; raise ShapeError if no sizes of the named dimensions match their
        shapes."""
        self.sizes = solved_sizes(graph, arguments)
        return super().run(graph, arguments)

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Evaluate one node, and check the types of the reference's results."""
        results = node.op.evaluate(operands, bound_attrs(node, self.sizes) if self.sizes else node.attrs)
        for value, array in zip(node.results, results, strict=True):
            shape = bound_sizes(value.shape, self.sizes) if self.sizes else value.shape
            if array.shape != shape or array.dtype != value.dtype.numpy:
                raise GraphcError(f"reference of {node.op.name} gave {array.dtype}{array.shape}, type is {value.type}")
        if node.op.has(Trait.STATE_WRITE):
            self.state[input_path(node.operands[0])] = results[0]
        return results


def evaluate(graph: Graph, arguments: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the outputs of the graph for numpy arguments, computed by the numpy references."""
    return Evaluator().run(graph, [np.asarray(a) for a in arguments])


class Reemitter(Interpreter):
    """Rewriter that copies a graph node by node into a new one; transformations override ``apply``.

    Locations and names survive; ``values`` maps values of the old graph to values of the new one.
    """

    def __init__(self, name: str | None = None):
        self.name = name

    def transform(self, graph: Graph) -> Graph:
        """Return the transformed copy, which assumes the same of its dimensions."""
        self.target = Graph(self.name or graph.name)
        self.target.bound, self.target.assumptions = graph.bound, graph.assumptions
        self.target.classes = graph.classes
        with answering(graph):
            arguments = [self.copy_input(v) for v in graph.inputs]
            self.target.set_outputs(self.run(graph, arguments))
        return self.target

    def copy_input(self, value: Value) -> Value:
        """Add the same argument to the new graph."""
        return self.target.add_input(value.type, value.name, *input_role(value))

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Copy one node; transformations override this."""
        return self.copy_node(node, operands)

    def copy_node(self, node: Node, operands: list[Any], attrs: Attrs | None = None) -> tuple[Value, ...]:
        """Emit the same op on new operands, optionally with other attributes. Results keep their types where operands
        do; else the type rule runs again."""
        results, op = node.results, node.op
        first = results[0]
        if len(results) == 1:
            name, types = first.name, (first.type,)
        else:
            name, types = first.name.removesuffix(".0"), tuple([r.type for r in results])
        is_scalar = op is CONSTANT and not first.type.shape
        if attrs is None and not is_scalar and _have_same_types(node.operands, operands):
            return self.target.add_node(op, operands, node.attrs, types, node.location, name).results
        return emit(self.target, node.op, operands, node.attrs if attrs is None else attrs, node.location, name)


def _have_same_types(old: Sequence[Value], new: Sequence[Value]) -> bool:
    """Check whether values have equal types; sizes known only at run time must be the same objects."""
    for before, after in zip(old, new, strict=True):
        a, b = before.type, after.type
        if a is b or (a.dtype is b.dtype and a.shape is b.shape):
            continue
        if a.dtype is not b.dtype or len(a.shape) != len(b.shape):
            return False
        if not all([m is n or (type(m) is int and type(n) is int and m == n) for m, n in zip(a.shape, b.shape)]):  # noqa: B905
            return False
    return True


class _Binder(Reemitter):
    """Rewriter that replaces sizes of dimensions."""

    def __init__(self, sizes: Mapping[Dimension, Any]):
        super().__init__()
        self.sizes = sizes

    def copy_input(self, value: Value) -> Value:
        """Add an argument of the new shape."""
        type = TensorType(value.dtype, bound_sizes(value.shape, self.sizes))
        cls, path, equals = input_role(value)
        return self.target.add_input(type, value.name, cls, path, bound_sizes(equals, self.sizes))

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Copy the node with new attributes, and infer its type again."""
        return self.copy_node(node, operands, bound_attrs(node, self.sizes))


def bind(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Return the graph with new sizes for its dimensions: by name, numbers or other sizes. Other dimensions stay.

    With numbers for all of them, it equals the trace for these sizes. Raises ArgumentError for an unknown name and for
    a number outside of its range, and the errors of the type rules where shapes do not fit.
    """
    return _Binder(chosen_sizes(graph.dims, sizes)).transform(graph)


def settle(graph: Graph) -> Graph:
    """Specialize the graph to its assumptions: dimensions get narrower ranges, or become numbers, multiples or other
    dimensions, so that type rules are decidable. Return the graph itself if no assumption restricts a dimension."""
    sizes = limits(graph.assumptions, graph.dims)
    if not sizes:
        return graph
    with assumed(graph, sizes):
        return bind(graph, sizes)


@contextmanager
def assumed(
    graph: Graph, sizes: Mapping[str, Any] = MappingProxyType({}), questions: ContextVar[Asker | None] = asker
) -> Iterator[None]:
    """Assume what the graph assumes inside the ``with`` block, also with ``sizes`` in place of some dimensions: type
    rules then repeat the comparisons of the trace. For ``questions`` see base.sizes.assumptions.holding."""
    now = {name: size_of(d) for name, d in graph.dims.items()} | dict(sizes) if graph.assumptions else {}
    with holding(graph.assumptions, sizes_now(graph.assumptions, now), questions):
        yield


def answering(graph: Graph) -> AbstractContextManager[None]:
    """Answer questions about sizes from the graph's assumptions inside the ``with`` block, unless a trace, or a caller
    that replaces dimensions, answers them already."""
    return assumed(graph) if graph.assumptions and asker.get() is None else nullcontext()


def bound_sizes(value: Any, sizes: Mapping[Dimension, Any]) -> Any:
    """Substitute sizes of dimensions in a size, or in nested tuples of sizes."""
    if type(value) is tuple:
        return tuple([bound_sizes(entry, sizes) for entry in value])
    return at(value, sizes) if is_size(value) else value


def bound_attrs(node: Node, sizes: Mapping[Dimension, Any]) -> Attrs:
    """Substitute sizes of dimensions in the attributes of a node, sub-graphs included."""
    return {
        name: _Binder(sizes).transform(value) if isinstance(value, Graph) else bound_sizes(value, sizes)
        for name, value in node.attrs.items()
    }


def copy(graph: Graph) -> Graph:
    """Return an equal graph that shares nothing but constant arrays."""
    return Reemitter().transform(graph)


def live_nodes(graph: Graph, roots: Iterable[Value]) -> set[Node]:
    """Return the nodes from which ``roots`` can be reached, the roots' own nodes included."""
    live: set[Node] = set()
    stack = [v.node for v in roots]
    while stack:
        node = stack.pop()
        if node not in live:
            live.add(node)
            stack += [v.node for v in node.operands]
    return live


def has_effect(node: Node) -> bool:
    """Return whether a node must run although its results are not used."""
    return not node.op.has(Trait.PURE) or (node.op.has(Trait.ORDERED) and node.attrs["ordered"])
