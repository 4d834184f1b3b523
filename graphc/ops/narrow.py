"""Narrow floats in ops: ops that only move elements take f16 and bf16 directly; all others compute in f32."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.autocast_state import autocast_dtype
from graphc.base.dtypes import DType, bool_, float32, promote
from graphc.base.errors import DTypeError, GraphcError
from graphc.ir.op import REGISTRY, OpDef, Trait
from graphc.ir.types import TensorType

Apply = Callable[[OpDef, Sequence[Any], Mapping[str, Any]], Any]


def is_narrow(operands: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
    """Check whether an operand is f16 or bf16, or the attributes ask for such a result."""
    for operand in operands:
        dtype = getattr(operand, "dtype", None)
        if isinstance(dtype, DType) and dtype.kind == "h":
            return True
    return bool(attrs) and _is_half(attrs.get("dtype"))


def _is_half(dtype: object) -> bool:
    return isinstance(dtype, DType) and dtype.kind == "h"


def answers(op: OpDef, count: int, attrs: Mapping[str, Any]) -> bool:
    """Check whether results of the op on ``count`` numbers are bools."""
    try:
        results = op.result_types((TensorType(float32),) * count, op.normalize(attrs))
    except GraphcError:
        return False
    return all(type.dtype is bool_ for type in results)


Casts = Sequence[DType | None]
"""For each operand the type to which it is cast, or None."""


class Promotion:
    """Conversions around an op that make its operands ones of types that it takes."""

    # NOTE: no NamedTuple, because a trace takes its generated constructor for code of the user, and guards it.
    __slots__ = ("attrs", "result", "stages")

    def __init__(self, stages: Sequence[Casts], attrs: Mapping[str, Any], result: DType | None = None):
        self.stages = tuple([casts for casts in stages if any(casts)])
        """Casts of all operands, one after the other: to their common type, and to f32."""
        self.attrs = attrs
        """The attributes of the op."""
        self.result = result
        """A narrow float to which results of f32 are rounded."""


def promote_narrow(
    op: OpDef, types: Sequence[TensorType], casts: Casts, attrs: Mapping[str, Any], common: DType | None
) -> Promotion:
    """Return the conversions for an op on narrow floats: ``casts`` alone where its type rule takes them then, else also
    casts to f32, with each result rounded once.

    ``types`` are the operands' types after ``casts``. A result is as narrow as ``common``, the common type of the
    floats among the operands, or as the attribute ``dtype`` says.
    """
    if op.has(Trait.CONVERSION) or _takes(op, types, attrs):
        return Promotion((casts,), attrs)
    requested = attrs.get("dtype")
    result = (common or _common(types)) if requested is None else requested
    if _is_half(requested):
        attrs = {**attrs, "dtype": float32}
    wide = [float32 if t.dtype.kind == "h" else None for t in types]
    return Promotion((casts, wide), attrs, result if _is_half(result) else None)


def rounded_factors(apply: Apply, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Cast the f32 operands of a product to the type of ``autocast``."""
    dtype = autocast_dtype()
    if dtype is None:
        return operands
    return tuple([apply(REGISTRY["cast"], (t,), {"dtype": dtype}) if t.dtype is float32 else t for t in operands])


def _takes(op: OpDef, types: Sequence[TensorType], attrs: Mapping[str, Any]) -> bool:
    """Check whether the op's type rule takes the operands directly. Operands rejected for other reasons than their
    element types count as taken, and the op then reports them."""
    try:
        return bool(op.result_types(tuple(types), op.normalize(attrs)))
    except DTypeError:
        return False
    except GraphcError:
        return True


def _common(operands: Sequence[Any]) -> DType | None:
    result: DType | None = None
    for operand in operands:
        if operand.dtype.is_floating_point:
            result = operand.dtype if result is None else promote(result, operand.dtype)
    return result
