"""Partition of a graph's nodes into groups, and the reads between groups."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field

from graphc.base.records import dataclass
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value, attr_key, has_sizes
from graphc.ir.graph.interpret import live_nodes
from graphc.ir.kernel.index import Index
from graphc.ir.op import Trait
from graphc.passes.call_invariant import call_invariant_nodes
from graphc.passes.laid_out import laid_out
from graphc.passes.long_views import is_written_by_parts, long_views
from graphc.passes.operand_access import (
    Access,
    ReadRecord,
    accesses,
    domain_axes,
    is_virtual,
    look_through_views,
    operand_reads,
    read_records,
    written_value,
)
from graphc.passes.updates import stored_content

KINDS = ("map", "row", "contraction", "nest")
"""``map``: every value has the domain's shape. ``row``: reductions of the domain over ``axes`` and elementwise values
around them. ``contraction``: one sum of products and its epilogue. ``nest``: one op that lowers itself, a scan, or a
concatenation of many parts."""


@dataclass(eq=False)
class Group:
    """Nodes of one kernel. ``shape`` is the iteration domain, ``axes`` are the reduced axes of a row group."""

    nodes: list[Node]
    kind: str
    shape: tuple[int, ...]
    axes: tuple[int, ...] = ()
    outputs: list[Value] = field(default_factory=list)
    """Values that are stored, in node order (filled in at the end)."""
    divisions: int = 0
    """Upper bound of successive divisions of an index, from a reader in the group down to the value that it reads."""
    is_exact: bool = False
    """Whether the shape of every node is known to fit the domain, so that none is there only to be inlined."""

    @property
    def nest(self) -> Node:
        """The op of a nest group that lowers itself; nodes that others in the group need may come before it."""
        return next((n for n in self.nodes if n.op.lower_nest is not None), self.nodes[0])

    @property
    def kept(self) -> tuple[int, ...]:
        """Shape of the domain without the reduced axes."""
        return tuple(e for i, e in enumerate(self.shape) if i not in self.axes)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of the domain with the reduced axes set to 1."""
        return tuple(1 if i in self.axes else e for i, e in enumerate(self.shape))

    def is_full(self, value: Value) -> bool:
        """Check whether the value has one element per point of the domain."""
        return value.shape == self.shape and not (self.kind == "row" and value.node.op.has(Trait.REDUCTION))

    def outer(self, value: Value, index: tuple[Index, ...]) -> tuple[Index, ...] | None:
        """Return the coordinates of a row-level value's index along the unreduced axes.

        Returns None when the value's shape is neither ``kept`` nor ``row_shape``.
        """
        if value.shape == self.kept and len(self.kept) != len(self.shape):
            return index
        if value.shape == self.row_shape:
            return tuple(x for i, x in enumerate(index) if i not in self.axes)
        return index if value.shape == self.kept else None


class Partition:
    """Assignment of nodes to groups, with the reads and dependences between groups."""

    def __init__(self, graph: Graph, costs: FusionCosts = DEFAULT.fusion):
        self.graph = graph
        self.costs = costs
        order = graph.nodes()
        live = live_nodes(graph, [*graph.outputs, *(v for n in graph.having(Trait.EFFECT) for v in n.results)])
        self.position = {node: i for i, node in enumerate(order)}
        deep = long_views(graph, costs)
        self.laid_out = laid_out(graph)
        """Views (concatenations) whose operands are computed directly at their offsets in the result."""
        self.pinned = _pinned(graph, deep)
        """Views and generators that are stored in memory nevertheless."""
        self.virtual = {n for n in order if is_virtual(n)}
        """Nodes that need no memory of their own (unless they are pinned)."""
        self.materialized = [n for n in order if n in live and self._is_materialized(n)]
        """Nodes that a kernel computes."""
        self.group_of: dict[Node, Group] = {n: self._single(n) for n in self.materialized}
        for node in deep & self.group_of.keys():
            self.group_of[node].divisions = costs.view_divisions + 1
        self.duplicated: dict[Node, list[Group]] = {}
        """Further groups that compute a node for themselves."""
        self._read_records: dict[Hashable, list[ReadRecord]] = {}
        """Reads of kernel rules by op and types."""
        self.reads: dict[Node, list[Access]] = {n: self._reads(n) for n in self.materialized}
        """The reads of a node, from memory or from other nodes."""
        self.readers: dict[Node, list[Node]] = {}
        for node in self.materialized:
            for access in self.reads[node]:
                readers = self.readers.setdefault(access.value.node, [])
                if not readers or readers[-1] is not node:
                    readers.append(node)
        self.awaited = self._awaited()
        """Nodes that must be computed before a node although it does not read them."""
        self.awaiting: dict[Node, list[Node]] = {}
        for node, sources in self.awaited.items():
            for source in sources:
                self.awaiting.setdefault(source, []).append(node)
        self.call_invariant = call_invariant_nodes(graph, costs)
        """Nodes that run once for many calls; a group holds only such nodes or none."""
        self.escaping = {v.node for v in _values_after_call(graph)}
        """Nodes whose values outlive the call."""
        self._bits: dict[Group, int] = {}
        self._above: dict[Group, int] = {}
        """A bit for each group, and the bits of all groups that it depends on, once groups are numbered."""
        self._readers: dict[Group, dict[Group, None]] = {}
        """Memo of the groups that read results of a group; some of them may have been merged since."""
        self._became: dict[Group, Group] = {}
        """Merged groups: from an old group to the one that replaced it."""
        self._searched: tuple[Group | None, Group | None, set[Group]] = (None, None, set())
        """The last answer of `_between`: two groups, and those between them."""
        self._reached: dict[Group, Group] = {}
        """A group that is known to depend on a group, far behind it: a search takes it first."""
        self._line: list[Group | None] = [*self.groups()]
        self._rank = {group: rank for rank, group in enumerate(self._line) if group is not None}
        """Order in which groups can run, until they are numbered: None where a group was merged, and each position."""

    def _single(self, node: Node) -> Group:
        """Return the initial group of one node."""
        by_parts = node in self.laid_out or is_written_by_parts(node, self.costs)
        if node.op.lower_nest is not None or needs_stored_operands(node) or by_parts:
            return Group([node], "nest", node.results[0].shape, is_exact=True)
        if node.op.has(Trait.REDUCTION):
            return Group([node], "row", node.operands[0].shape, node_axes(node), is_exact=True)
        kind = "contraction" if node.op.has(Trait.CONTRACTION) else "map"
        return Group([node], kind, node.results[0].shape, is_exact=True)

    def _is_materialized(self, node: Node) -> bool:
        if node in self.pinned:
            return True
        if node.op is CONSTANT or node in self.virtual or node.op.has(Trait.STATE_WRITE):
            return False
        return node.op is not INPUT

    def _reads(self, node: Node) -> list[Access]:
        """Return the reads of stored or computed values, in the axes of the node's domain, through virtual nodes."""
        if node.op.lower is None:
            direct = [Access(v, domain_axes(v.shape), dynamic=True) for v in node.operands]
        elif node.op.has(Trait.REDUCTION):
            direct = [Access(v, domain_axes(v.shape)) for v in node.operands]
        else:
            direct = self._rule_reads(node)
        reads: list[Access] = []
        for access in direct:
            source = access.value.node
            if source not in self.virtual or source in self.pinned:
                reads.append(access)
            elif source.op is not CONSTANT:
                reads += look_through_views(access.value, access.index, self.pinned, access)
        # Scalar constants are in memory only for nodes whose operands all are.
        if needs_stored_operands(node):
            return reads
        return [read for read in reads if not read.value.is_scalar_constant]

    def _rule_reads(self, node: Node) -> list[Access]:
        """Return the reads of a kernel rule, found once for nodes of an op with equal types and attributes."""
        here = domain_axes(node.results[0].shape)
        types = [v.type for v in (*node.operands, *node.results)]
        has_numbers = all([type(extent) is int for t in types for extent in t.shape])
        if not has_numbers or (node.attrs and has_sizes(node)):
            return operand_reads(node, here)
        key = node.op, attr_key(node.attrs), *[entry for t in types for entry in (t.dtype, t.shape)]
        records = self._read_records.get(key)
        if records is None:
            records = self._read_records[key] = read_records(node, here)
        return accesses(node, records)

    def _awaited(self) -> dict[Node, list[Node]]:
        if not self.graph.having(Trait.WAITS):
            return {}
        awaited: dict[Node, dict[Node, None]] = {}
        for node in self.materialized:
            stack, visited = [node], {node}
            while stack:
                current = stack.pop()
                if current.op.has(Trait.WAITS):
                    reads = look_through_views(current.operands[1], domain_axes(current.operands[1].shape), self.pinned)
                    waits = [a.value.node for a in reads if a.value.node in self.group_of and a.value.node is not node]
                    awaited.setdefault(node, {}).update(dict.fromkeys(waits))
                for value in current.operands[:1] if current.op.has(Trait.WAITS) else current.operands:
                    if value.node not in visited and value.node not in self.group_of and value.node.op is not INPUT:
                        visited.add(value.node)
                        stack.append(value.node)
        return {node: list(sources) for node, sources in awaited.items()}

    def is_incompatible(self, first: Group, second: Group) -> bool:
        """Check whether one of two groups runs once for many calls and the other in each call."""
        return (first.nodes[0] in self.call_invariant) != (second.nodes[0] in self.call_invariant)

    def groups(self) -> list[Group]:
        """Return all groups, in the order of their first nodes."""
        return list(dict.fromkeys(self.group_of[n] for n in self.materialized))

    def join(self, merged: Group, first: Group, second: Group) -> None:
        """Move the nodes of two groups into ``merged``."""
        merged_from = (first, second)
        if self._bits:
            self._number_joined(merged, merged_from)
        else:
            self._order_joined(merged, first, second)
        if not self.duplicated:
            merged.nodes = [*first.nodes, *second.nodes]
            self.group_of.update(dict.fromkeys(merged.nodes, merged))
            return
        merged.nodes = list(dict.fromkeys(n for old in merged_from for n in old.nodes))
        for node in merged.nodes:
            if self.group_of[node] in merged_from:
                self.group_of[node] = merged
        for node in [n for n in merged.nodes if n in self.duplicated]:
            others = dict.fromkeys(merged if g in merged_from else g for g in self.duplicated.pop(node))
            duplicates = [g for g in others if g is not self.group_of[node]]
            if duplicates:
                self.duplicated[node] = duplicates

    def duplicate(self, node: Node, group: Group) -> None:
        """Make a group compute a node for itself that another group computes too."""
        if node not in group.nodes:
            group.nodes.append(node)
            self.duplicated.setdefault(node, []).append(group)
            self._readers.clear()  # the group now reads the operands of the node instead of its value

    def holds(self, group: Group, node: Node) -> bool:
        """Check whether a group computes a node."""
        return self.group_of[node] is group or group in self.duplicated.get(node, ())

    def reading(self, node: Node) -> list[Group]:
        """Return the groups that read a node's results from memory."""
        if not self.duplicated:
            groups = dict.fromkeys([self.group_of[r] for r in self.readers.get(node, ())])
            groups.pop(self.group_of[node], None)
            return [*groups]
        candidates = (g for r in self.readers.get(node, ()) for g in (self.group_of[r], *self.duplicated.get(r, ())))
        return [g for g in dict.fromkeys(candidates) if not self.holds(g, node)]

    def _following(self, node: Node) -> list[Group]:
        """Return the groups that read a node's results from memory, or wait for it."""
        waiting = self.awaiting.get(node)
        if not waiting:
            return self.reading(node)
        candidates = (g for r in waiting for g in (self.group_of[r], *self.duplicated.get(r, ())))
        return list(dict.fromkeys((*self.reading(node), *(g for g in candidates if not self.holds(g, node)))))

    def before(self, group: Group) -> set[Group]:
        """Return the groups whose results this one reads, or for which it waits."""
        nodes = {a.value.node for n in group.nodes for a in self.reads[n]}
        if not self.awaited and not self.duplicated:
            groups = {self.group_of[n] for n in nodes if n in self.group_of}
            groups.discard(group)
            return groups
        if self.awaited:
            nodes.update(source for n in group.nodes for source in self.awaited.get(n, ()))
        return {self.group_of[n] for n in nodes if n in self.group_of and not self.holds(group, n)}

    def is_stored(self, node: Node) -> bool:
        """Check whether a node's results are stored in memory."""
        return needs_stored_operands(node) or node in self.escaping or bool(self.reading(node))

    def reaches(self, producer: Group, consumer: Group, directly: bool) -> bool:
        """Check whether the consumer depends on the producer through other groups, or also ``directly``."""
        if not self._bits:
            return (directly and consumer in self._after(producer)) or self._between(producer, consumer) is None
        bits = self._bits[producer]
        if directly:
            return bool(bits & self._above[consumer])
        return any(bits & self._above[g] for g in self.before(consumer) if g is not producer)

    def _between(self, first: Group, last: Group) -> set[Group] | None:
        """Return the groups that depend on ``first`` and come before ``last`` in the order; None if ``last`` depends on
        one of them. A join needs the answer to the last question once more."""
        if self._searched[:2] == (first, last):
            return self._searched[2]
        rank, between = self._rank, set[Group]()
        end = rank[last]
        pending = [*self._after(first)]
        while pending:
            group = pending.pop()
            if rank[group] < end and group not in between:
                between.add(group)
                following = self._after(group)
                pending += following
                far = self._reached.get(group)
                if far is not None:
                    far = self._present(far)
                    pending.append(far)
                if far is last or last in following:
                    self._reached[first] = last
                    return None
        self._searched = first, last, between
        return between

    def _order_joined(self, merged: Group, first: Group, second: Group) -> None:
        """Put a merged group where the later one was, and all that depends on the earlier one behind it."""
        first, second = sorted((first, second), key=self._rank.__getitem__)
        between, line = self._between(first, second), self._line
        assert between is not None, "no third group lies between two that merge"
        after = {g: None for old in (first, second) for g in self._after(old) if g is not first and g is not second}
        begin, end = self._rank.pop(first), self._rank.pop(second)
        line[begin], line[end] = None, merged
        if between:
            section = line[begin:end]
            line[begin : end + 1] = [
                *(g for g in section if g not in between),
                merged,
                *(g for g in section if g in between),
            ]
        moved = enumerate(line[begin : end + 1], begin) if between else ((end, merged),)
        self._rank.update((group, rank) for rank, group in moved if group is not None)
        self._readers[merged] = after
        self._became.update({first: merged, second: merged})
        self._searched = (None, None, set())

    def number(self) -> None:
        """Compute the dependences of all groups. From then on joins keep them, and groups may compute nodes twice."""
        for i, group in enumerate(sorted(self._rank, key=self._rank.__getitem__)):
            self._bits[group] = 1 << i
        for group in self._bits:
            above = 0
            for source in self.before(group):
                above |= self._bits[source] | self._above[source]
            self._above[group] = above

    def _number_joined(self, merged: Group, merged_from: tuple[Group, ...]) -> None:
        """Update the bit sets: a merged group has the bits of both; its dependents inherit all dependences of both."""
        bits = above = 0
        for old in merged_from:
            bits |= self._bits.pop(old)
            above |= self._above.pop(old)
        above &= ~bits
        both = above | bits
        after = {g: None for old in merged_from for g in self._after(old) if g not in merged_from}
        if not self.duplicated:
            self._readers[merged] = after
        self._became.update((old, merged) for old in merged_from)
        needing, present, readers_of = list(after), self._above, self._readers
        while needing:  # groups whose set does not grow are not followed: their dependents have the bits already
            group = needing.pop()
            bits_before = present.get(group)
            if bits_before is None:
                current = self._present(group)
                needing += [current] if current in present else []
            elif bits_before | both != bits_before:
                present[group] = bits_before | both
                needing += readers_of.get(group) or self._after(group)
        self._bits[merged], self._above[merged] = bits, above

    def _after(self, group: Group) -> dict[Group, None]:
        """Return the groups that read results of this one or wait for it."""
        readers = self._readers.get(group)
        if readers is None and not self.awaiting and not self.duplicated:
            readers = dict.fromkeys([self.group_of[r] for n in group.nodes for r in self.readers.get(n, ())])
            readers.pop(group, None)
        elif readers is None:
            readers = dict.fromkeys(g for n in group.nodes if self.group_of[n] is group for g in self._following(n))
        elif not self._became.keys().isdisjoint(readers):
            readers = dict.fromkeys(current for g in readers if (current := self._present(g)) is not group)
        if not self.duplicated:
            self._readers[group] = readers
        return readers

    def _present(self, group: Group) -> Group:
        """Return the group into which a group has been merged (itself if it has not)."""
        while group in self._became:
            group = self._became[group]
        return group


def node_axes(node: Node) -> tuple[int, ...]:
    """Return the dimensions reduced by a REDUCTION node."""
    return node.attrs["axes"] if "axes" in node.attrs else (node.attrs["axis"],)


def is_check(node: Node) -> bool:
    """Check whether a node may abort the call (a check of data)."""
    return node.op.has(Trait.CHECK)


def is_repeated(node: Node) -> bool:
    """Check whether a node is a scan: repeated calls of the kernels of its body, with all operands in memory."""
    return node.op.has(Trait.LOOP)


def needs_stored_operands(node: Node) -> bool:
    """Check whether operands and results of a node must all be stored, in row-major order.

    True for nodes that hold graphs (loops, branches) and for host calls.
    """
    return node.op.has_any(_STORED_OPERANDS)


_STORED_OPERANDS = Trait.LOOP | Trait.HOST | Trait.BRANCH | Trait.WHILE


def _values_after_call(graph: Graph) -> list[Value]:
    """Return the values that outlive the call: outputs, written states, and results of checks."""
    written = [stored_content(n) for n in graph.having(Trait.STATE_WRITE)]
    checked = [n.results[0] for n in graph.having(Trait.CHECK)]
    return [written_value(v) for v in (*graph.outputs, *written, *checked)]


def _pinned(graph: Graph, deep: set[Node]) -> set[Node]:
    """Return the virtual nodes that must be stored nevertheless.

    These are outputs, written states, too deep chains of views, and views that products or nests read by anything but
    plain index arithmetic.
    """
    pinned = deep | {value.node for value in _values_after_call(graph) if is_virtual(value.node)}
    for node in graph.nodes_of(lambda op: op.lower is None or op.has(Trait.CONTRACTION)):
        for operand in node.operands:
            access = look_through_views(operand, domain_axes(operand.shape), pinned)
            if needs_stored_operands(node):
                pinned.update([operand.node] if is_virtual(operand.node) else [])
            elif operand.is_scalar_constant:
                continue
            elif is_virtual(operand.node) and not (
                len(access) == 1 and access[0].plain and _takes_views(node, operand)
            ):
                pinned.add(_last_irregular(operand) or operand.node)
    return pinned


def _takes_views(node: Node, operand: Value) -> bool:
    """Check whether a node can read an operand through its views.

    An update may not read its own target through a view, since it would read elements after changing them.
    """
    if node.op.updates is None:
        return node.op.lower is not None
    old = node.operands[node.op.updates]
    return operand is old or _only_source(operand) is not _only_source(old)


def _only_source(value: Value) -> Value | None:
    """Return the only value read by a view (through further views); None if it reads several."""
    access = look_through_views(value, domain_axes(value.shape))
    return access[0].value if len(access) == 1 else None


def _last_irregular(operand: Value) -> Node | None:
    """Return the first view, going up from an operand, with more than index arithmetic.

    Storing that one lets the views after it stay virtual.
    """
    value = operand
    while is_virtual(value.node) and value.node.op is not CONSTANT and value.node.operands:
        reads = operand_reads(value.node, domain_axes(value.shape))
        if len(reads) != 1 or not reads[0].plain:
            return value.node
        value = reads[0].value
    return value.node if is_virtual(value.node) else None
