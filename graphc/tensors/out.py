"""``out=``: results of functions written to tensors that are there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from graphc.base.errors import ArgumentError, GradientError, ShapeError
from graphc.base.memory_format import HINTS, without_hints
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tensors.methods.inplace import write
from graphc.tensors.tensor import Tensor


def into(out: Any, result: Any, name: str) -> Any:
    """Makes ``result`` the content of ``out``, a tensor or as many as there are results, and returns ``out``.

    A tensor without elements gets the shape of its result. Raises GradientError where a gradient would be lost,
    ShapeError for another shape, DTypeError where the result is of a higher kind of type, ArgumentError.
    """
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise ArgumentError(f"{name}: out= is {len(result)} tensors, got {out!r}", remedy="a tuple of tensors")
        written = [into(o, r, name) for o, r in zip(out, result, strict=True)]
        return result._make(written) if hasattr(result, "_make") else tuple(written)  # type: ignore[attr-defined]
    if not isinstance(out, Tensor):
        raise ArgumentError(f"{name}: out= is a tensor, got {type(out).__name__}", remedy=f"graphc.empty(0), or {name}")
    if is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise GradientError(
            f"{name}: what is written to out= has no gradient", remedy="out.copy_(...), or graphc.no_grad()"
        )
    if out.shape != result.shape and not out.numel():
        out.data = write(result.new_empty(result.shape, dtype=out.dtype), result)
        return out
    if out.shape != result.shape:
        raise ShapeError(
            f"{name}: out= is of shape {list(out.shape)}, the result of {list(result.shape)}", remedy="graphc.empty(0)"
        )
    return write(out, result)


@functools.cache
def with_hints(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that also takes ``out=``, ``layout=``, ``memory_format=`` and ``pin_memory=``."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs or (_NAMES.isdisjoint(kwargs)):
            return function(*args, **kwargs)
        out = kwargs.pop("out", None)
        result = function(*args, **without_hints(function.__name__, kwargs))
        return result if out is None else into(out, result, function.__name__)

    return call


_NAMES = HINTS | {"out"}
