"""Rules of ONNX operators that reduce: sums, extremes, norms, positions of extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.dtypes import DType, bool_, float32, limits
from graphc.interop.onnx import unsigned
from graphc.interop.onnx.elements import UINT64
from graphc.interop.onnx.registry import op
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.reduction import reduce
from graphc.tensors import functions
from graphc.tensors.creation import full
from graphc.tensors.tensor import Tensor

Axes = tuple[int, ...]


def _is_empty(x: Tensor, axes: Axes) -> bool:
    """Check whether the reduction is over no elements. An open size gets another program where it is 0."""
    return any(x.shape[a] == 0 for a in axes)


def _filled(x: Tensor, axes: Axes, keep: bool, value: Any) -> Tensor:
    """Return the result of a reduction over no elements."""
    if keep:
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    else:
        shape = [n for i, n in enumerate(x.shape) if i not in axes]
    return full(tuple(shape), value, dtype=x.dtype)


def _sum(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    return reduce.sum(x, axes=axes, keepdims=keep) if axes else x


def _real(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating_point else x.to(float32)


def _mean(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    if x.dtype.is_floating_point:
        return functions.mean(x, axes, keep) if axes else x
    count = math.prod(x.shape[a] for a in axes)
    return functions.div(_sum(x, axes, keep), count, rounding_mode="trunc").to(x.dtype)


def _prod(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    return reduce.prod(x, axes=axes, keepdims=keep) if axes else x


def _extreme(fold: Callable[..., Any], of_none: Callable[[DType], Any]) -> Callable[[Tensor, Axes, bool], Tensor]:
    def rule(x: Tensor, axes: Axes, keep: bool) -> Tensor:
        if _is_empty(x, axes):
            return _filled(x, axes, keep, of_none(x.dtype))
        if x.dtype is bool_:
            return fold(x.to("uint8"), axes=axes, keepdims=keep).to(bool_) if axes else x
        return fold(x, axes=axes, keepdims=keep) if axes else x

    return rule


def _log_sum_exp(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    x = _real(x)
    if _is_empty(x, axes):
        return _filled(x, axes, keep, -math.inf)
    return functions.logsumexp(x, axes, keep) if axes else x


_lowest = _extreme(reduce.max, lambda dtype: limits(dtype)[0])
_highest = _extreme(reduce.min, lambda dtype: limits(dtype)[1])
_RULES: dict[str, Callable[[Tensor, Axes, bool], Tensor]] = {
    "ReduceSum": _sum,
    "ReduceMean": _mean,
    "ReduceProd": _prod,
    "ReduceMax": _lowest,
    "ReduceMin": _highest,
    "ReduceL1": lambda x, axes, keep: _sum(ew.abs(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: functions.sqrt(_real(_sum(x * x, axes, keep))),
    "ReduceSumSquare": lambda x, axes, keep: _sum(x * x, axes, keep),
    "ReduceLogSum": lambda x, axes, keep: functions.log(_real(_sum(x, axes, keep))),
    "ReduceLogSumExp": _log_sum_exp,
}
_INPUT_SINCE = {"ReduceSum": 13}
"""Version from which axes are an input. 18 for all others."""
_ORDERED = frozenset({"ReduceMax", "ReduceMin"})


def _reduced(name: str, x: Tensor, axes: Sequence[int], keep: bool, empty_is_none: bool, call: Any) -> Tensor:
    """Reduce axes. Without axes, ``empty_is_none`` reduces nothing; otherwise all axes are reduced."""
    at = tuple(sorted(a % x.ndim for a in axes))
    if not at and not empty_is_none:
        at = tuple(range(x.ndim))
    if call.element(0) is UINT64 and name in _ORDERED:
        return unsigned.ordered(_RULES[name](unsigned.ordered(x), at, keep))
    result = _RULES[name](x, at, keep)
    return result if result.dtype is x.dtype else result.to(x.dtype)


def _enter(name: str) -> None:
    def of_attribute(data: Tensor, *, axes: Sequence[int] = (), keepdims: int = 1, call: Any) -> Tensor:
        return _reduced(name, data, axes, bool(keepdims), False, call)

    def of_input(
        data: Tensor, axes: Sequence[int] | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0, call: Any
    ) -> Tensor:
        return _reduced(name, data, () if axes is None else axes, bool(keepdims), bool(noop_with_empty_axes), call)

    op(name)(of_attribute)
    op(name, since=_INPUT_SINCE.get(name, 18), host="axes")(of_input)


for _name in _RULES:
    _enter(_name)


# ---- positions


def _position(name: str, fold: Callable[..., Tensor]) -> None:
    def rule(data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0, call: Any) -> Tensor:
        at = axis % data.ndim
        x = unsigned.ordered(data) if call.element(0) is UINT64 else data
        if not select_last_index:
            return fold(x, at, bool(keepdims))
        return x.shape[at] - 1 - fold(functions.flip(x, (at,)), at, bool(keepdims))

    op(name)(rule)


_position("ArgMax", functions.argmax)
_position("ArgMin", functions.argmin)


# ---- norms


@op("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """Divide by the norm along an axis. Zero vectors stay as they are."""
    at = (axis % x.ndim,)
    length = _sum(ew.abs(x), at, True) if p == 1 else functions.sqrt(_sum(x * x, at, True))
    return x / ew.where(length.eq(0), 1.0, length)


@op("MeanVarianceNormalization", since=9)
def mean_variance_normalization(x: Tensor, *, axes: Sequence[int] = (0, 2, 3)) -> Tensor:
    """Subtract the mean and divide by the standard deviation plus 1e-9."""
    at = tuple([a % x.ndim for a in axes])
    centered = x - functions.mean(x, at, True)
    return centered / (functions.sqrt(functions.mean(centered * centered, at, True)) + 1e-9)
