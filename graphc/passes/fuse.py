"""Fusion: partitions the nodes of a graph into groups that become one kernel each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from math import prod

from graphc.ir.graph import CONSTANT, INPUT, Graph, Node, Value
from graphc.ir.index import Axis, Index, flatten
from graphc.ir.interpret import live_nodes
from graphc.ir.op import Trait
from graphc.ir.types import row_major_strides
from graphc.ops.loop import scan
from graphc.passes.access import Access, climb, domain_axes, is_virtual, operand_reads, written_value

KINDS = ("map", "row", "contraction", "nest")
"""``map``: every value has the domain's shape. ``row``: reductions of the domain over ``axes``, values around them.
``contraction``: one sum of products and what is done to its result. ``nest``: one op that lowers itself, or a scan."""


WEIGHTS = {
    "exp": 12,
    "expm1": 20,
    "log": 20,
    "log1p": 24,
    "tanh": 20,
    "erf": 30,
    "sin": 30,
    "cos": 30,
    "atan": 25,
    "asin": 35,
    "acos": 35,
    "atan2": 35,
    "pow": 80,
    "random_bits": 120,
}
"""Vector operations of ops that need many."""
_EPILOGUE = 64
"""Operations that may follow a sum of products while its register block is held: each is emitted once per register."""


@dataclass(eq=False)
class Group:
    """Nodes that become one kernel. ``shape`` is the iteration domain, ``axes`` what a row group reduces."""

    nodes: list[Node]
    kind: str
    shape: tuple[int, ...]
    axes: tuple[int, ...] = ()
    outputs: list[Value] = field(default_factory=list)
    """Values that are stored, in node order (filled in at the end)."""

    @property
    def kept(self) -> tuple[int, ...]:
        """Shape of the domain without the reduced axes."""
        return tuple(e for i, e in enumerate(self.shape) if i not in self.axes)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of the domain with the reduced axes set to 1."""
        return tuple(1 if i in self.axes else e for i, e in enumerate(self.shape))

    def is_full(self, value: Value) -> bool:
        """True when the value has one element per point of the domain."""
        return value.shape == self.shape and not (self.kind == "row" and value.node.op.has(Trait.REDUCTION))

    def outer(self, value: Value, index: tuple[Index, ...]) -> tuple[Index, ...] | None:
        """Coordinates along the kept axes of a row-level value's index; None when its shape is neither row shape."""
        if value.shape == self.kept and len(self.kept) != len(self.shape):
            return index
        if value.shape == self.row_shape:
            return tuple(x for i, x in enumerate(index) if i not in self.axes)
        return index if value.shape == self.kept else None


class Reason(Enum):
    """Why the group of a reader was not merged with the group of what it reads."""

    READER = "the reader is a product or a window: each element is read many times, so it is stored"
    NEST = "one of the two is a nest of its own (scatter, scan, ...), into which nothing is merged"
    KINDS = "no kernel form holds a {producer} group followed by a {consumer} group"
    ROWS = "the two reduce different rows: another shape, or other axes"
    SHAPE = "the product has another number of elements than its reader's domain"
    EPILOGUE = "what follows the product is too expensive to be written out once per register"
    DOMAIN = "the reader is computed over another domain"
    PLACE = "an element is not at hand where it is read, and is read again or stored, so that it is computed only once"
    ORDER = "the product is needed elsewhere, or in another order of elements"
    DETOUR = "a third group lies between the two: it needs the one and is needed by the other"

    def text(self, producer: Group, consumer: Group) -> str:
        """The reason as a sentence about two groups."""
        return self.value.format(producer=producer.kind, consumer=consumer.kind)


@dataclass(frozen=True)
class Refusal:
    """Two neighbouring groups that stayed apart."""

    value: Value
    """What the reader reads from memory."""
    reader: Node
    reason: Reason


@dataclass(frozen=True)
class FusionPlan:
    """Groups in an order in which they can run, and the values that must lie in memory."""

    groups: tuple[Group, ...]
    realized: frozenset[Value]
    """Every value that a group stores."""
    refusals: tuple[Refusal, ...] = ()
    """For every stored value and every group that reads it, why it is not computed there."""


def fuse(graph: Graph) -> FusionPlan:
    """Needs: a decomposed graph. Does: groups nodes greedily, producers into consumers. Leaves: the graph unchanged."""
    return _Fuser(graph).run()


class _Fuser:
    def __init__(self, graph: Graph):
        self.graph = graph
        order = graph.nodes()
        live = live_nodes(graph, [*graph.outputs, *(v for n in order if n.op.has(Trait.EFFECT) for v in n.results)])
        self.position = {node: i for i, node in enumerate(order)}
        self.forced = _forced(graph)
        self.real = [n for n in order if n in live and self._is_real(n)]
        self.group_of: dict[Node, Group] = {n: _single(n) for n in self.real}
        self.reads: dict[Node, list[Access]] = {n: self._reads(n) for n in self.real}
        self.readers: dict[Node, list[Node]] = {}
        for node in self.real:
            for access in self.reads[node]:
                readers = self.readers.setdefault(access.value.node, [])
                if node not in readers:
                    readers.append(node)
        self.escaping = {v.node for v in _kept_values(graph)}
        self.refused: dict[tuple[Value, Node], Reason] = {}

    def _is_real(self, node: Node) -> bool:
        if node in self.forced:
            return True
        if node.op is CONSTANT or is_virtual(node) or node.op.has(Trait.STATE_WRITE):
            return False
        return node.op is not INPUT

    def _reads(self, node: Node) -> list[Access]:
        """Reads of stored or computed values, in the axes of the node's domain; virtual nodes are climbed."""
        if node.op.lower is None:
            direct = [Access(v, domain_axes(v.shape), dynamic=True) for v in node.operands]
        elif node.op.has(Trait.REDUCTION):
            direct = [Access(v, domain_axes(v.shape)) for v in node.operands]
        else:
            direct = operand_reads(node, domain_axes(node.results[0].shape))
        return [found for access in direct for found in self._climb(access)]

    def _climb(self, access: Access) -> list[Access]:
        if access.value.node in self.forced:
            return [access]
        found: list[Access] = []
        stack = [access]
        while stack:
            top = stack.pop()
            if top.value.node in self.forced or not is_virtual(top.value.node):
                found.append(top)
            elif top.value.node.op is not CONSTANT:
                stack.extend(_through(top))
        return found

    # ---- merging

    def run(self) -> FusionPlan:
        for node in self.real:
            for access in self.reads[node]:
                producer = self.group_of.get(access.value.node)
                if producer is not None and producer is not self.group_of[node]:
                    reason = self._try_merge(producer, node)
                    if reason is not None:
                        self.refused[access.value, node] = reason
        groups = self._unique(self.group_of[n] for n in self.real)
        for group in groups:
            group.nodes.sort(key=self.position.__getitem__)
            group.outputs = [r for n in group.nodes for r in n.results if self._is_stored(n, group)]
        ordered = self._ordered(groups)
        return FusionPlan(tuple(ordered), frozenset(v for g in ordered for v in g.outputs), tuple(self._refusals()))

    def _refusals(self) -> Iterator[Refusal]:
        """The refusals that still hold now that all merges are done."""
        for (value, reader), reason in self.refused.items():
            if self.group_of[value.node] is not self.group_of[reader]:
                yield Refusal(value, reader, reason)

    def _is_stored(self, node: Node, group: Group) -> bool:
        if is_repeated(node) or node in self.escaping:
            return True
        return any(self.group_of[r] is not group for r in self.readers.get(node, ()))

    def _try_merge(self, producer: Group, node: Node) -> Reason | None:
        """Merges the two groups, or says why not."""
        consumer = self.group_of[node]
        if "nest" in (producer.kind, consumer.kind) and not _goes_on(producer, consumer):
            return Reason.NEST
        if node.op.has(Trait.CONTRACTION) or node.op.has(Trait.MATERIALIZE) or not _fusable_consumer(node, self.forced):
            return Reason.READER
        merged = self._merged(producer, consumer)
        if isinstance(merged, Reason):
            return merged
        if merged.kind in ("contraction", "nest") and self._weight(producer, consumer) > _EPILOGUE:
            return Reason.EPILOGUE
        reason = self._misfit(producer, consumer, merged)
        if reason is None and self._has_detour(producer, consumer):
            reason = Reason.DETOUR
        if reason is not None:
            return reason
        merged.nodes = [*producer.nodes, *consumer.nodes]
        for n in merged.nodes:
            self.group_of[n] = merged
        return None

    def _merged(self, producer: Group, consumer: Group) -> Group | Reason:
        """The kind and domain of a merger, or why no kernel form holds both."""
        a, b = producer, consumer
        if a.kind == "map" and b.kind == "map":
            return Group([], "map", b.shape)
        if a.kind == "row" and b.kind == "row":
            return Group([], "row", b.shape, b.axes) if (a.shape, a.axes) == (b.shape, b.axes) else Reason.ROWS
        if "row" in (a.kind, b.kind) and "map" in (a.kind, b.kind):
            row = a if a.kind == "row" else b
            return Group([], "row", row.shape, row.axes)
        if "contraction" in (a.kind, b.kind) and "map" in (a.kind, b.kind):
            reshaped = a.kind == "contraction" and prod(a.shape) == prod(b.shape)
            return Group([], "contraction", b.shape) if a.shape == b.shape or reshaped else Reason.SHAPE
        return Group([], "nest", a.shape) if _goes_on(a, b) and a.shape == b.shape else Reason.KINDS

    def _weight(self, *groups: Group) -> int:
        """Vector operations per element beside products, views and generators that are read included."""
        total = 0
        seen: set[Node] = set()
        stack = [n for g in groups for n in g.nodes]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            total += 0 if node.op.has(Trait.CONTRACTION) else WEIGHTS.get(node.op.name, 1)
            stack.extend(v.node for v in node.operands if is_virtual(v.node))
        return total

    def _misfit(self, producer: Group, consumer: Group, merged: Group) -> Reason | None:
        """None when every value read across the two groups is at hand where it is read, or cheap to compute there."""
        if not all(self._fits_domain(n, merged) for n in consumer.nodes):
            return Reason.DOMAIN
        if producer.kind == "contraction" and producer.shape != merged.shape:
            return None if self._is_reshaped(producer, consumer) else Reason.ORDER
        return None if self._edges_fit(producer, consumer, merged) else Reason.PLACE

    def _edges_fit(self, producer: Group, consumer: Group, merged: Group) -> bool:
        """True when values read across the two groups are read at the point where they are computed, or can be computed
        where they are read."""
        aligned = all(self._fits_domain(n, merged) for n in producer.nodes)
        members = set(producer.nodes)
        for node in consumer.nodes:
            for access in self.reads[node]:
                if access.value.node not in members:
                    continue
                if not (aligned and access.plain and _aligned(node, access, merged)):
                    return self._can_inline(producer, consumer)
        return aligned or self._can_inline(producer, consumer)

    def _fits_domain(self, node: Node, group: Group) -> bool:
        value = node.results[0]
        if group.kind != "row":
            size = value.type.size
            return size == prod(group.shape) or node.op.has(Trait.REDUCTION) or self._is_inlined(node)
        if node.op.has(Trait.REDUCTION):
            return node.operands[0].shape == group.shape and node_axes(node) == group.axes
        return value.shape in (group.shape, group.kept, group.row_shape) or self._is_inlined(node)

    def _is_inlined(self, node: Node) -> bool:
        """A node merged earlier for inlining: it is not stored and its shape is its own business."""
        current = self.group_of[node]
        return len(current.nodes) > 1 and node.results[0].shape != current.shape

    def _can_inline(self, producer: Group, consumer: Group) -> bool:
        """Elementwise producers that only the consumer reads, element for element, are computed at its index."""
        if producer.kind != "map":
            return False
        members, readers = set(producer.nodes), set(consumer.nodes)
        for node in producer.nodes:
            if node in self.escaping or not set(self.readers.get(node, ())) <= members | readers:
                return False
            if not node.op.has(Trait.ELEMENTWISE) and not is_virtual(node):
                return False
        for node in consumer.nodes:
            for access in self.reads[node]:
                if access.value.node in members and (access.replicating or access.dynamic or not _reads_once(node)):
                    return False
        return True

    def _is_reshaped(self, producer: Group, consumer: Group) -> bool:
        """A product that only the consumer reads, in the same order of elements under another shape, is computed in
        the consumer's domain."""
        members, readers = set(producer.nodes), set(consumer.nodes)
        for node in producer.nodes:
            if node in self.escaping or not set(self.readers.get(node, ())) <= members | readers:
                return False
        for node in consumer.nodes:
            here = domain_axes(node.results[0].shape)
            for access in self.reads[node]:
                if access.value.node in members and not (access.plain and _same_order(access, node.results[0], here)):
                    return False
        return True

    def _has_detour(self, producer: Group, consumer: Group) -> bool:
        """True when merging would make a cycle: a path from producer to consumer through a third group."""
        last = max(self.position[n] for n in consumer.nodes)
        seen: set[Group] = {producer}
        stack = [g for g in self._followers(producer, last) if g is not consumer]
        while stack:
            group = stack.pop()
            if group in seen:
                continue
            seen.add(group)
            for follower in self._followers(group, last):
                if follower is consumer:
                    return True
                stack.append(follower)
        return False

    def _followers(self, group: Group, last: int) -> Iterator[Group]:
        for node in group.nodes:
            for reader in self.readers.get(node, ()):
                follower = self.group_of[reader]
                if follower is not group and min(self.position[n] for n in follower.nodes) <= last:
                    yield follower

    # ---- order

    def _unique(self, groups: Iterable[Group]) -> list[Group]:
        return list(dict.fromkeys(groups))

    def _ordered(self, groups: list[Group]) -> list[Group]:
        """Topological order, ties broken by the first node; what a state becomes is computed after its old content has
        been read wherever that is possible, so that it can be computed in place."""
        before = {g: self._before(g) for g in groups}
        followers: dict[Group, list[Group]] = {g: [] for g in groups}
        for group, sources in before.items():
            for source in sources:
                followers[source].append(group)
        readers, written = self._state_use(groups)
        first = {g: min(self.position[n] for n in g.nodes) for g in groups}

        def rank(group: Group) -> tuple[bool, int]:
            early = any(reader is not group for state in written[group] for reader in readers[state])
            return early, first[group]

        ordered: list[Group] = []
        ready = [g for g in groups if not before[g]]
        while ready:
            group = min(ready, key=rank)
            ready.remove(group)
            ordered.append(group)
            for follower in followers[group]:
                before[follower].discard(group)
                if not before[follower]:
                    ready.append(follower)
            for reading in readers.values():
                reading.discard(group)
        return ordered

    def _before(self, group: Group) -> set[Group]:
        """Groups of which this one reads results."""
        values = (a.value for n in group.nodes for a in self.reads[n])
        return {self.group_of[v.node] for v in values if v.node in self.group_of} - {group}

    def _state_use(self, groups: list[Group]) -> tuple[dict[Value, set[Group]], dict[Group, list[Value]]]:
        """The groups that read each written state, and the states whose new content each group computes."""
        readers: dict[Value, set[Group]] = {}
        written: dict[Group, list[Value]] = {g: [] for g in groups}
        for node in self.graph.nodes():
            if node.op.has(Trait.STATE_WRITE):
                readers[node.operands[0]] = set()
                source = written_value(node.operands[1]).node
                if source in self.group_of:
                    written[self.group_of[source]].append(node.operands[0])
        for group in groups:
            for access in (a for n in group.nodes for a in self.reads[n]):
                if access.value in readers:
                    readers[access.value].add(group)
        return readers, written


def _through(access: Access) -> list[Access]:
    reads = operand_reads(access.value.node, access.index)
    return [
        Access(
            r.value,
            r.index,
            access.guarded or r.guarded,
            access.dynamic or r.dynamic,
            access.replicating or r.replicating,
        )
        for r in reads
    ]


def node_axes(node: Node) -> tuple[int, ...]:
    """Dimensions that a REDUCTION node folds."""
    return node.attrs["axes"] if "axes" in node.attrs else (node.attrs["axis"],)


def is_repeated(node: Node) -> bool:
    """True for a scan, which becomes repeated calls of the kernels of its body; its operands all lie in memory."""
    return node.op is scan.op


def _goes_on(producer: Group, consumer: Group) -> bool:
    """True when a nest writes every element once, so that elementwise nodes may follow where it does."""
    first = producer.nodes[0]
    return producer.kind == "nest" and consumer.kind == "map" and first.op.has(Trait.STORES_ONCE)


def _single(node: Node) -> Group:
    """The group of one node."""
    if node.op.lower_nest is not None or is_repeated(node):
        return Group([node], "nest", node.results[0].shape)
    if node.op.has(Trait.REDUCTION):
        return Group([node], "row", node.operands[0].shape, node_axes(node))
    if node.op.has(Trait.CONTRACTION):
        return Group([node], "contraction", node.results[0].shape)
    return Group([node], "map", node.results[0].shape)


_FUSABLE = Trait.ELEMENTWISE | Trait.REDUCTION
_BOUNDED = _FUSABLE | Trait.VIEW


def _reads_once(node: Node) -> bool:
    """True when the node reads each operand element a bounded number of times (no window, no product)."""
    return node.op.has_any(_BOUNDED)


def _fusable_consumer(node: Node, forced: set[Node]) -> bool:
    return node.op.has_any(_FUSABLE) or node in forced


def _same_order(access: Access, result: Value, here: tuple[Index, ...]) -> bool:
    """True when the access reads the element with the number of the reader's element, by affine indices."""
    if not all(isinstance(atom, Axis) for index in access.index for atom, _ in index.terms):
        return False
    read = flatten(access.index, row_major_strides(access.value.shape))
    return read == flatten(here, row_major_strides(result.shape))


def _aligned(node: Node, access: Access, group: Group) -> bool:
    """True when the value is read at the very point of the domain at which the reader is computed."""
    value, result = access.value, node.results[0]
    reduction = node.op.has(Trait.REDUCTION)
    here = domain_axes(node.operands[0].shape if reduction else result.shape)
    if group.kind != "row":  # what differs by a reshape only has its elements at the same places in row-major order
        at, place = (flatten(i, row_major_strides(v.shape)) for i, v in ((access.index, value), (here, result)))
        return value.type.size == result.type.size and at == place
    if reduction or group.is_full(result):
        if group.is_full(value):
            return access.index == here
        expected = tuple(x for i, x in enumerate(here) if i not in group.axes)
    elif group.is_full(value):
        return False
    else:
        outer = group.outer(result, here)
        if outer is None:
            return False
        expected = outer
    return group.outer(value, access.index) == expected


def _kept_values(graph: Graph) -> list[Value]:
    """Values that are still there after the call: outputs and written state."""
    written = [n.operands[1] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)]
    return [written_value(v) for v in (*graph.outputs, *written)]


def _forced(graph: Graph) -> set[Node]:
    """Virtual nodes that must lie in memory all the same: outputs, written state, and what products and nests read
    through anything but plain index arithmetic."""
    forced: set[Node] = set()
    for value in _kept_values(graph):
        if is_virtual(value.node):
            forced.add(value.node)
    for node in graph.nodes():
        if node.op.lower is not None and not node.op.has(Trait.CONTRACTION):
            continue
        for operand in node.operands:
            access = climb(operand, domain_axes(operand.shape))
            if is_repeated(node):
                forced.update([operand.node] if is_virtual(operand.node) else [])
            elif is_virtual(operand.node) and not (len(access) == 1 and access[0].plain and node.op.lower is not None):
                forced.add(_last_irregular(operand) or operand.node)
    return forced


def _last_irregular(operand: Value) -> Node | None:
    """Going up from an operand, the first view that is more than index arithmetic (so views after it stay virtual)."""
    value = operand
    while is_virtual(value.node) and value.node.op is not CONSTANT and value.node.operands:
        reads = operand_reads(value.node, domain_axes(value.shape))
        if len(reads) != 1 or not reads[0].plain:
            return value.node
        value = reads[0].value
    return value.node if is_virtual(value.node) else None
