"""``out=``: writes results of functions to existing tensors."""

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
    """Write ``result`` to ``out``, a tensor or a tuple of one per result, and return ``out``.

    A tensor without elements takes the shape of its result. Raises GradientError if a gradient would be lost,
    ShapeError for another shape, DTypeError if the result's kind of type is higher, ArgumentError for other arguments.
    """
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise ArgumentError(
                f"{name}: out= must be {len(result)} tensors, got {out!r}", remedy="pass a tuple of tensors"
            )
        written = [into(o, r, name) for o, r in zip(out, result, strict=True)]
        return result._make(written) if hasattr(result, "_make") else tuple(written)  # type: ignore[attr-defined]
    if not isinstance(out, Tensor):
        raise ArgumentError(
            f"{name}: out= must be a tensor, got {type(out).__name__}", remedy="pass graphc.empty(0), or omit out="
        )
    if is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise GradientError(
            f"{name}: a result written to out= would lose its gradient",
            remedy="call out.copy_(...), or write within graphc.no_grad()",
        )
    if out.shape != result.shape and not out.numel():
        out.data = write(result.new_empty(result.shape, dtype=out.dtype), result)
        return out
    if out.shape != result.shape:
        raise ShapeError(
            f"{name}: out= has shape {list(out.shape)}, the result {list(result.shape)}", remedy="pass graphc.empty(0)"
        )
    return write(out, result)


@functools.cache
def with_hints(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function also accept ``out=``, ``layout=``, ``memory_format=`` and ``pin_memory=``."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs or (_NAMES.isdisjoint(kwargs)):
            return function(*args, **kwargs)
        out = kwargs.pop("out", None)
        result = function(*args, **without_hints(function.__name__, kwargs))
        return result if out is None else into(out, result, function.__name__)

    return call


_NAMES = HINTS | {"out"}
