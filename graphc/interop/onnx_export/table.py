"""Tables of the export: rules by op, and functions with an ONNX operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.interop.onnx_export import control, elementwise, layers, products, quantized, sequences, shaping
from graphc.interop.onnx_export.layers import LayerRule
from graphc.interop.onnx_export.writer import CallRule, Rule

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **shaping.RULES,
    **products.RULES,
    **control.RULES,
}
"""Rules by op. Ops that decompose into ops of this table need no entry."""
ENTRIES: tuple[LayerRule, ...] = (*layers.ENTRIES, *sequences.ENTRIES, *quantized.ENTRIES)
"""Functions whose calls become one operator, where it fits."""


def call_rules(opset: int) -> dict[Callable[..., Any], CallRule]:
    """Return the rules of functions with an operator in this opset."""
    return {entry.function: entry.rule for entry in ENTRIES if entry.since <= opset}
