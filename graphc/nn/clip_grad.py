"""Limits on gradients, and parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphc.base.dtypes import float32
from graphc.base.errors import GradientError, ShapeError
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops.shape import concat
from graphc.tape.grad_mode import no_grad
from graphc.tensors import composite
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
    norms = [composite.norm(t.detach(), norm_type).reshape(1) for t in given]
    if not norms:
        return front().scalar(0.0, float32)
    norm = composite.norm(concat(*norms, axis=0), norm_type)
    if error_if_nonfinite and not bool(mathematics.isfinite(norm)):
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
    with no_grad():
        norm = get_total_norm([p.grad for p in held], norm_type, error_if_nonfinite)
    clip_grads_with_norm_(held, max_norm, norm)
    return norm


def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor) -> None:
    """Scales all gradients, in place, as if their norm together were ``total_norm`` and had to be at most
    ``max_norm``."""
    with no_grad():
        factor = ew.minimum(ew.div(max_norm, ew.add(total_norm, 1e-6)), 1.0)
        for parameter in _with_gradient(parameters):
            parameter.grad.copy_(ew.mul(parameter.grad, factor))


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Limits every element of every gradient, in place, to ``-clip_value``..``clip_value``."""
    with no_grad():
        for parameter in _with_gradient(parameters):
            parameter.grad.copy_(composite.clamp(parameter.grad, -clip_value, clip_value))


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
