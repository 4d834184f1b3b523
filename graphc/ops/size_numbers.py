"""Numbers computed from sizes known at run time, as operands of ops."""

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
"""Ops on f64 for the functions behind a number. All but the last one round once, as Python does."""


def depends_on_sizes(value: Any) -> bool:
    """Check whether a number is unknown before a call."""
    return is_size(value) or isinstance(value, SizeNumber)


def number_of_sizes(value: Any, dtype: DType) -> Any:
    """Return a number computed from sizes as an operand without dimensions. It is the value that Python computes from
    the sizes of a call, in integers or f64, converted to an element of the type.

    Powers may be off by one or two roundings of f64. Remainders and floored quotients of floats, whose zeros have other
    signs in ops than in Python, are taken as constants (which the trace records as assumptions).
    """
    operand = _node(value)
    return operand if operand.dtype is dtype else dispatch.apply(REGISTRY["cast"], (operand,), {"dtype": dtype})


def number(value: Any, dtype: DType) -> Any:
    """Return a number, which may be computed from sizes, as an operand without dimensions."""
    return (number_of_sizes if depends_on_sizes(value) else dispatch.current().scalar)(value, dtype)


def _node(value: Any) -> Any:
    """Return the number as i64 or f64."""
    if is_size(value):
        # Imported here, because the definition of the op imports this module.
        return import_module("graphc.ops.movement.size").size(value=value)
    if not isinstance(value, SizeNumber) or value.function not in _OPS:
        return dispatch.current().scalar(float(value), float64)
    return dispatch.apply(REGISTRY[_OPS[value.function]], tuple(_wide(x) for x in value.operands), {})


def _wide(value: Any) -> Any:
    return number_of_sizes(value, float64)
