"""Vertical fusion: partition the nodes of a graph into groups that become one kernel each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from heapq import heappop, heappush
from math import prod

from graphc.base.records import dataclass
from graphc.base.sizes.size import hint
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.fusion.horizontal import duplicate_producers, fuse_horizontally
from graphc.fusion.pad_fusion import fuse_pads
from graphc.fusion.partition import Group, Partition, is_check, node_axes
from graphc.fusion.price import weight
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.kernel.index import Axis, Index, flatten
from graphc.ir.op import Dims, Trait
from graphc.ir.types import row_major_strides
from graphc.passes.long_views import divides_index
from graphc.passes.operand_access import Access, domain_axes
from graphc.passes.updates import stored_content, unmoved, updated


def in_order(partition: Partition, groups: Sequence[Group]) -> list[Group]:
    """Return the groups in topological order; ties go to the group whose first node comes first in the graph.

    A group that writes a state runs after the readers of the old content where possible, and then updates the state in
    place.
    """
    return _Order(partition, groups).run()


class _Order:
    def __init__(self, partition: Partition, groups: Sequence[Group]):
        self.groups = groups
        self.before = {g: partition.before(g) for g in groups}
        self.followers: dict[Group, list[Group]] = {g: [] for g in groups}
        for group, sources in self.before.items():
            for source in sources:
                self.followers[source].append(group)
        self.writers: dict[Group, Counter[Group]] = {g: Counter() for g in groups}
        """Per group: the other groups that write states which it reads, with the number of such reads."""
        self.late: Counter[Group] = Counter()
        """Per writer: the reads of old contents that have not run yet."""
        self._count_reads(partition)
        first = {g: min(partition.position[n] for n in g.nodes) for g in groups}
        self.sort_key = {g: (first[g], number) for number, g in enumerate(groups)}
        self.ready: list[tuple[bool, tuple[int, int]]] = []
        """Heap of (whether readers of its old content are pending, sort key). A group is pushed a second time when its
        last such reader has run."""

    def _count_reads(self, partition: Partition) -> None:
        written: dict[Value, Group] = {}
        for node in partition.graph.having(Trait.STATE_WRITE):
            source = stored_content(node).node
            if source in partition.group_of:
                written[node.operands[0]] = partition.group_of[source]
        for node in partition.materialized:
            for value in node.results:
                old = updated(value)
                while old is not None:
                    written[old] = partition.group_of[node]
                    old = unmoved(old)
        for group in self.groups:
            for value in {a.value for n in group.nodes for a in partition.reads[n]}:
                writer = written.get(value, group)
                if writer is not group:
                    self.writers[group][writer] += 1
                    self.late[writer] += 1

    def run(self) -> list[Group]:
        by_key = {key: group for group, key in self.sort_key.items()}
        ordered: dict[Group, None] = {}
        for group in self.groups:
            self.push(group)
        while self.ready:
            group = by_key[heappop(self.ready)[1]]
            if group in ordered:
                continue
            ordered[group] = None
            for follower in self.followers[group]:
                self.before[follower].discard(group)
                self.push(follower)
            for writer, count in self.writers[group].items():
                self.late[writer] -= count
                if not self.late[writer] and writer not in ordered:
                    self.push(writer)
        return list(ordered)

    def push(self, group: Group) -> None:
        """Push a group onto the heap once all its dependences have run."""
        if not self.before[group]:
            heappush(self.ready, (self.late[group] > 0, self.sort_key[group]))


class Reason(Enum):
    """Reasons not to merge the group of a reader with the group that computes its operand."""

    READER = "the reader is a product or a window: each element is read many times, so it is stored"
    NEST = "one of the two ops lowers itself (scatter, scan, ...), and nothing is merged into such a kernel"
    KINDS = "no kernel form holds a {producer} group followed by a {consumer} group"
    ROWS = "the two reduce different rows: another shape, or other axes"
    SHAPE = "the product has another number of elements than its reader's domain"
    EPILOGUE = "the epilogue of the product is too expensive to be repeated for each register"
    DOMAIN = "the reader is computed over another domain"
    PLACE = "the reader reads elements at other positions than they are computed, and recomputing would repeat work"
    STRIDED = "the product is computed in a strided order, in which reading further large values would be slow"
    ORDER = "other groups need the product too, or its elements are read in another order"
    SINGLE = "both compute single values, and a larger kernel of those could not be shared with equal ones"
    LONG = "the merged kernel would have more operations than pays off"
    DIVIDED = "indices would become quotients of quotients, whose text doubles with each step"
    CALL_INVARIANT = "one of the two depends on weights alone and is computed once for many calls"
    CYCLE = "a third group depends on the producer, and the reader depends on that group"

    def text(self, producer: Group, consumer: Group) -> str:
        """Return the reason as a sentence about two groups."""
        return self.value.format(producer=producer.kind, consumer=consumer.kind)


@dataclass(frozen=True)
class Refusal:
    """Two neighbouring groups left unfused, and the reason."""

    value: Value
    """The value that the reader reads from memory."""
    reader: Node
    reason: Reason


@dataclass(frozen=True)
class FusionPlan:
    """Groups of a graph in an executable order, and the values that must be stored."""

    graph: Graph
    groups: tuple[Group, ...]
    stored: frozenset[Value]
    """Every value that a group stores."""
    refusals: tuple[Refusal, ...] = ()
    """For every stored value and every node that reads it: why it is not computed in the reader's group."""
    laid_out: frozenset[Node] = frozenset()
    """Views (concatenations) whose operands are computed directly at their offsets in the result."""


def fuse(graph: Graph, costs: FusionCosts = DEFAULT.fusion) -> FusionPlan:
    """Group the nodes of a graph into kernels.

    Needs: a decomposed graph. Does: merges groups greedily, producers into consumers. Leaves: the graph unchanged.
    """
    return _Fuser(graph, costs).run()


LARGEST_ELEMENT = 16
"""Bytes of the largest element type."""


class _Fuser(Partition):
    """Vertical fusion. Until it is done no group computes a node that another one computes too, so that ``group_of``
    says which nodes a group has."""

    def __init__(self, graph: Graph, costs: FusionCosts):
        super().__init__(graph, costs)
        self.weights: dict[Node, int] = {}
        """Vector operations per element, for the nodes whose epilogues were considered."""
        self.refused: dict[tuple[Value, Node], Reason] = {}
        self.tried: dict[tuple[Value, Node], tuple[Group, Group]] = {}
        """Refused pairs of groups. Groups never change (a merge makes a new one), so a current pair stays refused."""
        self.aligned: dict[int, bool] = {}
        """Whether a read is aligned in groups without rows, by the identity of the read."""
        self.divides: dict[int, bool] = {}
        """Whether an index divides, by its identity: reads of one shape share one."""

    # ---- merging

    def run(self) -> FusionPlan:
        # NOTE: large domains first: merging scalars can put a third group between two that share large values.
        self._merge(self.costs.large_bytes)
        self._merge(0)
        self.number()
        duplicate_producers(self)
        fuse_horizontally(self)
        fuse_pads(self)
        groups = self.groups()
        for group in groups:
            group.nodes.sort(key=self.position.__getitem__)
            own = [n for n in group.nodes if self.group_of[n] is group]
            group.outputs = [r for n in own for r in n.results if self.is_stored(n)]
        ordered = self._checks_first(in_order(self, groups))
        stored = frozenset(v for g in ordered for v in g.outputs)
        return FusionPlan(self.graph, tuple(ordered), stored, tuple(self._refusals()), frozenset(self.laid_out))

    def _checks_first(self, ordered: list[Group]) -> list[Group]:
        """Move groups with checks, and the groups that these depend on, to the front; the order is otherwise kept."""
        early: set[Group] = set()
        stack = [g for g in ordered if any(is_check(n) for n in g.nodes)]
        while stack:
            group = stack.pop()
            if group not in early:
                early.add(group)
                stack.extend(self.before(group))
        return sorted(ordered, key=lambda g: g not in early) if early else ordered

    def _merge(self, nbytes: int) -> None:
        """Try to merge each node's group with its producers' groups, where one domain has at least ``nbytes`` bytes."""
        if nbytes and not any(self._is_large(shape, nbytes) for shape in {g.shape for g in self.groups()}):
            return
        for node in self.materialized:
            for access in self.reads[node]:
                producer, consumer = self.group_of.get(access.value.node), self.group_of[node]
                if producer is None or producer is consumer:
                    continue
                if nbytes and self._largest(producer, consumer) * access.value.dtype.itemsize < nbytes:
                    continue
                key = access.value, node
                if self.tried.get(key) == (producer, consumer):
                    continue
                reason = self._try_merge(producer, node)
                if reason is not None:
                    self.refused[key] = reason
                    self.tried[key] = producer, consumer

    def _is_large(self, shape: tuple[int, ...], nbytes: int) -> bool:
        return hint(prod(shape)) * LARGEST_ELEMENT >= nbytes

    def _largest(self, producer: Group, consumer: Group) -> int:
        return max(hint(prod(producer.shape)), hint(prod(consumer.shape)))

    def _refusals(self) -> Iterator[Refusal]:
        """Yield the refusals that still hold after all merges."""
        for (value, reader), reason in self.refused.items():
            if not self.holds(self.group_of[reader], value.node):
                yield Refusal(value, reader, reason)

    def _try_merge(self, producer: Group, node: Node) -> Reason | None:
        """Merge the two groups, or return the reason why not."""
        consumer = self.group_of[node]
        if self.call_invariant and self.is_incompatible(producer, consumer):
            return Reason.CALL_INVARIANT
        if "nest" in (producer.kind, consumer.kind) and not _continues_elementwise(producer, consumer):
            return Reason.NEST
        if node.op.has_any(_READS_OFTEN) or not _fusable_consumer(node, self.pinned):
            return Reason.READER
        merged = self._merged(producer, consumer)
        if isinstance(merged, Reason):
            return merged
        if merged.kind == "contraction" and self._reads_strided(producer, consumer):
            return Reason.STRIDED
        if merged.kind in ("contraction", "nest") and self._is_heavy(self.costs.epilogue, producer, consumer):
            return Reason.EPILOGUE
        reason = self._too_long(producer, consumer, merged) or self._misfit(producer, consumer, merged)
        if reason is None and self.reaches(producer, consumer, directly=False):
            reason = Reason.CYCLE
        if reason is not None:
            return reason
        merged.divisions = producer.divisions + consumer.divisions + self._divides(producer, consumer, merged)
        if merged.divisions > self.costs.view_divisions:
            return Reason.DIVIDED
        self.join(merged, producer, consumer)
        return None

    def _divides(self, producer: Group, consumer: Group, merged: Group) -> bool:
        """Check whether the consumer reads the producer, by quotients and remainders, at another position than its own
        point of the domain."""
        return any(
            self._divides_index(access) and not self._is_aligned(node, access, merged)
            for node, access in self._crossing(producer, consumer)
        )

    def _divides_index(self, access: Access) -> bool:
        key = id(access.index)
        if key not in self.divides:
            self.divides[key] = divides_index(access.index)
        return self.divides[key]

    def _is_aligned(self, node: Node, access: Access, group: Group) -> bool:
        """Check whether a read of another node is at the same point of the group's domain; see `_aligned`."""
        if group.kind == "row":
            return _aligned(node, access, group)
        if id(access) not in self.aligned:
            self.aligned[id(access)] = _aligned(node, access, group)
        return self.aligned[id(access)]

    def _crossing(self, producer: Group, consumer: Group) -> Iterator[tuple[Node, Access]]:
        """Yield the reads of the producer's values in the consumer, each with the node that reads."""
        for node in consumer.nodes:
            for access in self.reads[node]:
                if self.group_of.get(access.value.node) is producer:
                    yield node, access

    def _too_long(self, producer: Group, consumer: Group, merged: Group) -> Reason | None:
        """Return the reason why the merged kernel would be too long, or None."""
        count = len(producer.nodes) + len(consumer.nodes)
        if count > self.costs.single and merged.kind == "map" and prod(merged.shape) == 1:
            return Reason.SINGLE
        return Reason.LONG if count > self.costs.longest else None

    def _merged(self, producer: Group, consumer: Group) -> Group | Reason:
        """Return an empty group with the merged kind and domain, or the reason why no kernel form holds both."""
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
        return Group([], "nest", a.shape) if _continues_elementwise(a, b) and a.shape == b.shape else Reason.KINDS

    def _reads_strided(self, producer: Group, consumer: Group) -> bool:
        """Check whether the consumer reads further values of the size of a result whose lanes are strided.

        The gradient of a convolution's weights is such a result. Its epilogue would read an optimizer's states lane by
        lane, which takes longer than a separate kernel.
        """
        if not any(_is_windows(n) for n in producer.nodes):
            return False
        size, groups = prod(producer.shape), (producer, consumer)
        reads = [access.value for n in consumer.nodes for access in self.reads[n]]
        return any(v.type.size == size and self.group_of.get(v.node) not in groups for v in reads)

    def _is_heavy(self, most: int, *groups: Group) -> bool:
        """Check whether the vector operations per element, without products, but including views and generators, are
        more than ``most``."""
        total = 0
        visited: set[Node] = set()
        stack = [n for g in groups for n in g.nodes]
        while stack:
            node = stack.pop()
            if node in visited:
                continue
            visited.add(node)
            if node not in self.weights:
                self.weights[node] = 0 if node.op.has(Trait.CONTRACTION) else weight(node)
            total += self.weights[node]
            if total > most:
                return True
            stack += [v.node for v in node.operands if v.node in self.virtual]
        return False

    def _misfit(self, producer: Group, consumer: Group, merged: Group) -> Reason | None:
        """Return None when every value read across the two groups is available at the reader's point, or cheap to
        compute there; else the reason."""
        is_exact = self._is_exact(consumer, merged)
        if not is_exact and not all(self._fits_domain(n, merged) for n in consumer.nodes):
            return Reason.DOMAIN
        if producer.kind == "contraction" and producer.shape != merged.shape:
            return None if self._is_reshaped(producer, consumer) else Reason.ORDER
        merged.is_exact = is_exact and self._is_exact(producer, merged)
        return None if self._edges_fit(producer, consumer, merged) else Reason.PLACE

    def _edges_fit(self, producer: Group, consumer: Group, merged: Group) -> bool:
        """Check whether each value read across the two groups is read at the point where it is computed, or can be
        inlined."""
        if not merged.is_exact and not all(self._fits_domain(n, merged) for n in producer.nodes):
            return self._can_inline(producer, consumer)
        for node, access in self._crossing(producer, consumer):
            if not (access.plain and self._is_aligned(node, access, merged)):
                return self._can_inline(producer, consumer)
        return True

    def _is_exact(self, group: Group, merged: Group) -> bool:
        """Check whether the shape of each node of a group fits the domain of the merged group."""
        alike = group.axes == merged.axes and (group.kind == "row") is (merged.kind == "row")
        if group.is_exact and alike and _have_same_numbers(group.shape, merged.shape):
            return True
        return all([self._has_shape_of(n, merged) for n in group.nodes])

    def _has_shape_of(self, node: Node, group: Group) -> bool:
        value = node.results[0]
        if group.kind != "row":
            return value.type.size == prod(group.shape) or node.op.has(Trait.REDUCTION)
        if node.op.has(Trait.REDUCTION):
            return node.operands[0].shape == group.shape and node_axes(node) == group.axes
        return value.shape in (group.shape, group.kept, group.row_shape)

    def _fits_domain(self, node: Node, group: Group) -> bool:
        if group.kind == "row" and node.op.has(Trait.REDUCTION):
            return self._has_shape_of(node, group)
        return self._has_shape_of(node, group) or self._is_inlined(node)

    def _is_inlined(self, node: Node) -> bool:
        """Check whether a node was merged earlier to be inlined: it is not stored, and its shape does not matter."""
        current = self.group_of[node]
        if len(current.nodes) == 1 or node.results[0].shape == current.shape or node in self.escaping:
            return False
        return self._is_read_only_by(node, current)

    def _is_read_only_by(self, node: Node, *groups: Group) -> bool:
        """Check whether no other groups read a node."""
        return all(self.group_of[reader] in groups for reader in self.readers.get(node, ()))

    def _can_inline(self, producer: Group, consumer: Group) -> bool:
        """Check whether the producer can be computed at the consumer's index: it is elementwise, and only the consumer
        reads it, each element once."""
        if producer.kind != "map":
            return False
        for node in producer.nodes:
            if node in self.escaping or not self._is_read_only_by(node, producer, consumer):
                return False
            if not node.op.has(Trait.ELEMENTWISE) and node not in self.virtual:
                return False
        for node, access in self._crossing(producer, consumer):
            if access.replicating or access.dynamic or not _reads_once(node):
                return False
        return True

    def _is_reshaped(self, producer: Group, consumer: Group) -> bool:
        """Check whether only the consumer reads a product, in the same order of elements under another shape.

        The product is then computed in the consumer's domain.
        """
        for node in producer.nodes:
            if node in self.escaping or not self._is_read_only_by(node, producer, consumer):
                return False
        for node, access in self._crossing(producer, consumer):
            here = domain_axes(node.results[0].shape)
            if not (access.plain and _same_order(access, node.results[0], here)):
                return False
        return True


def _have_same_numbers(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Check whether shapes are equal without comparing sizes of a call, which may depend on assumptions."""
    return one is other or (all([type(extent) is int for extent in (*one, *other)]) and one == other)


def _is_windows(node: Node) -> bool:
    """Check whether the last dimensions of a product's result are offsets in a window of more than one element."""
    rule = node.op.image
    return rule is not None and rule.result is Dims.WINDOW and prod(node.results[0].shape[2:]) > 1


def _continues_elementwise(producer: Group, consumer: Group) -> bool:
    """Check whether a nest writes every element once, so that elementwise nodes can run where it writes."""
    return producer.kind == "nest" and consumer.kind == "map" and producer.nest.op.has(Trait.STORES_ONCE)


_READS_OFTEN = Trait.CONTRACTION | Trait.MATERIALIZE
_FUSABLE = Trait.ELEMENTWISE | Trait.REDUCTION
_BOUNDED = _FUSABLE | Trait.VIEW


def _reads_once(node: Node) -> bool:
    """Check whether the node reads each operand element a bounded number of times (no window, no product)."""
    return node.op.has_any(_BOUNDED)


def _fusable_consumer(node: Node, pinned: set[Node]) -> bool:
    return node.op.has_any(_FUSABLE) or node in pinned


def _same_order(access: Access, result: Value, here: tuple[Index, ...]) -> bool:
    """Check whether the access reads, by affine indices, the element with the same row-major number as the reader's."""
    if not all(isinstance(atom, Axis) for index in access.index for atom, _ in index.terms):
        return False
    read = flatten(access.index, row_major_strides(access.value.shape))
    return read == flatten(here, row_major_strides(result.shape))


def _aligned(node: Node, access: Access, group: Group) -> bool:
    """Check whether the value is read at the same point of the domain at which the reader is computed."""
    value, result = access.value, node.results[0]
    reduction = node.op.has(Trait.REDUCTION)
    here = domain_axes(node.operands[0].shape if reduction else result.shape)
    if group.kind != "row":  # values that differ only by a reshape have the same row-major offsets
        if _have_same_numbers(value.shape, result.shape) and access.index == here:
            return True
        if value.type.size != result.type.size:
            return False
        return flatten(access.index, row_major_strides(value.shape)) == flatten(here, row_major_strides(result.shape))
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
