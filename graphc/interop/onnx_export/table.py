"""The tables of what is written how: rules by op, and functions that ONNX has an operator for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.interop.onnx_export import control, elementwise, layers, products, sequences, shaping
from graphc.interop.onnx_export.layers import Entry
from graphc.interop.onnx_export.writer import CallRule, Rule

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **shaping.RULES,
    **products.RULES,
    **control.RULES,
}
"""By op. What is composed of ops in this table needs no entry."""
ENTRIES: tuple[Entry, ...] = (*layers.ENTRIES, *sequences.ENTRIES)
"""Functions whose calls are one operator, where it fits."""


def call_rules(opset: int) -> dict[Callable[..., Any], CallRule]:
    """The functions that have an operator in a version of ONNX."""
    return {entry.function: entry.rule for entry in ENTRIES if entry.since <= opset}
