"""Writer of graphs as ONNX operators: node by node or, where a functional call has an operator, call by call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphc.base.dtypes import DType
from graphc.base.errors import UnsupportedError
from graphc.base.sizes.size import is_size
from graphc.interop.onnx_export.calls import ExportedCall
from graphc.interop.onnx_export.records import GraphRecord, NodeRecord, ValueRecord
from graphc.interop.onnx_export.sizes import Sizes, stated
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value, input_path
from graphc.ir.graph.interpret import bound_sizes, live_nodes
from graphc.ir.op import Trait
from graphc.ops import dispatch

Rule = Callable[..., Any]
"""``rule(writer, node, *inputs)``: appends operators for a node and returns the name, or names, of its results."""
CallRule = Callable[["GraphWriter", ExportedCall], Sequence[Any] | None]
"""Function that returns the names of a call's results (None for an unused result). Returns None, before it appends
anything, where the operator does not fit."""
SHARED = 64
"""Elements up to which equal constants are stored once."""


class Model:
    """State shared by the main graph of a model and its bodies."""

    def __init__(
        self,
        opset: int,
        rules: Mapping[str, Rule],
        call_rules: Mapping[Callable[..., Any], CallRule],
        calls_of: Callable[[Graph], Sequence[ExportedCall]],
        fixed_dimensions: Mapping[Any, Any],
    ):
        """Store the rules by op, the ``call_rules`` by function, and the resolved dimensions.

        ``calls_of`` returns the calls that created a graph's nodes. ``fixed_dimensions`` maps dimensions to their
        values in all calls of the model.
        """
        self.opset = opset
        self.rules = rules
        self.call_rules = call_rules
        self.calls_of = calls_of
        self.fixed_dimensions = fixed_dimensions
        self.initializers: dict[str, np.ndarray] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._name_counts: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """Return the name, with a number appended where it is in use."""
        count = self._name_counts.get(name)
        if count is None:
            self._name_counts[name] = 0
            return name
        self._name_counts[name] = count + 1
        return self.unique(f"{name}_{count + 1}")

    def array(self, name: str, array: np.ndarray) -> str:
        """Store an array under a name, which may get a number."""
        name = self.unique(name)
        self.initializers[name] = array
        return name

    def constant(self, array: np.ndarray) -> str:
        """Return the name of a stored array. Small equal arrays share one."""
        array = np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes() if array.size <= SHARED else b"")
        if array.size <= SHARED and key in self._constants:
            return self._constants[key]
        name = self.array("constant", array)
        if array.size <= SHARED:
            self._constants[key] = name
        return name


class GraphWriter:
    """Operators of one graph so far."""

    def __init__(self, model: Model, parent: GraphWriter | None = None):
        self.model = model
        self.parent = parent
        self.nodes: list[NodeRecord] = []
        self.module = ""
        """Path of the module whose nodes are being written."""
        self.sizes: Sizes | None = None if parent is None else parent.sizes
        self._names: dict[Value, str] = {}
        self._transposed: dict[str, tuple[str, Sequence[int]]] = {}
        """Source and dimension order of each transposed value."""

    # ---- for rules

    @property
    def opset(self) -> int:
        """Return the version of ONNX's operators to write."""
        return self.model.opset

    def add(self, op: str, *inputs: str, outputs: int = 1, **attrs: Any) -> Any:
        """Append an operator. Returns the name of its output, or a list of names for several."""
        name = self.model.unique(f"{_path(self.module)}/{op}")
        output_names = [self.model.unique(f"{name}_output_{i}") for i in range(outputs)]
        attributes = {k: self.at(tuple(v) if isinstance(v, list) else v) for k, v in attrs.items() if v is not None}
        for key, value in attributes.items():
            if any(map(is_size, value if isinstance(value, tuple) else (value,))):
                what = f"{op} needs a fixed {key}, but it differs from call to call: {value}"
                raise UnsupportedError(what, remedy="use fixed sizes there")
        self.nodes.append(NodeRecord(op, list(inputs), output_names, attributes, name, self.module))
        return output_names[0] if outputs == 1 else output_names

    def constant(self, array: Any, dtype: DType | None = None) -> str:
        """Return the name of a constant array or number."""
        return self.model.constant(np.asarray(array, None if dtype is None else dtype.numpy))

    def ints(self, *values: int) -> str:
        """Return the name of an i64 vector, as ONNX takes axes and sizes."""
        return self.model.constant(np.array(values, np.int64))

    def vector(self, shape: Sequence[Any]) -> str:
        """Return the name of a vector of sizes, which may be symbolic."""
        if not any(map(is_size, shape)):
            return self.ints(*shape)
        assert self.sizes is not None, "symbolic sizes need inputs"
        return self.sizes.vector(shape)

    def at(self, sizes: Any) -> Any:
        """Return sizes with fixed dimensions replaced by their values."""
        return bound_sizes(sizes, self.model.fixed_dimensions) if self.model.fixed_dimensions else sizes

    def cast(self, name: str, dtype: DType) -> str:
        """Write a cast to another element type."""
        return self.add("Cast", name, to=dtype)

    def transpose(self, name: str, permutation: Sequence[int]) -> str:
        """Permute the dimensions of a value. Consecutive transposes merge."""
        source, first = self._transposed.get(name, (name, range(len(permutation))))
        order = [first[p] for p in permutation]
        if order == sorted(order):
            return source
        result = self.add("Transpose", source, perm=order)
        self._transposed[result] = (source, order)
        return result

    def value(self, value: Value) -> str:
        """Return the name of a value of this graph or an enclosing one."""
        scope: GraphWriter | None = self
        while scope is not None:
            if value in scope._names:
                return scope._names[value]
            scope = scope.parent
        if value.node.op is CONSTANT:
            return self.constant(value.node.attrs["value"])
        self._write(value.node)
        return self._names[value]

    def known(self, value: Any) -> np.ndarray | None:
        """Return the elements of a constant or weight, None for computed values."""
        if not isinstance(value, Value):
            return None
        if value.node.op is CONSTANT:
            return value.node.attrs["value"]
        return self.model.initializers.get(self.value(value))

    def is_zero(self, value: Value) -> bool:
        """Check whether all elements are zero in each call, as far as visible through views."""
        while value.node.op.has(Trait.VIEW) and len(value.node.operands) == 1:
            value = value.node.operands[0]
        return value.node.op is CONSTANT and not value.node.attrs["value"].any()

    # ---- graphs

    def bind(self, values: Sequence[Value], names: Sequence[str]) -> None:
        """Map values of a graph to names."""
        self._names.update(zip(values, names, strict=True))

    def inline(self, graph: Graph, inputs: Sequence[str]) -> list[str]:
        """Append the operators of a graph applied to inputs. Returns the names of its outputs."""
        self.bind(graph.inputs, inputs)
        module = self.module
        self.run(graph)
        self.module = module
        outputs = [self.value(v) for v in graph.outputs]
        for value in (*graph.inputs, *(v for node in graph.nodes() for v in node.results)):
            self._names.pop(value, None)  # the graph may be inlined again with other inputs
        return outputs

    def run(self, graph: Graph) -> None:
        """Append operators for everything the outputs of a graph need. Its inputs have names already."""
        calls = [c for c in self.model.calls_of(graph) if c.function in self.model.call_rules]
        live = live_nodes(graph, [*graph.outputs, *(v for c in calls for v in _values(tuple(c.arguments.values())))])
        written = 0
        for node in graph.nodes():
            if node.id < written or node.op is CONSTANT:
                continue
            while calls and calls[0].first <= node.id:
                call = calls.pop(0)
                if node.id < call.last and self._call(graph, call, live):
                    written = call.last
                    break
            if node.id >= written and node in live and not all(v in self._names for v in node.results):
                self._write(node)

    def body(self, name: str, leading: Sequence[ValueRecord], formal: Sequence[Value]) -> Any:
        """Return a writer for the body of a loop or branch, and its inputs.

        The inputs are the ``leading`` ones, then one for each of the ``formal`` values of its graph.
        """
        inner = GraphWriter(self.model, self)
        inner.module = self.module
        inputs = list(leading)
        for value in formal:
            input_name = self.model.unique(f"{_path(self.module)}/{name}_{value.name}")
            inputs.append(self.record(input_name, value.dtype, value.shape))
            inner.bind([value], [input_name])
        return inner, inputs

    def finish(self, name: str, inputs: list[ValueRecord], outputs: Sequence[tuple[str, Value]]) -> GraphRecord:
        """Return the record of a body with these outputs, each the output of an operator of its own."""
        available = {n for node in self.nodes for n in node.outputs}
        results = []
        for candidate, value in outputs:
            own = candidate if candidate in available else self.add("Identity", candidate)
            available.discard(own)
            results.append(self.record(own, value.dtype, value.shape))
        return GraphRecord(name, inputs, results, self.nodes)

    def record(self, name: str, dtype: DType, shape: Sequence[Any]) -> ValueRecord:
        """Return the name and type of an input or output."""
        return ValueRecord(name, dtype, tuple(stated(self.at(n)) for n in shape))

    # ---- nodes and calls

    def _write(self, node: Node) -> None:
        inputs = [self.value(v) for v in node.operands]
        self.module = node.location.module
        rule = (
            _pass_through
            if node.op.has(Trait.IDENTITY)
            else self.model.rules.get(node.op.name, GraphWriter._decomposed)
        )
        with _at(node):
            result_names = rule(self, node, *inputs)
        self.bind(node.results, [result_names] if isinstance(result_names, str) else result_names)

    def _decomposed(self, node: Node, *inputs: str) -> list[str]:
        """Write an op without a rule as the ops of its decomposition."""
        graph, results = Graph(node.op.name), None
        if node.op.decompose is not None:
            operands = [graph.add_input(v.type, v.name) for v in node.operands]
            with dispatch.use(dispatch.GraphDispatcher(graph, node.location)):
                results = node.op.decompose(*operands, **node.attrs)
        if results is None:
            raise unsupported(node, f"ONNX has no operator for {node.op.name}")
        graph.set_outputs(results if isinstance(results, tuple) else (results,))
        return self.inline(graph, inputs)

    def _call(self, graph: Graph, call: ExportedCall, live: set[Node]) -> bool:
        """Write a call as an operator. Returns False where its nodes are needed, or where no operator fits."""
        results = [v for v in call.results if isinstance(v, Value)]
        own = {v for v in results if call.first <= v.node.id < call.last}
        outputs = set(graph.outputs)

        def is_read_outside(value: Value) -> bool:
            users = (user for user, _ in graph.uses(value))
            return value in outputs or any(u in live and not call.first <= u.id < call.last for u in users)

        inside = [n for n in graph.nodes() if call.first <= n.id < call.last and n.op is not CONSTANT]
        if any(v not in own and is_read_outside(v) for n in inside for v in n.results):
            return False
        call.used = [v in own and is_read_outside(v) for v in results]
        if len(results) != len(call.results) or not any(call.used):
            return False
        first = next(n for n in inside if n.op is not INPUT)
        self.module = first.location.module
        with _at(first):
            names = self.model.call_rules[call.function](self, call)
        if names is None:
            return False
        self._names.update({v: n for v, n, used in zip(results, names, call.used, strict=True) if used})
        return True


def _pass_through(w: GraphWriter, node: Node, x: str) -> str:
    return x


@contextmanager
def _at(node: Node) -> Iterator[None]:
    """Add the node to errors raised inside."""
    try:
        yield
    except UnsupportedError as error:
        error.where = error.where or _application(node)
        error.origin = error.origin or node.location.describe() or None
        raise


def _application(node: Node) -> str:
    return f"{node.op.name}({', '.join(str(v) for v in node.operands)})"


def _values(argument: Any) -> list[Value]:
    if isinstance(argument, tuple):
        return [v for element in argument for v in _values(element)]
    return [argument] if isinstance(argument, Value) else []


def _path(module: str) -> str:
    """Return ``/layers.0/linear`` for ``layers.0.linear``: a number belongs to the list before it."""
    components: list[str] = []
    for component in module.split(".") if module else []:
        if component.isdigit() and components:
            components[-1] += f".{component}"
        else:
            components.append(component)
    return "".join(f"/{component}" for component in components)


_REMEDIES = {
    Trait.RANDOM: "call model.eval() before the export, or pass random numbers as an input",
    Trait.HOST: "compute it with operations of graphc; graphc's own files (.gcm) hold no Python functions either",
    Trait.STATE_WRITE: "call model.eval() before the export, or return the new content as an output",
}


def is_small(dtype: DType) -> bool:
    """Check for bools and integers of 8 or 16 bits, which few operators take. They are computed in wider types."""
    return dtype.kind in "iub" and dtype.bits < 32


def unsupported(node: Node, what: str, remedy: str | None = None) -> UnsupportedError:
    """Return the error for a node without an operator, with the op, module path, line of the user, and a remedy."""
    trait_remedy = next((text for trait, text in _REMEDIES.items() if node.op.has_any(trait)), None)
    name = input_path(node.operands[0]) if node.op.has(Trait.STATE_WRITE) else ""
    return UnsupportedError(
        f"{what}{f' ({name})' if name else ''}",
        where=_application(node),
        origin=node.location.describe() or None,
        remedy=remedy
        or trait_remedy
        or "use other operations there, or export to a .gcm file, which holds all of graphc's",
    )
