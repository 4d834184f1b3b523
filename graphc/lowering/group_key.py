"""The structure of a group as a key: groups with equal keys become equal kernels, so that one is lowered for all."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from graphc.fusion.partition import Group
from graphc.ir.graph.graph import Node, Value, attr_key


def lies_ready(value: Value, stored: Collection[Value], place: Collection[Value]) -> bool:
    """Whether a value that others compute is read from memory. Scalar constants are not, also those that lie there for
    nodes like host calls: they are part of a kernel's text."""
    return (value in stored or value in place) and not value.is_scalar_constant


def group_key(
    group: Group, place: Mapping[Value, str], stored: Collection[Value], strides: Mapping[str, tuple[int, ...]]
) -> tuple[Hashable, tuple[str, ...]]:
    """(key, storages) of a group whose values lie in the storages of ``place``, some of which are not row-major. Equal
    keys: the same kernel, called with the storages at the same positions."""
    members = set(group.nodes)
    numbers: dict[Node, int] = {}
    storages: dict[str, int] = {}
    parts: list[Hashable] = []

    def is_loaded(value: Value) -> bool:
        return value.node not in members and lies_ready(value, stored, place)

    def storage_of(value: Value) -> Hashable:
        name = place.get(value, "")
        return storages.setdefault(name, len(storages)), value.type, strides.get(name)

    stack = list(reversed(group.nodes))
    while stack:
        node = stack[-1]
        before = [v.node for v in node.operands if not is_loaded(v) and v.node not in numbers]
        if node not in numbers and before:
            stack += before
            continue
        stack.pop()
        if node not in numbers:
            numbers[node] = len(numbers)
            operands = (storage_of(v) if is_loaded(v) else (numbers[v.node], v.index) for v in node.operands)
            types = tuple(r.type for r in node.results)
            parts.append((node.op.name, attr_key(node.attrs), types, node in members, *operands))
    outputs = tuple((numbers[v.node], v.index, storage_of(v)) for v in group.outputs)
    return (group.kind, group.shape, group.axes, outputs, *parts), tuple(storages)
