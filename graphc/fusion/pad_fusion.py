"""Pad fusion: a kernel whose result is only read through a padding writes straight into the padded array."""

from __future__ import annotations

from graphc.fusion.partition import Group, Partition
from graphc.ir.graph.graph import Node, Value
from graphc.ir.op import Halo, Trait


def fuse_pads(partition: Partition) -> None:
    """Merge paddings into the products and nests of which they are the only readers.

    Short loops over the halo then replace a copy of the whole value.
    """
    for node in partition.materialized:
        if halo_of(node) is None or len(partition.group_of[node].nodes) != 1:
            continue
        source = node.operands[0]
        inner = partition.group_of.get(source.node)
        if inner is None or source.shape != inner.shape or source.node in partition.escaping:
            continue
        writes_all = inner.kind == "contraction" or (inner.kind == "nest" and inner.nest.op.has(Trait.STORES_ONCE))
        if writes_all and partition.readers[source.node] == [node] and source.node not in partition.duplicated:
            partition.join(Group([], inner.kind, inner.shape), inner, partition.group_of[node])


def halo_of(node: Node) -> Halo | None:
    """Return the halo added by a node around its operand; None if the node does anything else."""
    return None if node.op.halo is None else node.op.halo(node.attrs)


def halo_source(value: Value, members: set[Node]) -> Value:
    """Return the value to compute point by point for ``value`` in a kernel with these ``members``: the operand of a
    padding, if both are members, else ``value`` itself."""
    node = value.node
    inside = node in members and halo_of(node) is not None and node.operands[0].node in members
    return node.operands[0] if inside else value
