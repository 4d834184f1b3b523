"""Pad fusion: a kernel whose result is only wanted with a halo of padding writes it into the padded array at once."""

from __future__ import annotations

from graphc.fusion.partition import Group, Partition
from graphc.ir.graph.graph import Node, Value
from graphc.ir.op import Halo, Trait


def fuse_pads(partition: Partition) -> None:
    """Joins paddings with the products and nests of which they are the only readers. What was a copy of the whole value
    becomes loops over the halo."""
    for node in partition.materialized:
        if halo_of(node) is None or len(partition.group_of[node].nodes) != 1:
            continue
        source = node.operands[0]
        inner = partition.group_of.get(source.node)
        if inner is None or source.shape != inner.shape or source.node in partition.escaping:
            continue
        whole = inner.kind == "contraction" or (inner.kind == "nest" and inner.nest.op.has(Trait.STORES_ONCE))
        if whole and partition.readers[source.node] == [node] and source.node not in partition.duplicated:
            partition.join(Group([], inner.kind, inner.shape), inner, partition.group_of[node])


def halo_of(node: Node) -> Halo | None:
    """What a padding that only adds elements around its operand adds; None for all other nodes."""
    return None if node.op.halo is None else node.op.halo(node.attrs)


def halo_source(value: Value, members: set[Node]) -> Value:
    """What a kernel that holds ``members`` computes of a value point by point: it, or what its halo lies around."""
    node = value.node
    inside = node in members and halo_of(node) is not None and node.operands[0].node in members
    return node.operands[0] if inside else value
