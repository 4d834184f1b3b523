"""Limits on gradients, and parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import float32
from graphc.base.errors import GradientError, ShapeError
from graphc.ops.define import as_type, common_type
from graphc.ops.movement.shape import concat, reshape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tape.grad_mode import no_grad
from graphc.tensors import composite
from graphc.tensors.native import NativeLoop, native_loop
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


def _with_gradient(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p for p in given if p.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """The ``norm_type``-norm of all elements of all tensors together, without dimensions.

    ``error_if_nonfinite`` raises GradientError when that is infinite or not a number.
    """
    given = [tensors] if isinstance(tensors, Tensor) else tensors
    given = [t.detach() for t in given]
    if not given:
        return front().scalar(0.0, float32)
    norm = norm_of(given, norm_type)
    return _finite(norm) if error_if_nonfinite else norm


def norm_of(tensors: Sequence[Any], norm_type: float) -> Any:
    """The norm of all elements of some tensors, at least one, in the wider of their element types."""
    norms = [reshape(composite.norm(t, norm_type), shape=(1,)) for t in tensors]
    dtype = common_type(norms, "get_total_norm")
    return composite.norm(concat(*[as_type(n, dtype) for n in norms], axis=0), norm_type)


def _finite(norm: Any) -> Any:
    if not bool(mathematics.isfinite(norm)):
        raise GradientError(f"the norm of the gradients is {norm.item()}")
    return norm


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scales all gradients, in place, so that their norm together is at most ``max_norm``; returns the norm before.

    ``error_if_nonfinite`` raises GradientError when that is infinite or not a number.
    """
    held = _with_gradient(parameters)
    loop = native_loop(held)
    found = None if loop is None else loop.total_norm([p.grad for p in held], norm_type)
    if found is None:
        with no_grad():
            norm = get_total_norm([p.grad for p in held], norm_type, error_if_nonfinite)
    else:
        norm = _finite(found) if error_if_nonfinite else found
    _scale(held, max_norm, norm, loop)
    return norm


def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor) -> None:
    """Scales all gradients, in place, as if their norm together were ``total_norm`` and had to be at most
    ``max_norm``."""
    held = _with_gradient(parameters)
    _scale(held, max_norm, total_norm, native_loop(held))


def _scale(held: list[Any], max_norm: Any, norm: Any, loop: NativeLoop | None) -> None:
    gradients = [p.grad for p in held]
    if loop is not None and type(max_norm) in (int, float) and norm._data.__class__ is np.ndarray:
        with np.errstate(all="ignore"):
            one = norm._data.dtype.type
            factor = np.minimum(one(max_norm) / (norm._data + one(1e-6)), one(1))
        if factor == 1 or loop.scale(gradients, factor):
            return
    with no_grad():
        factor = ew.minimum(ew.div(max_norm, ew.add(norm, 1e-6)), 1.0)
        for gradient in gradients:
            gradient.copy_(ew.mul(gradient, factor))


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Limits every element of every gradient, in place, to ``-clip_value``..``clip_value``."""
    held = _with_gradient(parameters)
    gradients = [p.grad for p in held]
    loop = native_loop(held)
    if loop is not None and type(clip_value) in (int, float) and loop.clamp(gradients, clip_value):
        return
    with no_grad():
        for gradient in gradients:
            gradient.copy_(composite.clamp(gradient, -clip_value, clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters as one vector."""
    return concat(*[p.reshape(-1) for p in parameters], axis=0)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copies a vector from ``parameters_to_vector`` back; raises ShapeError when it has another length."""
    held: list[Any] = list(parameters)
    count = sum(p.numel() for p in held)
    if tuple(vec.shape) != (count,):
        raise ShapeError(f"vector_to_parameters: a vector {list(vec.shape)} for {count} elements")
    start = 0
    with no_grad():
        for parameter in held:
            stop = start + parameter.numel()
            parameter.copy_(vec[start:stop].reshape(*parameter.shape))
            start = stop
