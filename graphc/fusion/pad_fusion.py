"""Framing: a kernel whose result is only wanted with a frame of padding around it writes it into the frame at once."""

from __future__ import annotations

from graphc.fusion.partition import Group, Partition
from graphc.ir.graph.graph import Node, Value
from graphc.ir.op import Trait
from graphc.ops.shape import pad


def frame(partition: Partition) -> None:
    """Joins paddings with the products and nests of which they are the only readers. What was a copy of the whole value
    becomes loops over the frame."""
    for node in partition.real:
        if not is_frame(node) or len(partition.group_of[node].nodes) != 1:
            continue
        source = node.operands[0]
        inner = partition.group_of.get(source.node)
        if inner is None or source.shape != inner.shape or source.node in partition.escaping:
            continue
        whole = inner.kind == "contraction" or (inner.kind == "nest" and inner.nodes[0].op.has(Trait.STORES_ONCE))
        if whole and partition.readers[source.node] == [node] and source.node not in partition.again:
            partition.join(Group([], inner.kind, inner.shape), inner, partition.group_of[node])


def is_frame(node: Node) -> bool:
    """True for a padding that only adds elements around its operand."""
    attrs = node.attrs
    return node.op is pad.op and not any(attrs["interior"]) and min((*attrs["low"], *attrs["high"]), default=0) >= 0


def framed_value(value: Value, members: set[Node]) -> Value:
    """What a kernel that holds ``members`` computes of a value point by point: the value, or what it is a frame of."""
    node = value.node
    inside = node in members and is_frame(node) and node.operands[0].node in members
    return node.operands[0] if inside else value
