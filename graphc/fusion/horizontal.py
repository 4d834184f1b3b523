"""Horizontal fusion: merge groups that read the same memory; recompute cheap values in each reader."""

from __future__ import annotations

from math import prod

from graphc.base.sizes.size import hint
from graphc.codegen.machine.costs import FusionCosts
from graphc.fusion.partition import Group, Partition
from graphc.fusion.price import weight
from graphc.ir.graph.graph import Node, Value
from graphc.ir.op import Trait
from graphc.passes.operand_access import Access, domain_axes, is_virtual

_IN_PLACE = ("map", "row", "contraction")
"""Kinds of groups whose elementwise nodes compute each element of the domain once."""
_ONCE = Trait.ELEMENTWISE | Trait.REDUCTION


# ---- duplicates


def duplicate_producers(partition: Partition) -> None:
    """Recompute elementwise values in the groups that read them where that moves fewer bytes than storing them.

    An example is a product summed by a second reduction: that reduction reads the factors, which are in memory anyway.
    """
    for node in partition.materialized:
        large = _is_large(partition, node.results[0])
        cone = _cone(partition, node) if large and node not in partition.escaping else None
        readers = partition.reading(node) if cone else []
        if not cone or not readers or not all(_reads_in_place(partition, r, node) for r in readers):
            continue
        leaves = {a.value for n in cone for a in partition.reads[n] if a.value.node not in cone}
        extra_bytes = sum(2 * v.type.nbytes for v in leaves if _is_unstored(partition, v))
        for reader in readers:
            already_read = {a.value for n in reader.nodes for a in partition.reads[n]}
            extra_bytes += sum(v.type.nbytes for v in leaves - already_read)
        if hint(extra_bytes) < hint((2 + len(readers)) * node.results[0].type.nbytes):
            for reader in readers:
                for member in cone:
                    partition.duplicate(member, reader)


def _is_large(partition: Partition, value: Value) -> bool:
    return hint(value.type.nbytes) >= partition.costs.large_bytes


def _is_unstored(partition: Partition, value: Value) -> bool:
    return value.node in partition.group_of and not partition.is_stored(value.node)


def _cone(partition: Partition, node: Node) -> set[Node] | None:
    """Return the nodes of its group that compute ``node`` from memory; None if one is not elementwise, or too costly.

    Each element must be computed from the same element of stored values, or from a value of its row.
    """
    group = partition.group_of[node]
    if group.kind not in _IN_PLACE:
        return None
    cone: set[Node] = set()
    stack, weight = [node], 0
    while stack:
        top = stack.pop()
        if top in cone:
            continue
        cone.add(top)
        weight += _weight(top)
        if weight > partition.costs.cheap or not top.op.has(Trait.ELEMENTWISE) or top in partition.pinned:
            return None
        for access in partition.reads[top]:
            if not access.plain:
                return None
            source = access.value.node
            if partition.group_of.get(source) is group and access.value.shape == node.results[0].shape:
                stack += [] if partition.is_stored(source) else [source]
    return cone


def _weight(node: Node) -> int:
    """Return the operations per element of a node, plus the operations of its views and generators."""
    total = weight(node)
    stack = [v.node for v in node.operands if is_virtual(v.node)]
    while stack:
        source = stack.pop()
        total += weight(source, least=0)
        stack.extend(v.node for v in source.operands if is_virtual(v.node))
    return total


def _reads_in_place(partition: Partition, group: Group, node: Node) -> bool:
    """Check whether a group reads each element of a node once, at the same point of its own domain."""
    if group.kind not in _IN_PLACE or group.shape != node.results[0].shape:
        return False
    if partition.is_incompatible(group, partition.group_of[node]):
        return False
    for reader in group.nodes:
        for access in partition.reads[reader]:
            if access.value.node is node and not (reader.op.has_any(_ONCE) and _is_in_place(access)):
                return False
    return True


def _is_in_place(access: Access) -> bool:
    return access.plain and access.index == domain_axes(access.value.shape)


# ---- horizontal fusion


def fuse_horizontally(partition: Partition) -> None:
    """Merge groups over one domain that read the same large value and do not depend on each other."""
    readers: dict[Value, list[Group]] = {}
    for group in partition.groups():
        for node in group.nodes:
            for access in partition.reads[node]:
                if _is_large(partition, access.value) and _is_in_place(access) and node.op.has_any(_ONCE):
                    readers.setdefault(access.value, []).append(group)
    became: dict[Group, Group] = {}
    for groups in readers.values():
        joined: list[Group] = []
        for group in groups:
            merged_group = _present(group, became)
            joined = list(dict.fromkeys(_present(g, became) for g in joined))
            for other in joined:
                merged = _joint(partition, other, merged_group) if other is not merged_group else None
                if merged is not None:
                    partition.join(merged, other, merged_group)
                    became[other] = became[merged_group] = merged_group = merged
                    break
            joined.append(merged_group)


def _present(group: Group, became: dict[Group, Group]) -> Group:
    """Return the group into which a group has been merged (itself if it has not)."""
    while group in became:
        group = became[group]
    return group


def _joint(partition: Partition, a: Group, b: Group) -> Group | None:
    """Return the (still empty) group into which two groups could be merged, or None."""
    kinds = {a.kind, b.kind}
    if not kinds <= {"map", "row"} or a.shape != b.shape or partition.is_incompatible(a, b):
        return None
    row = a if a.kind == "row" else b
    if kinds == {"row"} and a.axes != b.axes:
        return None
    if kinds == {"row", "map"} and not _has_short_rows(row, partition.costs):
        return None
    all_full = all(n.results[0].shape == a.shape for g in (a, b) if g.kind == "map" for n in g.nodes)
    costs = partition.costs
    if not all_full or len(a.nodes) + len(b.nodes) > costs.longest or _streams(partition, a, b) > costs.streams:
        return None
    if partition.reaches(a, b, directly=True) or partition.reaches(b, a, directly=True):
        return None
    return Group([], row.kind, row.shape, row.axes)


def _has_short_rows(row: Group, costs: FusionCosts) -> bool:
    """Check whether the rows of a group are contiguous in memory and fit into a near cache."""
    contiguous = set(row.axes) == set(range(len(row.shape) - len(row.axes), len(row.shape)))
    return contiguous and costs.row_element_bytes * hint(prod(row.shape[a] for a in row.axes)) <= costs.row_bytes


def _streams(partition: Partition, *groups: Group) -> int:
    """Count the large values read from memory or written to it by the groups together."""
    nodes = {n for g in groups for n in g.nodes}
    read = {a.value for n in nodes for a in partition.reads[n] if a.value.node not in nodes}
    written = {r for n in nodes for r in n.results if partition.is_stored(n)}
    return sum(_is_large(partition, v) for v in read | written)
