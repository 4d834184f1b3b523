"""Graph construction: apply an op to values, run its type rule, and normalize its attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, elements
from graphc.base.errors import GraphcError
from graphc.base.location import UNKNOWN, Location
from graphc.ir.graph.graph import CONSTANT, Graph, Value
from graphc.ir.op import OpDef


def emit(
    graph: Graph,
    op: OpDef,
    operands: Sequence[Value],
    attrs: Mapping[str, Any] | None = None,
    location: Location = UNKNOWN,
    name: str | None = None,
) -> tuple[Value, ...]:
    """Append ``op(*operands, **attrs)`` and return its results.

    Raises the type rule's error with ``where`` (the application) and ``origin`` (the user's line) filled in.
    """
    try:
        full = op.normalize(attrs or {})
        types = op.result_types(tuple([v.type for v in operands]), full)
    except GraphcError as error:
        error.where = error.where or describe(op, operands, attrs or {})
        error.origin = error.origin or location.describe() or None
        raise
    if op is CONSTANT and not types[0].shape:
        return (graph.scalar(full["value"], types[0].dtype),)
    return graph.add_node(op, operands, full, types, location, name).results


def describe(op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> str:
    """Format the ``where`` line of an error for an application without result; operands need ``dtype`` and
    ``shape``."""
    args = ", ".join(_describe_operand(op, i, v) for i, v in enumerate(operands))
    attr_text = ", ".join(f"{k}={v}" for k, v in attrs.items() if not isinstance(v, (np.ndarray, Graph)))
    return f"{op.name}({args})" + (f" {{{attr_text}}}" if attr_text else "")


def _describe_operand(op: OpDef, i: int, value: Any) -> str:
    name = getattr(value, "name", None) or (op.operands[i] if i < len(op.operands) else op.operands[-1])
    return f"%{name.lstrip('*')}: {value.dtype.name}[{','.join(map(str, value.shape))}]"


def constant(graph: Graph, value: Any, dtype: DType) -> Value:
    """Add a constant to the graph; scalars are interned."""
    array = elements(value, dtype)
    return emit(graph, CONSTANT, (), {"value": array})[0]
