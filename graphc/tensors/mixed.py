"""Composite functions on narrow floats: all steps run in f32, and results are rounded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from graphc.base.autocast_state import autocast_dtype, suspended
from graphc.base.dtypes import DType, float32, promote
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.tensor_base import TensorBase

F = TypeVar("F", bound=Callable[..., Any])


def in_f32(function: F) -> F:
    """Decorate a function of tensors: convert f16 and bf16 arguments to f32, and f32 results to the first argument's
    type. Results of other types, and in-place writes to arguments of other types, stay unchanged."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not _any_narrow(args, kwargs):
            return function(*args, **kwargs)
        first = next((t.dtype for t in (*args, *kwargs.values()) if isinstance(t, TensorBase)), float32)
        return _rounded(function(*map(_wide, args), **{k: _wide(v) for k, v in kwargs.items()}), first)

    return run  # type: ignore[return-value]


def loss(function: F) -> F:
    """Decorate a loss like ``in_f32``, but with results of the arguments' common type; under ``autocast`` results are
    f32."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not _any_narrow(args, kwargs):
            return function(*args, **kwargs)
        result = function(*map(_wide, args), **{k: _wide(v) for k, v in kwargs.items()})
        return result if autocast_dtype() is not None else _rounded(result, _common((*args, *kwargs.values())))

    return run  # type: ignore[return-value]


def product(function: F) -> F:
    """Decorate a matrix product with its added term like ``in_f32``; under ``autocast`` f32 arguments, and so the
    result, become narrow first."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        dtype = autocast_dtype()
        if dtype is not None:
            args = tuple([_narrowed(a, dtype) for a in args])
            kwargs = {k: _narrowed(v, dtype) for k, v in kwargs.items()}
        if not _any_narrow(args, kwargs):
            return function(*args, **kwargs)
        tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, TensorBase)]
        with suspended():
            result = function(*map(_wide, args), **{k: _wide(v) for k, v in kwargs.items()})
        return _rounded(result, _common(tensors))

    return run  # type: ignore[return-value]


def _is_narrow(value: Any) -> bool:
    return isinstance(value, TensorBase) and value.dtype.kind == "h"


def _any_narrow(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    for value in args:
        if _is_narrow(value):
            return True
    return bool(kwargs) and any(map(_is_narrow, kwargs.values()))


def _wide(value: Any) -> Any:
    return ew.cast(value, dtype=float32) if _is_narrow(value) else value


def _narrowed(value: Any, dtype: DType) -> Any:
    is_plain = isinstance(value, TensorBase) and value.dtype is not dtype and value.dtype.kind in "fh"
    return ew.cast(value, dtype=dtype) if is_plain and value.dtype.bits <= 32 else value


def _common(values: Any) -> DType:
    common: DType | None = None
    for value in values:
        if isinstance(value, TensorBase) and value.dtype.is_floating_point:
            common = value.dtype if common is None else promote(common, value.dtype)
    return common or float32


def _rounded(result: Any, dtype: DType) -> Any:
    if dtype.kind != "h":
        return result
    if isinstance(result, tuple):
        items = [_rounded(item, dtype) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
    is_wide = isinstance(result, TensorBase) and result.dtype is float32
    return ew.cast(result, dtype=dtype) if is_wide else result
