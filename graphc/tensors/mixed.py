"""Functions of several steps on narrow floats: all steps are f32, and results are rounded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from graphc.base.autocast_state import autocast_dtype, suspended
from graphc.base.dtypes import DType, float32, promote
from graphc.ops import elementwise as ew
from graphc.tensors.tensor_base import TensorBase

F = TypeVar("F", bound=Callable[..., Any])


def in_f32(function: F) -> F:
    """Decorates a function of tensors: f16 and bf16 arguments become f32, and f32 results as narrow as the first
    argument is. Results of other types, and in-place writes to arguments of other types, stay as they are."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not _any_narrow(args, kwargs):
            return function(*args, **kwargs)
        first = next((t.dtype for t in (*args, *kwargs.values()) if isinstance(t, TensorBase)), float32)
        return _rounded(function(*map(_wide, args), **{k: _wide(v) for k, v in kwargs.items()}), first)

    return run  # type: ignore[return-value]


def loss(function: F) -> F:
    """Decorates a loss: as ``in_f32``, where results have the common type of the arguments; under ``autocast`` they are
    f32."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not _any_narrow(args, kwargs):
            return function(*args, **kwargs)
        found = function(*map(_wide, args), **{k: _wide(v) for k, v in kwargs.items()})
        return found if autocast_dtype() is not None else _rounded(found, _common((*args, *kwargs.values())))

    return run  # type: ignore[return-value]


def product(function: F) -> F:
    """Decorates a product with what is added to it: as ``in_f32``; under ``autocast`` f32 arguments become narrow
    first, so that the result is."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        dtype = autocast_dtype()
        if dtype is not None:
            args = tuple([_narrowed(a, dtype) for a in args])
            kwargs = {k: _narrowed(v, dtype) for k, v in kwargs.items()}
        if not _any_narrow(args, kwargs):
            return function(*args, **kwargs)
        given = [t for t in (*args, *kwargs.values()) if isinstance(t, TensorBase)]
        with suspended():
            found = function(*map(_wide, args), **{k: _wide(v) for k, v in kwargs.items()})
        return _rounded(found, _common(given))

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
    found: DType | None = None
    for value in values:
        if isinstance(value, TensorBase) and value.dtype.is_floating_point:
            found = value.dtype if found is None else promote(found, value.dtype)
    return found or float32


def _rounded(found: Any, dtype: DType) -> Any:
    if dtype.kind != "h":
        return found
    if isinstance(found, tuple):
        parts = [_rounded(part, dtype) for part in found]
        return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    is_wide = isinstance(found, TensorBase) and found.dtype is float32
    return ew.cast(found, dtype=dtype) if is_wide else found
