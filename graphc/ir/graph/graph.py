"""The graph: nodes, values and their uses, which only this file modifies; networkx sees it as a multigraph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import DType, elements, layout_of
from graphc.base.errors import VerifyError
from graphc.base.lazy import deferred
from graphc.base.location import UNKNOWN, Location
from graphc.base.sizes.assumptions import Assumption
from graphc.base.sizes.named_dims import dimensions
from graphc.base.sizes.shape_patterns import Number
from graphc.base.sizes.size import Dimension, is_size
from graphc.ir.graph.text import print_graph
from graphc.ir.literal import print_scalar
from graphc.ir.op import INPUT_CLASSES, Attr, Attrs, Bounds, OpDef, Sample, Trait, Types, register
from graphc.ir.types import TensorType

if TYPE_CHECKING:
    import networkx as nx

INPUT = OpDef(
    name="input",
    doc="An argument of the graph; it appears in the header of the text only.",
    operands=(),
    attrs=(
        Attr("cls", "str", "one of input, param, state, weight"),
        Attr("path", "str", "qualified name, e.g. fc1.weight; empty for plain inputs", "", False),
        Attr("equals", "int", "the size that its only element equals in each call, if any", None, False),
    ),
    infer=lambda **attrs: (),
)


def _extremes(array: np.ndarray) -> Bounds | None:
    counts = array.size and array.dtype.kind in "iub"
    return (int(array.min()), int(array.max())) if counts else None


CONSTANT = register(
    OpDef(
        name="constant",
        doc="A constant array; scalars are interned per graph and printed in place, e.g. f32(0.5).",
        operands=(),
        attrs=(Attr("value", "array", "the data"),),
        infer=lambda value: TensorType(layout_of(value.dtype), value.shape),
        reference=lambda value: value,
        traits=Trait.PURE | Trait.GENERATOR,
        bounds=lambda ranges, types, attrs: _extremes(attrs["value"]),
        samples=lambda: [Sample((), {"value": np.arange(6, dtype=np.float32).reshape(2, 3)})],
    )
)


class Value:
    """A result of a node. Values are compared by identity."""

    __slots__ = ("index", "name", "node", "type")

    def __init__(self, node: Node, index: int, type: TensorType, name: str):
        self.node = node
        self.index = index
        self.type = type
        self.name = name

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of each dimension."""
        return self.type.shape

    @property
    def is_scalar_constant(self) -> bool:
        """Whether this is an interned scalar constant."""
        return self.node.op is CONSTANT and not self.type.shape

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


class Node:
    """An application of an op. ``operands`` is authoritative; the graph's edges mirror it."""

    __slots__ = ("attrs", "id", "location", "op", "operands", "results")

    def __init__(self, id: int, op: OpDef, operands: tuple[Value, ...], attrs: Attrs, location: Location):
        self.id = id
        self.op = op
        self.operands = operands
        self.attrs = attrs
        self.location = location
        self.results: tuple[Value, ...] = ()

    @property
    def result(self) -> Value:
        """The only result; raises VerifyError when there are several."""
        if len(self.results) != 1:
            raise VerifyError(f"{self.op.name} has {len(self.results)} results")
        return self.results[0]

    def __repr__(self) -> str:
        return f"<{self.op.name} #{self.id}>"


class Graph:
    """A static graph with typed inputs and outputs. Nodes keep their creation order, so that rewrites are
    deterministic."""

    def __init__(self, name: str = "main"):
        self.name = name
        self.inputs: list[Value] = []
        self.bound: Mapping[str, Any] = {}
        """Outside tensors behind params and states, by path, if the graph is the trace of a module. Text and equality
        ignore them."""
        self.assumptions: Sequence[Assumption] = ()
        """Assumptions of the trace about sizes; the graph is valid only for sizes that satisfy them. Not in the
        text."""
        self.classes: Mapping[str, str] = {}
        """Classes of the modules that made nodes, by path, if the graph is the trace of a module. Text and equality
        ignore them."""
        self._outputs: list[Value] = []
        self._output_counts: Counter[Value] = Counter()
        self._edges: dict[Node, dict[tuple[Node, int], int]] = {}
        """See ``edges``."""
        self._next_id = 0
        self._names: dict[str, int] = {}
        self._scalars: dict[tuple[str, bytes], Value] = {}
        self._order: list[Node] | None = None
        self._ops: set[OpDef] | None = None
        """Ops of the nodes in ``_order``, once ``nodes_of`` has asked for them."""
        self._ids_are_topological = True

    # ---- building

    def add_input(
        self, type: TensorType, name: str, cls: str = "input", path: str = "", equals: int | None = None
    ) -> Value:
        """Append an argument of class ``cls``, one of INPUT_CLASSES. ``equals`` is a size that its only element equals,
        a whole number from each call."""
        if cls not in INPUT_CLASSES:
            raise VerifyError(f"input class {cls!r} is not one of {', '.join(INPUT_CLASSES)}")
        attrs = {"cls": cls, "path": path} | ({} if equals is None else {"equals": equals})
        node = self._new_node(INPUT, (), attrs, UNKNOWN)
        self._set_results(node, (type,), name)
        self.inputs.append(node.results[0])
        return node.results[0]

    def add_node(
        self,
        op: OpDef,
        operands: Sequence[Value],
        attrs: Attrs,
        types: Types,
        location: Location = UNKNOWN,
        name: str | None = None,
    ) -> Node:
        """Append a node. The caller normalizes ``attrs`` and infers ``types`` (see ir.graph.build)."""
        node = self._new_node(op, tuple(operands), attrs, location)
        self._set_results(node, types, name or op.name)
        edges, id = self._edges, node.id
        for key, operand in enumerate(node.operands):
            source = operand.node
            readers = edges.get(source)
            if readers is None:
                raise _foreign_operand(node, key, operand)
            readers[node, key] = operand.index
            if source.id > id:
                self._ids_are_topological = False
        return node

    def scalar(self, value: bool | int | float | np.generic | np.ndarray, dtype: DType) -> Value:
        """Return the interned scalar constant of that value and type."""
        array = elements(value, dtype)
        key = (dtype.name, array.tobytes())
        constant = self._scalars.get(key)
        if constant is None:
            attrs = CONSTANT.normalize({"value": array})
            name = print_scalar(array, dtype)
            constant = self.add_node(CONSTANT, (), attrs, (_scalar_type(dtype),), name=name).results[0]
            self._scalars[key] = constant
        return constant

    def _new_node(self, op: OpDef, operands: tuple[Value, ...], attrs: Attrs, location: Location) -> Node:
        node = Node(self._next_id, op, operands, attrs, location)
        self._next_id += 1
        self._edges[node] = {}
        self._order = None
        return node

    def _set_results(self, node: Node, types: Types, name: str) -> None:
        if len(types) == 1:
            if name in self._names:
                name = self.unique_name(name)
            else:
                self._names[name] = 0
            node.results = (Value(node, 0, types[0], name),)
        else:
            values = [Value(node, i, t, self.unique_name(f"{name}.{i}")) for i, t in enumerate(types)]
            node.results = tuple(values)

    def unique_name(self, hint: str) -> str:
        """Return ``hint`` if it is free, else ``hint.N``, and reserve the name."""
        name = hint
        while name in self._names:
            self._names[hint] += 1
            name = f"{hint}.{self._names[hint]}"
        self._names[name] = 0
        return name

    def rename(self, value: Value, hint: str) -> None:
        """Give a value another name (made unique), and free the old one."""
        self._names.pop(value.name, None)
        value.name = self.unique_name(hint)

    def _connect(self, node: Node, key: int, operand: Value) -> None:
        edges = self._edges.get(operand.node)
        if edges is None:
            raise _foreign_operand(node, key, operand)
        edges[node, key] = operand.index
        if operand.node.id > node.id:
            self._ids_are_topological = False
        self._order = None

    # ---- reading

    @property
    def next_id(self) -> int:
        """Id of the next new node; ids are in creation order."""
        return self._next_id

    def created_since(self, id: int) -> list[Node]:
        """Return the present nodes whose ids are at least ``id``, inputs included, in creation order."""
        nodes = list(takewhile(lambda node: node.id >= id, reversed(self._edges)))
        nodes.reverse()
        return nodes

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Returned values."""
        return tuple(self._outputs)

    def set_outputs(self, values: Iterable[Value]) -> None:
        """Replace the returned values."""
        self._outputs = list(values)
        self._output_counts = Counter(self._outputs)

    def nodes(self) -> list[Node]:
        """Return all nodes except inputs in topological order. Do not modify the list.

        Nodes are in creation order, except that a node created later than its user comes right before that user:
        rewrites neither reorder effects nor move the rest of the program.
        """
        if self._order is None:
            ordered = list(self._edges) if self._ids_are_topological else self._pulled_order()
            self._order = [n for n in ordered if n.op is not INPUT]
            self._ops = None
        return self._order

    def nodes_of(self, fits: Callable[[OpDef], bool]) -> list[Node]:
        """Return the nodes whose ops fit, in topological order. ``fits`` is called once for each op."""
        nodes = self.nodes()
        if self._ops is None:
            self._ops = {n.op for n in nodes}
        ops = {op for op in self._ops if fits(op)}
        return [n for n in nodes if n.op in ops] if ops else []

    def having(self, traits: Trait) -> list[Node]:
        """Return the nodes whose ops have all these traits, in topological order."""
        return self.nodes_of(lambda op: op.has(traits))

    def _pulled_order(self) -> list[Node]:
        placed: dict[Node, None] = {}
        for root in self._edges:
            if all([v.node in placed for v in root.operands]):
                placed[root] = None
                continue
            stack, open_nodes = [root], set[Node]()
            while stack:
                node = stack[-1]
                waiting = [v.node for v in node.operands if v.node not in placed]
                if node in placed or not waiting:
                    placed.setdefault(stack.pop())
                elif not open_nodes.isdisjoint(waiting) or node in waiting:
                    raise VerifyError(f"{node.op.name} (%{node.results[0].name}) depends on itself")
                else:
                    open_nodes.add(node)
                    stack.extend(reversed(waiting))
        return list(placed)

    def uses(self, value: Value) -> list[tuple[Node, int]]:
        """Return (node, operand index) of every use, in creation order; outputs are not included."""
        return sorted(self._using(value), key=lambda use: (use[0].id, use[1]))

    def is_used(self, value: Value) -> bool:
        """Check whether a node or an output of the graph uses the value."""
        return value in self._output_counts or next(self._using(value), None) is not None

    def is_used_once(self, value: Value) -> bool:
        """Check whether there is exactly one use of the value, outputs included."""
        outputs = self._output_counts[value]
        return outputs + sum(1 for _ in islice(self._using(value), 2)) == 1

    def _using(self, value: Value) -> Iterator[tuple[Node, int]]:
        """Yield (node, operand index) of every use, in no particular order."""
        for use, result in self._edges[value.node].items():
            if result == value.index:
                yield use

    def edges(self) -> Mapping[Node, Mapping[tuple[Node, int], int]]:
        """Return all nodes in creation order; for each the result index that every (reader, operand index) reads."""
        return self._edges

    @property
    def dims(self) -> dict[str, Dimension]:
        """Named dimensions in types and attributes, sub-graphs included, in order of name.

        Raises ArgumentError where two of them have one name.
        """
        by_name = dimensions(sizes_of(self))
        return {name: by_name[name] for name in sorted(by_name)}

    def networkx(self) -> nx.MultiDiGraph:
        """Return a frozen networkx graph of the present nodes; edge key: operand index, edge data ``result``: result
        index."""
        nx = _networkx()
        copied = nx.MultiDiGraph()
        copied.add_nodes_from(self._edges)
        for node, edges in self._edges.items():
            copied.add_edges_from((node, user, key, {"result": result}) for (user, key), result in edges.items())
        return nx.freeze(copied)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return an editable copy in plain networkx, which ``from_networkx`` converts back.

        A node has the name of its first value (``op#id`` if it has none). Its data: ``op``, the op's name; ``attrs``;
        ``names`` of its values; ``location``; for arguments (op ``input``, in their order) also ``type``. An edge goes
        from a value's node to a reader: its key is the operand index, its data ``result`` the result index. The outputs
        are operands of the only node of op ``return``. The graph's data: ``name``, and ``bound``.
        """
        copied = _networkx().MultiDiGraph(name=self.name, bound=self.bound)
        keys: dict[Node, str] = {}
        for node in (*(v.node for v in self.inputs), *self.nodes()):
            names = [v.name for v in node.results]
            key = keys[node] = names[0] if names else f"{node.op.name}#{node.id}"
            data = {"op": node.op.name, "attrs": dict(node.attrs), "names": names, "location": node.location}
            copied.add_node(key, **data, **({"type": node.results[0].type} if node.op is INPUT else {}))
            for i, v in enumerate(node.operands):
                copied.add_edge(keys[v.node], key, key=i, result=v.index)
        end = RETURN
        while end in copied:
            end += "_"
        copied.add_node(end, op=RETURN, attrs={})
        for i, v in enumerate(self.outputs):
            copied.add_edge(keys[v.node], end, key=i, result=v.index)
        return copied

    @staticmethod
    def from_networkx(source: nx.MultiDiGraph) -> Graph:
        """Build and verify a graph from an edited result of ``to_networkx``. A new node needs ``op`` and an edge per
        operand; ``attrs`` with defaults, names and location are optional. Types follow from the rules of the ops.

        Nodes keep the order of ``source`` where the edges allow it. Raises VerifyError, naming the node.
        """
        return _from_networkx(source)

    def __contains__(self, node: Node) -> bool:
        return node in self._edges

    def __len__(self) -> int:
        return len(self.nodes())

    # ---- changing

    def set_operand(self, node: Node, key: int, value: Value) -> None:
        """Replace one operand."""
        old = node.operands[key]
        del self._edges[old.node][node, key]
        node.operands = (*node.operands[:key], value, *node.operands[key + 1 :])
        self._connect(node, key, value)

    def replace_uses(self, old: Value, new: Value) -> int:
        """Replace every use of ``old`` (outputs included) by ``new``; return the number of uses."""
        if old is new:
            return 0
        uses = self.uses(old)
        for node, key in uses:
            self.set_operand(node, key, new)
        count = self._output_counts[old]
        if count:
            self.set_outputs(new if out is old else out for out in self._outputs)
        return len(uses) + count

    def erase(self, node: Node) -> None:
        """Remove a node whose results have no use; raise VerifyError otherwise."""
        if any(self.is_used(r) for r in node.results):
            raise VerifyError(f"{node.op.name} (%{node.results[0].name}) is still used")
        if node.op is INPUT:
            self.inputs.remove(node.results[0])
        del self._edges[node]
        for key, operand in enumerate(node.operands):
            del self._edges[operand.node][node, key]
        for result in node.results:
            self._names.pop(result.name, None)
        if node.op is CONSTANT and not node.results[0].shape:
            array = node.attrs["value"]
            self._scalars.pop((layout_of(array.dtype).name, array.tobytes()), None)
        self._order = None

    def _repr_html_(self) -> str:
        return _html_printers[-1](self)

    def __str__(self) -> str:
        return print_graph(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and str(self) == str(other) and self._data() == other._data()

    __hash__ = object.__hash__

    def _data(self) -> list[tuple[Hashable, ...]]:
        return [attr_key(n.attrs) for n in self.nodes() if not (n.results and n.results[0].is_scalar_constant)]


def _preformatted(graph: Graph) -> str:
    text = str(graph).replace("&", "&amp;").replace("<", "&lt;")
    return f"<pre>{text}</pre>"


RETURN = "return"
"""Op name of the networkx node whose operands are the outputs."""

_from_networkx = deferred("graphc.ir.graph.from_networkx:from_networkx")
_SAMPLE = 64
"""Number of elements of an array to compare before comparing all."""

_html_printers: list[Callable[[Graph], str]] = [_preformatted]


def set_html_printer(printer: Callable[[Graph], str]) -> None:
    """Make notebooks display graphs with ``printer``; higher layers install their renderer here."""
    _html_printers[1:] = [printer]


def _networkx() -> Any:
    """Import networkx when somebody asks for its view of a graph: the import takes longer than small compilations."""
    return import_module("networkx")


@cache
def _scalar_type(dtype: DType) -> TensorType:
    """Return the type of a scalar constant: one object for all graphs, so that copies compare types by identity."""
    return TensorType(dtype)


def _foreign_operand(node: Node, key: int, operand: Value) -> VerifyError:
    return VerifyError(f"operand {key} of {node.op.name} (%{operand.name}) belongs to another graph")


def input_class(value: Value) -> str:
    """Return one of INPUT_CLASSES for an argument of the graph, else an empty string."""
    return value.node.attrs["cls"] if value.node.op is INPUT else ""


def input_path(value: Value) -> str:
    """Return the qualified name of a param, state or weight argument, else an empty string."""
    return value.node.attrs["path"] if value.node.op is INPUT else ""


def input_equals(value: Value) -> Any:
    """Return the size equal to the only element of an argument, or None."""
    return value.node.attrs.get("equals") if value.node.op is INPUT else None


def input_role(value: Value) -> tuple[str, str, Any]:
    """Return class, path and ``equals`` of an argument, as ``add_input`` takes them."""
    return input_class(value), input_path(value), input_equals(value)


def input_pattern(value: Value) -> tuple[Any, ...]:
    """Return the shape of an argument, as ShapePatterns takes it."""
    equals = input_equals(value)
    return value.type.shape if equals is None else Number((equals,))


def sizes_of(graph: Graph) -> Iterator[int]:
    """Yield the run-time sizes in types and attributes of a graph and of its sub-graphs."""
    for value in graph.inputs:
        yield from filter(is_size, input_pattern(value))
    for node in graph.nodes():
        yield from node_sizes(node)


def node_sizes(node: Node) -> Iterator[int]:
    """Yield the run-time sizes in result types and attributes of a node."""
    for value in node.results:
        yield from filter(is_size, value.type.shape)
    for value in node.attrs.values():
        if is_size(value):
            yield value
        elif type(value) is tuple:
            yield from _sizes_in(value)
        elif isinstance(value, Graph):
            yield from sizes_of(value)


def has_sizes(node: Node) -> bool:
    """Check whether result types or attributes of a node contain sizes known only at run time."""
    return next(node_sizes(node), None) is not None


def _sizes_in(value: tuple[Any, ...]) -> Iterator[int]:
    for entry in value:
        if is_size(entry):
            yield entry
        elif type(entry) is tuple:
            yield from _sizes_in(entry)


def attr_key(attrs: Mapping[str, Any]) -> tuple[Hashable, ...]:
    """Return a key of the attributes, equal exactly for equal ones: arrays by their bits, sub-graphs by their text.

    It compares both lazily, so neither may change while the key is in use.
    """
    if not attrs:
        return ()
    key: list[Hashable] = []
    for name, value in attrs.items():
        if isinstance(value, np.ndarray):
            key.append((name, _Contents(value)))
        elif isinstance(value, Graph):
            key.append((name, _Body(value)))
        else:
            key.append((name, type(value).__name__, repr(value)))
    return tuple(key)


class _Body:
    """A sub-graph as a key. Its text is compared only if the ops of its nodes are equal."""

    __slots__ = ("graph", "ops")

    def __init__(self, graph: Graph):
        self.graph = graph
        self.ops = tuple([n.op for n in graph.nodes() if not (n.results and n.results[0].is_scalar_constant)])

    def __hash__(self) -> int:
        return hash(self.ops)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Body) or self.ops != other.ops:
            return False
        return self.graph is other.graph or self.graph == other.graph


class _Contents:
    """An array as a key. It is compared in full only if its type and a sample of its elements are equal."""

    __slots__ = ("array", "sample")

    def __init__(self, array: np.ndarray):
        self.array = array
        step = -(-array.size // _SAMPLE) or 1
        self.sample = (array.dtype.str, array.shape, array.flat[::step].tobytes())

    def __hash__(self) -> int:
        return hash(self.sample)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Contents) or self.sample != other.sample:
            return False
        return self.array is other.array or np.array_equal(self._bits(), other._bits())

    def _bits(self) -> np.ndarray:
        return np.ascontiguousarray(self.array).reshape(-1).view(np.uint8)
