"""Arithmetic of ONNX operators on static arrays, with which models compute shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.sizes.size import is_size, larger, root, smaller
from graphc.interop.onnx.real_sizes import whole_below
from graphc.interop.onnx.registry import host

Array = np.ndarray


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    """Apply a function of Python numbers and sizes to each element."""
    operands = np.broadcast_arrays(*arrays)
    result = np.empty(operands[0].shape, object)
    for position in np.ndindex(result.shape):
        result[position] = function(*[_plain(a[position]) for a in operands])
    return result


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _of_sizes(function: Callable[..., Any], of_one: Callable[..., Any]) -> Callable[..., Array]:
    """Return a rule that applies ``function`` to arrays, and ``of_one`` to each element of arrays that hold sizes."""

    def rule(*arrays: Array, **attributes: Any) -> Array:
        with np.errstate(all="ignore"):
            if any(a.dtype == object for a in arrays):
                return _each(of_one, *arrays)
            return np.asarray(function(*arrays))

    return rule


def _quotient(a: Any, b: Any) -> Any:
    """Divide real numbers. Integer quotients truncate towards zero, as in C."""
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    return a // b if (a >= 0) == (b > 0) else -((-a) // b)


def _divided(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    if a.dtype.kind == "u" or not (b != 0).all():
        return np.where(b == 0, 0, a // np.where(b == 0, 1, b)).astype(a.dtype)
    floor = a // b
    return floor + ((floor < 0) & (floor * b != a))


for _name, _function, _of_one in (
    ("Add", np.add, lambda a, b: a + b),
    ("Sub", np.subtract, lambda a, b: a - b),
    ("Mul", np.multiply, lambda a, b: a * b),
    ("Div", _divided, _quotient),
    ("Neg", np.negative, lambda x: -x),
    ("Abs", np.abs, abs),
    ("Sign", np.sign, lambda x: int(x > 0) - int(x < 0)),
    ("Sqrt", np.sqrt, root),
    ("Floor", np.floor, lambda x: whole_below(x) * 1.0),
    ("Ceil", np.ceil, lambda x: -whole_below(-x) * 1.0),
    ("Equal", np.equal, lambda a, b: bool(a == b)),
    ("Less", np.less, lambda a, b: bool(a < b)),
    ("LessOrEqual", np.less_equal, lambda a, b: bool(a <= b)),
    ("Greater", np.greater, lambda a, b: bool(a > b)),
    ("GreaterOrEqual", np.greater_equal, lambda a, b: bool(a >= b)),
    ("And", np.logical_and, lambda a, b: bool(a and b)),
    ("Or", np.logical_or, lambda a, b: bool(a or b)),
    ("Xor", np.logical_xor, lambda a, b: bool(a) != bool(b)),
    ("Not", np.logical_not, lambda x: not x),
    ("Where", np.where, lambda condition, x, y: x if condition else y),
):
    host(_name)(_of_sizes(_function, _of_one))


def _pair_of(function: Callable[[Array, Array], Array], of_one: Callable[[Any, Any], Any]) -> Any:
    rule = _of_sizes(function, of_one)
    return lambda *arrays: functools.reduce(rule, arrays)


host("Max")(_pair_of(np.maximum, larger))
host("Min")(_pair_of(np.minimum, smaller))
host("Sum")(_pair_of(np.add, lambda a, b: a + b))


@host("Mod")
def mod(a: Array, b: Array, *, fmod: int = 0) -> Array:
    if a.dtype == object or b.dtype == object:
        return _each(lambda x, y: x % y if not fmod else x - _quotient(x, y) * y, a, b)
    with np.errstate(all="ignore"):
        return np.fmod(a, b) if fmod else np.mod(a, b)


@host("Pow")
def power(x: Array, exponent: Array) -> Array:
    if x.dtype == object or exponent.dtype == object:
        return _each(lambda a, b: a ** (b if is_size(b) else int(b)), x, exponent)
    with np.errstate(all="ignore"):
        real = x.astype(np.float64) if x.dtype.kind in "iu" and exponent.dtype.kind in "if" else x
        return np.power(real, exponent).astype(x.dtype)


def _reduced(name: str, function: Callable[..., Any], of_two: Callable[[Any, Any], Any], start: Any) -> None:
    def rule(
        data: Array,
        axes: Any = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
        **attributes: Any,
    ) -> Array:
        reduced_axes = attributes.get("axes", axes)
        if reduced_axes is None or not len(reduced_axes):
            if noop_with_empty_axes:
                return data
            reduced_axes = range(data.ndim)
        at = tuple([int(a) % data.ndim for a in reduced_axes])
        if data.dtype != object:
            return np.asarray(function(data, axis=at, keepdims=bool(keepdims)))
        if len(at) != data.ndim:
            return np.asarray(np.frompyfunc(of_two, 2, 1).reduce(data, axis=at[0], keepdims=bool(keepdims)))
        result = np.empty((1,) * data.ndim if keepdims else (), object)
        result[...] = functools.reduce(of_two, data.reshape(-1), start)
        return result

    host(name)(rule)


_reduced("ReduceSum", np.sum, lambda a, b: a + b, 0)
_reduced("ReduceProd", np.prod, lambda a, b: a * b, 1)
