"""Conversion of ONNX operators up to version 6 to version 7, which broadcasts like numpy and has no training mode."""

from __future__ import annotations

from dataclasses import replace

from graphc.interop.onnx.graph import OnnxNode

ALIGN = "AlignAxis"
"""Operator of graphc's own domain: appends dimensions of 1 to align the first input with an axis of the second."""
OWN = "graphc"
_WITHOUT_MEANING = frozenset({"broadcast", "consumed_inputs", "is_test", "spatial"})
"""Attributes whose defaults, in inference, are what later versions do."""


def modern(node: OnnxNode) -> list[OnnxNode]:
    """Return the nodes that replace a node of version 6: an alignment of its second operand if need be, and version
    7."""
    if node.domain or node.version >= 7 or node.version == 0:
        return [node]
    attributes = {k: v for k, v in node.attributes.items() if k not in _WITHOUT_MEANING}
    axis = attributes.pop("axis", None) if "broadcast" in node.attributes else None
    if node.op == "PRelu":
        axis = 1
    plain = replace(node, version=7, attributes=attributes)
    if axis is None:
        return [plain]
    first, second, *rest = node.inputs
    aligned = f"{node.outputs[0]}/{second}"
    step = OnnxNode(f"{node.name}/{ALIGN}", ALIGN, OWN, 1, (second, first), (aligned,), {"axis": axis}, (0,))
    return [step, replace(plain, inputs=(first, aligned, *rest))]
