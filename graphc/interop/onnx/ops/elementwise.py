"""Rules of elementwise ONNX operators: arithmetic, comparisons, logic, bits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, float64, int64
from graphc.interop.onnx import unsigned
from graphc.interop.onnx.elements import STRING, UINT64
from graphc.interop.onnx.registry import op, same
from graphc.interop.onnx.values import Value
from graphc.nn import functional as F
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import free_functions, functions
from graphc.tensors.creation import zeros_like
from graphc.tensors.tensor import Tensor

_SPACES = (functions, free_functions, F)


def _function(name: str) -> Any:
    return next(getattr(space, name) for space in _SPACES if hasattr(space, name))


same("Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg Reciprocal Sigmoid", _function)
same("Sin Sinh Sqrt Tan Tanh Round Relu Softplus Softsign Mish IsNaN", _function)
same("Add Sub Mul", _function)
same("And=logical_and Or=logical_or Xor=logical_xor Not=logical_not", _function)
same("BitwiseAnd=bitwise_and BitwiseOr=bitwise_or BitwiseXor=bitwise_xor BitwiseNot=bitwise_not", _function)


@op("Identity", values=True)
def identity(x: Any) -> Any:
    return x


@op("Abs")
def absolute(x: Tensor, *, call: Any) -> Tensor:
    return x if call.element(0) is UINT64 else ew.abs(x)


@op("Sign")
def sign(x: Tensor, *, call: Any) -> Tensor:
    """Return -1, 0 or 1. NaN stays NaN."""
    if call.element(0) is UINT64:
        return x.ne(0).to(int64)
    signs = ew.sign(x)
    return ew.where(x.ne(x), x, signs) if x.dtype.is_floating_point else signs


@op("Div")
def div(a: Tensor, b: Tensor, *, call: Any) -> Tensor:
    """Divide elementwise. Integer quotients truncate towards zero, as in C."""
    if call.element(0) is UINT64:
        return unsigned.quotient(a, b)
    return a / b if a.dtype.is_floating_point else functions.div(a, b, rounding_mode="trunc")


@op("Mod")
def mod(a: Tensor, b: Tensor, *, fmod: int = 0, call: Any) -> Tensor:
    """Return the remainder, with the sign of the divisor or, with ``fmod``, of the dividend."""
    if call.element(0) is UINT64:
        return a - unsigned.quotient(a, b) * b
    return functions.fmod(a, b) if fmod else ew.mod(a, b)


@op("Pow")
def power(x: Tensor, exponent: Tensor, *, call: Any) -> Tensor:
    """Raise to a power, in the type of the base. Computes with real numbers where one operand is real."""
    is_integer = not x.dtype.is_floating_point
    if is_integer and not exponent.dtype.is_floating_point:
        return functions.pow(x, exponent.to(x.dtype))
    if is_integer:
        base = unsigned.as_real(x, float64) if call.element(0) is UINT64 else x.to(float64)
        return functions.pow(base, exponent.to(float64)).to(x.dtype)
    return functions.pow(x, exponent.to(x.dtype))


# ---- comparisons


@op("Equal", values=True)
def equal(a: Value, b: Value) -> Any:
    """Check elementwise equality, also of strings."""
    if a.element is STRING:
        return np.equal(a.array, b.array).astype(bool)
    return ew.eq(a.tensor, b.tensor)


@op("Where", values=True)
def where(condition: Value, x: Value, y: Value) -> Value:
    if x.element is STRING:
        return Value(STRING, None, np.where(condition.array, x.array, y.array))
    return Value(x.element, ew.where(condition.tensor, x.tensor, y.tensor))


def _compared(name: str, function: Callable[[Any, Any], Any]) -> None:
    def rule(a: Tensor, b: Tensor, *, call: Any) -> Tensor:
        if call.element(0) is UINT64:
            a, b = unsigned.ordered(a), unsigned.ordered(b)
        return function(a, b)

    op(name)(rule)


for _name, _comparison in (("Greater", ew.gt), ("Less", ew.lt), ("GreaterOrEqual", ew.ge), ("LessOrEqual", ew.le)):
    _compared(_name, _comparison)


def _extreme(name: str, function: Callable[[Any, Any], Any]) -> None:
    def rule(*data: Tensor, call: Any) -> Tensor:
        if call.element(0) is UINT64:
            return unsigned.ordered(functools.reduce(function, [unsigned.ordered(x) for x in data]))
        return functools.reduce(function, data)

    op(name)(rule)


_extreme("Max", ew.maximum)
_extreme("Min", ew.minimum)


@op("Sum")
def total(*data: Tensor) -> Tensor:
    return functools.reduce(ew.add, data)


@op("Mean")
def mean(*data: Tensor) -> Tensor:
    return functools.reduce(ew.add, data) / len(data)


@op("Clip", since=6)
def clip_between(x: Tensor, *, min: float = -3.4028234663852886e38, max: float = 3.4028234663852886e38) -> Tensor:
    return x.clamp(min, max)


@op("Clip", since=11)
def clip(x: Tensor, min: Tensor | None = None, max: Tensor | None = None, *, call: Any) -> Tensor:
    """Limit from below, then from above."""
    if call.element(0) is UINT64:
        limits = [None if v is None else unsigned.ordered(v) for v in (min, max)]
        return unsigned.ordered(_limited(unsigned.ordered(x), *limits))
    return _limited(x, min, max)


def _limited(x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    x = x if low is None else ew.maximum(x, low)
    return x if high is None else ew.minimum(x, high)


# ---- infinities and bits


@op("IsInf")
def is_infinite(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    if detect_negative and detect_positive:
        return functions.isinf(x)
    if detect_positive or detect_negative:
        return functions.isposinf(x) if detect_positive else functions.isneginf(x)
    return zeros_like(x, dtype=bool_)


@op("BitShift", since=11)
def bit_shift(x: Tensor, y: Tensor, *, direction: str = "", call: Any) -> Tensor:
    """Shift by ``y`` bits, with zeros from either side. Bits that leave the type are lost."""
    if direction == "LEFT":
        return ew.shift_left(x, y)
    if call.element(0) is UINT64:
        return unsigned.shifted_right(x, y)
    return ew.shift_right(x, y)
