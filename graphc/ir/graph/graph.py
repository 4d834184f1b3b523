"""The graph: nodes and values over one networkx multigraph, of which this file is the only writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
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
    doc="An argument of the graph; exists in the header of the text only.",
    operands=(),
    attrs=(
        Attr("cls", "str", "one of input, param, state, weight"),
        Attr("path", "str", "qualified name, e.g. fc1.weight; empty for plain inputs", "", False),
        Attr("equals", "int", "the size that its only element is, where each call gives that", None, False),
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
    """One result of a node. Identity is equality."""

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
        """Shape."""
        return self.type.shape

    @property
    def is_scalar_constant(self) -> bool:
        """True for an interned scalar constant."""
        return self.node.op is CONSTANT and not self.type.shape

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


class Node:
    """One application of an op. ``operands`` is the truth; the edges of the networkx graph mirror it."""

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
    """A static graph with typed inputs and outputs; nodes in creation order, which any rewrite keeps deterministic."""

    def __init__(self, name: str = "main"):
        self.name = name
        self.inputs: list[Value] = []
        self.bound: Mapping[str, Any] = {}
        """Tensors outside for which params and states stand, by path, where the graph is the trace of a module; not
        part of what the graph means, so neither text nor equality know of it."""
        self.assumptions: Sequence[Assumption] = ()
        """What the trace has assumed of sizes: the graph is right where it holds. No part of the text either."""
        self._outputs: list[Value] = []
        self._output_counts: Counter[Value] = Counter()
        nx = _networkx()
        self._nx = nx.MultiDiGraph()
        self._next_id = 0
        self._names: dict[str, int] = {}
        self._scalars: dict[tuple[str, bytes], Value] = {}
        self._order: list[Node] | None = None
        self._ids_are_topological = True

    # ---- building

    def add_input(
        self, type: TensorType, name: str, cls: str = "input", path: str = "", equals: int | None = None
    ) -> Value:
        """Appends an argument of class ``cls``, one of INPUT_CLASSES. ``equals`` is the size that its only element is,
        a whole number that each call gives."""
        if cls not in INPUT_CLASSES:
            raise VerifyError(f"input class {cls!r} is none of {', '.join(INPUT_CLASSES)}")
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
        """Appends a node. ``attrs`` are normalized and ``types`` inferred by the caller (see ir.graph.build)."""
        node = self._new_node(op, tuple(operands), attrs, location)
        self._set_results(node, types, name or op.name)
        for key, operand in enumerate(node.operands):
            self._connect(node, key, operand)
        return node

    def scalar(self, value: bool | int | float | np.generic | np.ndarray, dtype: DType) -> Value:
        """The interned scalar constant of that value and type."""
        array = elements(value, dtype)
        key = (dtype.name, array.tobytes())
        found = self._scalars.get(key)
        if found is None:
            attrs = CONSTANT.normalize({"value": array})
            found = self.add_node(CONSTANT, (), attrs, (TensorType(dtype),), name=print_scalar(array, dtype)).results[0]
            self._scalars[key] = found
        return found

    def _new_node(self, op: OpDef, operands: tuple[Value, ...], attrs: Attrs, location: Location) -> Node:
        node = Node(self._next_id, op, operands, attrs, location)
        self._next_id += 1
        self._nx.add_node(node)
        self._order = None
        return node

    def _set_results(self, node: Node, types: Types, name: str) -> None:
        node.results = tuple(
            Value(node, i, t, self.unique_name(name if len(types) == 1 else f"{name}.{i}")) for i, t in enumerate(types)
        )

    def unique_name(self, hint: str) -> str:
        """``hint`` if it is free, else ``hint.N``; the name is taken from then on."""
        name = hint
        while name in self._names:
            self._names[hint] += 1
            name = f"{hint}.{self._names[hint]}"
        self._names[name] = 0
        return name

    def rename(self, value: Value, hint: str) -> None:
        """Gives a value another name (made unique); the old one is free again."""
        self._names.pop(value.name, None)
        value.name = self.unique_name(hint)

    def _connect(self, node: Node, key: int, operand: Value) -> None:
        if operand.node not in self._nx:
            raise VerifyError(f"operand {key} of {node.op.name} (%{operand.name}) belongs to another graph")
        self._nx.add_edge(operand.node, node, key=key, result=operand.index)
        if operand.node.id > node.id:
            self._ids_are_topological = False
        self._order = None

    # ---- reading

    @property
    def next_id(self) -> int:
        """The id of the node that is made next: ids are in the order in which nodes are made."""
        return self._next_id

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Values that the graph returns."""
        return tuple(self._outputs)

    def set_outputs(self, values: Iterable[Value]) -> None:
        """Replaces the returned values."""
        self._outputs = list(values)
        self._output_counts = Counter(self._outputs)

    def nodes(self) -> list[Node]:
        """All nodes but inputs in topological order. The list must not be changed.

        Nodes stand in creation order, except that a node created later than its user stands right before that user:
        rewrites neither reorder effects nor move the rest of the program.
        """
        if self._order is None:
            ordered = list(self._nx.nodes) if self._ids_are_topological else self._pulled_order()
            self._order = [n for n in ordered if n.op is not INPUT]
        return self._order

    def _pulled_order(self) -> list[Node]:
        placed: dict[Node, None] = {}
        for root in self._nx.nodes:
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
        """(node, operand index) of every use, in creation order; being an output is not listed here."""
        return sorted(self._using(value), key=lambda use: (use[0].id, use[1]))

    def is_used(self, value: Value) -> bool:
        """True when a node or an output of the graph uses the value."""
        return value in self._output_counts or next(self._using(value), None) is not None

    def is_used_once(self, value: Value) -> bool:
        """True when there is exactly one use of the value, being an output included."""
        outputs = self._output_counts[value]
        return outputs + sum(1 for _ in islice(self._using(value), 2)) == 1

    def _using(self, value: Value) -> Iterator[tuple[Node, int]]:
        """(node, operand index) of every use, in no order."""
        for consumer, edges in self._nx.adj[value.node].items():
            for key, edge in edges.items():
                if edge["result"] == value.index:
                    yield consumer, key

    @property
    def dims(self) -> dict[str, Dimension]:
        """The named dimensions on which types and attributes depend, those of sub-graphs too, in order of name.

        Raises ArgumentError where two of them have one name.
        """
        found = dimensions(sizes_of(self))
        return {name: found[name] for name in sorted(found)}

    def networkx(self) -> nx.MultiDiGraph:
        """A read-only view for networkx algorithms; edge key: operand index, edge data ``result``: result index."""
        return self._nx.copy(as_view=True)

    def to_networkx(self) -> nx.MultiDiGraph:
        """A copy in plain networkx, to be edited; ``from_networkx`` makes a graph of it again.

        A node is called as its first value (``op#id`` where it has none). Its data: ``op``, the op's name; ``attrs``;
        ``names`` of its values; ``location``; for arguments (op ``input``, in their order) also ``type``. An edge leads
        from a value's node to one that reads it: key, the number of the operand; ``result``, that of the value. The
        outputs are operands of the only node of op ``return``. The graph's data: ``name``, and ``bound``.
        """
        found = _networkx().MultiDiGraph(name=self.name, bound=self.bound)
        keys: dict[Node, str] = {}
        for node in (*(v.node for v in self.inputs), *self.nodes()):
            names = [v.name for v in node.results]
            key = keys[node] = names[0] if names else f"{node.op.name}#{node.id}"
            data = {"op": node.op.name, "attrs": dict(node.attrs), "names": names, "location": node.location}
            found.add_node(key, **data, **({"type": node.results[0].type} if node.op is INPUT else {}))
            for i, v in enumerate(node.operands):
                found.add_edge(keys[v.node], key, key=i, result=v.index)
        end = RETURN
        while end in found:
            end += "_"
        found.add_node(end, op=RETURN, attrs={})
        for i, v in enumerate(self.outputs):
            found.add_edge(keys[v.node], end, key=i, result=v.index)
        return found

    @staticmethod
    def from_networkx(source: nx.MultiDiGraph) -> Graph:
        """The verified graph of what ``to_networkx`` gave and was edited since. A new node needs ``op`` and an edge per
        operand; ``attrs`` that have defaults, names and location may be absent. Types follow from the rules of the ops.

        Nodes stand in the order of ``source`` where the edges allow it. Raises VerifyError, naming the node.
        """
        return _from_networkx(source)

    def __contains__(self, node: Node) -> bool:
        return node in self._nx

    def __len__(self) -> int:
        return len(self.nodes())

    # ---- changing

    def set_operand(self, node: Node, key: int, value: Value) -> None:
        """Replaces one operand."""
        old = node.operands[key]
        self._nx.remove_edge(old.node, node, key=key)
        node.operands = (*node.operands[:key], value, *node.operands[key + 1 :])
        self._connect(node, key, value)

    def replace_uses(self, old: Value, new: Value) -> int:
        """Makes every use of ``old`` (outputs too) a use of ``new``; returns how many there were."""
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
        """Removes a node whose results have no use; raises VerifyError otherwise."""
        if any(self.is_used(r) for r in node.results):
            raise VerifyError(f"{node.op.name} (%{node.results[0].name}) is still used")
        if node.op is INPUT:
            self.inputs.remove(node.results[0])
        self._nx.remove_node(node)
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
"""The op of the node in networkx whose operands are the outputs."""

_from_networkx = deferred("graphc.ir.graph.from_networkx:from_networkx")
_SAMPLE = 64
"""How many elements of an array are compared before all of them."""

_html_printers: list[Callable[[Graph], str]] = [_preformatted]


def set_html_printer(printer: Callable[[Graph], str]) -> None:
    """Makes notebooks show graphs as ``printer`` does; floors above know how to draw."""
    _html_printers[1:] = [printer]


def _networkx() -> Any:
    """networkx, loaded with the first graph: eager programs never need it, and it takes long to import."""
    return import_module("networkx")


def input_class(value: Value) -> str:
    """One of INPUT_CLASSES for an argument of the graph, else an empty string."""
    return value.node.attrs["cls"] if value.node.op is INPUT else ""


def input_path(value: Value) -> str:
    """Qualified name of a param, state or weight argument, else an empty string."""
    return value.node.attrs["path"] if value.node.op is INPUT else ""


def input_equals(value: Value) -> Any:
    """The size that the only element of an argument is, None for one of which the graph does not say that."""
    return value.node.attrs.get("equals") if value.node.op is INPUT else None


def input_role(value: Value) -> tuple[str, str, Any]:
    """Class, path and what it equals of an argument, as ``add_input`` takes them."""
    return input_class(value), input_path(value), input_equals(value)


def input_pattern(value: Value) -> tuple[Any, ...]:
    """The shape of an argument, as ShapePatterns takes it."""
    equals = input_equals(value)
    return value.type.shape if equals is None else Number((equals,))


def sizes_of(graph: Graph) -> Iterator[int]:
    """The sizes known at run time that stand in types and attributes of a graph and of its sub-graphs."""
    for value in graph.inputs:
        yield from filter(is_size, input_pattern(value))
    for node in graph.nodes():
        yield from _node_sizes(node)


def _node_sizes(node: Node) -> Iterator[int]:
    """The sizes known at run time that stand in the types of the results and the attributes of a node."""
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
    """Whether sizes known at run time stand in the types of the results or the attributes of a node."""
    return next(_node_sizes(node), None) is not None


def _sizes_in(value: tuple[Any, ...]) -> Iterator[int]:
    for entry in value:
        if is_size(entry):
            yield entry
        elif type(entry) is tuple:
            yield from _sizes_in(entry)


def attr_key(attrs: Mapping[str, Any]) -> tuple[Hashable, ...]:
    """Equal exactly when the attributes are: arrays by their bits, sub-graphs by their text."""
    parts: list[Hashable] = []
    for name, value in attrs.items():
        if isinstance(value, np.ndarray):
            parts.append((name, _Contents(value)))
        elif isinstance(value, Graph):
            parts.append((name, str(value), *value._data()))
        else:
            parts.append((name, type(value).__name__, repr(value)))
    return tuple(parts)


class _Contents:
    """An array as a key. All of it is looked at only where a few of its elements and its type are the same."""

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
