"""Writes graphs down as ONNX operators, node by node or, where a functional call has an operator, call by call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphc.base.dtypes import DType
from graphc.base.errors import UnsupportedError
from graphc.base.sizes.size import is_size
from graphc.interop.onnx_export.calls import Call
from graphc.interop.onnx_export.records import GraphRecord, NodeRecord, ValueRecord
from graphc.interop.onnx_export.sizes import Sizes, stated
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value, input_path
from graphc.ir.graph.interpret import bound_sizes, live_nodes
from graphc.ir.op import Trait
from graphc.ops import dispatch

Rule = Callable[..., Any]
"""``rule(writer, node, *inputs)``: appends operators for a node; the name of its result, or names of several."""
CallRule = Callable[["Writer", Call], Sequence[Any] | None]
"""Names of the results of a call (None for one that nothing reads), or None where the operator does not fit, before it
has appended any."""
SHARED = 64
"""Constants of up to so many elements are one where they are equal."""


class Model:
    """What the graph of a model and the bodies inside of it share."""

    def __init__(
        self,
        opset: int,
        rules: Mapping[str, Rule],
        call_rules: Mapping[Callable[..., Any], CallRule],
        calls_of: Callable[[Graph], Sequence[Call]],
        chosen: Mapping[Any, Any],
    ):
        """``rules`` by op, ``call_rules`` by function; ``calls_of`` gives the calls that made a graph's nodes,
        ``chosen`` what dimensions are in all calls of the model."""
        self.opset = opset
        self.rules = rules
        self.call_rules = call_rules
        self.calls_of = calls_of
        self.chosen = chosen
        self.initializers: dict[str, np.ndarray] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._taken: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """The name, with a number behind it where it is taken."""
        count = self._taken.get(name)
        if count is None:
            self._taken[name] = 0
            return name
        self._taken[name] = count + 1
        return self.unique(f"{name}_{count + 1}")

    def array(self, name: str, array: np.ndarray) -> str:
        """An array that the model holds under a name, which may get a number."""
        name = self.unique(name)
        self.initializers[name] = array
        return name

    def constant(self, array: np.ndarray) -> str:
        """The name of an array that the model holds; equal small ones are one."""
        array = np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes() if array.size <= SHARED else b"")
        if array.size <= SHARED and key in self._constants:
            return self._constants[key]
        name = self.array("constant", array)
        if array.size <= SHARED:
            self._constants[key] = name
        return name


class Writer:
    """The operators of one graph so far."""

    def __init__(self, model: Model, parent: Writer | None = None):
        self.model = model
        self.parent = parent
        self.nodes: list[NodeRecord] = []
        self.module = ""
        """Path of the module whose nodes are being written."""
        self.sizes: Sizes | None = None if parent is None else parent.sizes
        self._names: dict[Value, str] = {}
        self._transposed: dict[str, tuple[str, Sequence[int]]] = {}
        """Values that a transpose has made: of what, and the order of its dimensions."""

    # ---- for rules

    @property
    def opset(self) -> int:
        """The version of ONNX's operators that may be used."""
        return self.model.opset

    def add(self, op: str, *inputs: str, outputs: int = 1, **attrs: Any) -> Any:
        """Appends an operator. The name of its output, or a list of the names of several."""
        name = self.model.unique(f"{_path(self.module)}/{op}")
        made = [self.model.unique(f"{name}_output_{i}") for i in range(outputs)]
        given = {k: self.at(tuple(v) if isinstance(v, list) else v) for k, v in attrs.items() if v is not None}
        for key, value in given.items():
            if any(map(is_size, value if isinstance(value, tuple) else (value,))):
                what = f"{op} takes no {key} that differs from call to call: {value}"
                raise UnsupportedError(what, remedy="fixed sizes there")
        self.nodes.append(NodeRecord(op, list(inputs), made, given, name, self.module))
        return made[0] if outputs == 1 else made

    def constant(self, array: Any, dtype: DType | None = None) -> str:
        """An array or number that the model holds."""
        return self.model.constant(np.asarray(array, None if dtype is None else dtype.numpy))

    def ints(self, *values: int) -> str:
        """A vector of i64, as ONNX takes axes and sizes."""
        return self.model.constant(np.array(values, np.int64))

    def vector(self, shape: Sequence[Any]) -> str:
        """A vector of sizes, which may be known in a call only."""
        if not any(map(is_size, shape)):
            return self.ints(*shape)
        assert self.sizes is not None, "sizes are computed where there are inputs"
        return self.sizes.vector(shape)

    def at(self, sizes: Any) -> Any:
        """Sizes as they are in all calls of the model."""
        return bound_sizes(sizes, self.model.chosen) if self.model.chosen else sizes

    def cast(self, name: str, dtype: DType) -> str:
        """A value as another element type."""
        return self.add("Cast", name, to=dtype)

    def transpose(self, name: str, permutation: Sequence[int]) -> str:
        """A value with its dimensions in another order; of one that was transposed before, that from the first one."""
        source, first = self._transposed.get(name, (name, range(len(permutation))))
        order = [first[p] for p in permutation]
        if order == sorted(order):
            return source
        made = self.add("Transpose", source, perm=order)
        self._transposed[made] = (source, order)
        return made

    def value(self, value: Value) -> str:
        """The name of a value of the graph, or of one around it."""
        place: Writer | None = self
        while place is not None:
            if value in place._names:
                return place._names[value]
            place = place.parent
        if value.node.op is CONSTANT:
            return self.constant(value.node.attrs["value"])
        self._write(value.node)
        return self._names[value]

    def known(self, value: Any) -> np.ndarray | None:
        """The elements of a constant or weight; None for what a call computes."""
        if not isinstance(value, Value):
            return None
        if value.node.op is CONSTANT:
            return value.node.attrs["value"]
        return self.model.initializers.get(self.value(value))

    def is_zero(self, value: Value) -> bool:
        """Whether all elements are zeros in each call, as far as that is seen through views."""
        while value.node.op.has(Trait.VIEW) and len(value.node.operands) == 1:
            value = value.node.operands[0]
        return value.node.op is CONSTANT and not value.node.attrs["value"].any()

    # ---- graphs

    def bind(self, values: Sequence[Value], names: Sequence[str]) -> None:
        """Gives values of a graph the names of what stands for them."""
        self._names.update(zip(values, names, strict=True))

    def inline(self, graph: Graph, inputs: Sequence[str]) -> list[str]:
        """Appends what a graph computes of its inputs; the names of its outputs."""
        self.bind(graph.inputs, inputs)
        module = self.module
        self.run(graph)
        self.module = module
        found = [self.value(v) for v in graph.outputs]
        for value in (*graph.inputs, *(v for node in graph.nodes() for v in node.results)):
            self._names.pop(value, None)  # it may be applied again to others
        return found

    def run(self, graph: Graph) -> None:
        """Appends what the outputs of a graph need; its inputs have names."""
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
        """A writer for the body of a loop or branch, and its inputs: the ``leading`` ones, then one for each of the
        ``formal`` values of its graph."""
        inner = Writer(self.model, self)
        inner.module = self.module
        inputs = list(leading)
        for value in formal:
            made = self.model.unique(f"{_path(self.module)}/{name}_{value.name}")
            inputs.append(self.record(made, value.dtype, value.shape))
            inner.bind([value], [made])
        return inner, inputs

    def finish(self, name: str, inputs: list[ValueRecord], outputs: Sequence[tuple[str, Value]]) -> GraphRecord:
        """The record of a body that gives these values, each made by an operator of its own."""
        made = {n for node in self.nodes for n in node.outputs}
        results = []
        for given, value in outputs:
            own = given if given in made else self.add("Identity", given)
            made.discard(own)
            results.append(self.record(own, value.dtype, value.shape))
        return GraphRecord(name, inputs, results, self.nodes)

    def record(self, name: str, dtype: DType, shape: Sequence[Any]) -> ValueRecord:
        """Name and type of an input or output."""
        return ValueRecord(name, dtype, tuple(stated(self.at(n)) for n in shape))

    # ---- nodes and calls

    def _write(self, node: Node) -> None:
        inputs = [self.value(v) for v in node.operands]
        self.module = node.location.module
        rule = _handed_on if node.op.has(Trait.IDENTITY) else self.model.rules.get(node.op.name, Writer._decomposed)
        with _at(node):
            given = rule(self, node, *inputs)
        self.bind(node.results, [given] if isinstance(given, str) else given)

    def _decomposed(self, node: Node, *inputs: str) -> list[str]:
        """An op without a rule as the ops that it is composed of."""
        graph, results = Graph(node.op.name), None
        if node.op.decompose is not None:
            operands = [graph.add_input(v.type, v.name) for v in node.operands]
            with dispatch.use(dispatch.GraphDispatcher(graph, node.location)):
                results = node.op.decompose(*operands, **node.attrs)
        if results is None:
            raise unsupported(node, f"ONNX has no operator for {node.op.name}")
        graph.set_outputs(results if isinstance(results, tuple) else (results,))
        return self.inline(graph, inputs)

    def _call(self, graph: Graph, call: Call, live: set[Node]) -> bool:
        """Writes a call as an operator; False where that must not be, or there is none that fits."""
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
            given = self.model.call_rules[call.function](self, call)
        if given is None:
            return False
        self._names.update({v: n for v, n, used in zip(results, given, call.used, strict=True) if used})
        return True


def _handed_on(w: Writer, node: Node, x: str) -> str:
    return x


@contextmanager
def _at(node: Node) -> Iterator[None]:
    """Errors inside say what node they are about."""
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
        return [v for part in argument for v in _values(part)]
    return [argument] if isinstance(argument, Value) else []


def _path(module: str) -> str:
    """``/layers.0/linear`` for ``layers.0.linear``: a number belongs to the list before it."""
    parts: list[str] = []
    for part in module.split(".") if module else []:
        if part.isdigit() and parts:
            parts[-1] += f".{part}"
        else:
            parts.append(part)
    return "".join(f"/{part}" for part in parts)


_REMEDIES = {
    Trait.RANDOM: "model.eval() before the export, or random numbers as an input",
    Trait.HOST: "the same in operations of graphc; files of graphc (.gcm) hold no Python functions either",
    Trait.STATE_WRITE: "model.eval() before the export; or return the new content as an output",
}


def is_small(dtype: DType) -> bool:
    """Whether elements are bools or whole numbers of 8 or 16 bits, which few operators take: they are computed with in
    wider types."""
    return dtype.kind in "iub" and dtype.bits < 32


def unsupported(node: Node, what: str, remedy: str | None = None) -> UnsupportedError:
    """The error for a node that no operator computes: the op, module path and line of the user, and what helps."""
    known = next((text for trait, text in _REMEDIES.items() if node.op.has_any(trait)), None)
    name = input_path(node.operands[0]) if node.op.has(Trait.STATE_WRITE) else ""
    return UnsupportedError(
        f"{what}{f' ({name})' if name else ''}",
        where=_application(node),
        origin=node.location.describe() or None,
        remedy=remedy or known or "other operations there, or a .gcm file, which holds all of graphc's",
    )
