"""Structural keys of groups: groups with equal keys become equal kernels, and only one of them is lowered."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from graphc.fusion.partition import Group
from graphc.ir.graph.graph import Node, Value, attr_key


def lies_ready(value: Value, stored: Collection[Value], placed: Collection[Value]) -> bool:
    """Check whether a value computed elsewhere is read from memory.

    Scalar constants are not, even if they are also stored for nodes such as host calls: kernels contain them.
    """
    return (value in stored or value in placed) and not value.is_scalar_constant


def group_key(
    group: Group, storage_names: Mapping[Value, str], stored: Collection[Value], strides: Mapping[str, tuple[int, ...]]
) -> tuple[Hashable, tuple[str, ...]]:
    """Return (key, storages) of a group whose values are in the storages ``storage_names``.

    ``strides`` holds the strides of storages in another than row-major order. Groups with equal keys have the same
    kernel, called with the storages at the same positions.
    """
    members = set(group.nodes)
    node_numbers: dict[Node, int] = {}
    storages: dict[str, int] = {}
    node_keys: list[Hashable] = []

    def is_loaded(value: Value) -> bool:
        return value.node not in members and lies_ready(value, stored, storage_names)

    def storage_of(value: Value) -> Hashable:
        name = storage_names.get(value, "")
        type = value.type
        return storages.setdefault(name, len(storages)), type.dtype, type.shape, strides.get(name)

    stack = list(reversed(group.nodes))
    while stack:
        node = stack[-1]
        before = [v.node for v in node.operands if not is_loaded(v) and v.node not in node_numbers]
        if node not in node_numbers and before:
            stack += before
            continue
        stack.pop()
        if node not in node_numbers:
            node_numbers[node] = len(node_numbers)
            operands = [storage_of(v) if is_loaded(v) else (node_numbers[v.node], v.index) for v in node.operands]
            types = tuple([(r.type.dtype, r.type.shape) for r in node.results])
            node_keys.append((node.op.name, attr_key(node.attrs), types, node in members, *operands))
    outputs = tuple((node_numbers[v.node], v.index, storage_of(v)) for v in group.outputs)
    return (group.kind, group.shape, group.axes, outputs, *node_keys), tuple(storages)
