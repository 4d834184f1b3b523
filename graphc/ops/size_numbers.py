"""Numbers that are computed from sizes known at run time, as operands of ops."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any

from graphc.base.dtypes import DType, float64
from graphc.base.sizes.size import SizeNumber, is_size
from graphc.ir.op import REGISTRY
from graphc.ops import dispatch

_OPS: dict[Callable[..., Any], str] = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.truediv: "div",
    math.sqrt: "sqrt",
    operator.pow: "pow",
}
"""What a number is computed by, as ops on f64. All but the last one round once, as Python does."""


def depends_on_sizes(value: Any) -> bool:
    """Whether a number is not known before a call."""
    return is_size(value) or isinstance(value, SizeNumber)


def number_of_sizes(value: Any, dtype: DType) -> Any:
    """A number that is computed from sizes as an operand without dimensions: what Python computes from the sizes of a
    call, in integers or f64, as an element of a type.

    Powers may be off by a rounding or two of f64. Of remainders and floored quotients of floats, which have other signs
    of zero in ops than in Python, the number is taken (which a trace writes down as an assumption).
    """
    found = _node(value)
    return found if found.dtype is dtype else dispatch.apply(REGISTRY["cast"], (found,), {"dtype": dtype})


def number(value: Any, dtype: DType) -> Any:
    """A number, which may be computed from sizes, as an operand without dimensions."""
    return (number_of_sizes if depends_on_sizes(value) else dispatch.current().scalar)(value, dtype)


def _node(value: Any) -> Any:
    """i64 or f64."""
    if is_size(value):
        # Loaded here, since its definition needs what makes numbers operands.
        return import_module("graphc.ops.size").size(value=value)
    if not isinstance(value, SizeNumber) or value.function not in _OPS:
        return dispatch.current().scalar(float(value), float64)
    return dispatch.apply(REGISTRY[_OPS[value.function]], tuple(_wide(x) for x in value.operands), {})


def _wide(value: Any) -> Any:
    return number_of_sizes(value, float64)
