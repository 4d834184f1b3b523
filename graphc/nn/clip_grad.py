"""Gradient clipping, and parameters as one vector."""

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
from graphc.tensors.native import TensorGroup, native_loop
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, grads_of
from graphc.tracing.training import check_instead

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]
__all__ += ["parameters_to_vector", "vector_to_parameters"]


def _gradients(parameters: Tensor | Iterable[Tensor]) -> tuple[list[Any], TensorGroup | None]:
    """Return the gradients of parameters, and the same as a group where native code may change them."""
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    gradients = [gradient for gradient in grads_of(tensors) if gradient is not None]
    loop = native_loop(tensors) if gradients else None
    return gradients, None if loop is None else loop.together(gradients)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Compute the ``norm_type``-norm of all elements of all tensors together, as a tensor without dimensions.

    With ``error_if_nonfinite``, raises GradientError when the norm is infinite or NaN.
    """
    values = [tensors] if isinstance(tensors, Tensor) else tensors
    values = [t.detach() for t in values]
    if not values:
        return front().scalar(0.0, float32)
    norm = norm_of(values, norm_type)
    return _finite(norm) if error_if_nonfinite else norm


def norm_of(tensors: Sequence[Any], norm_type: float) -> Any:
    """Compute the norm of all elements of one or more tensors, in their widest element type."""
    norms = [reshape(composite.norm(t, norm_type), shape=(1,)) for t in tensors]
    dtype = common_type(norms, "get_total_norm")
    return composite.norm(concat(*[as_type(n, dtype) for n in norms], axis=0), norm_type)


def _finite(norm: Any) -> Any:
    if not bool(mathematics.isfinite(norm)):
        raise GradientError(f"the norm of the gradients is not finite: {norm.item()}")
    return norm


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients in place so that their joint norm is at most ``max_norm``; return the norm before scaling.

    With ``error_if_nonfinite``, raises GradientError when that norm is infinite or NaN.

    Example:
        >>> import graphc as gc
        >>> weight = gc.nn.Parameter(gc.zeros(2))
        >>> weight.grad = gc.tensor([3.0, 4.0])
        >>> gc.nn.utils.clip_grad_norm_([weight], max_norm=1.0)
        tensor(5.)
        >>> weight.grad
        tensor([0.6000, 0.8000])
    """
    gradients, group = _gradients(parameters)
    if group is None:
        with no_grad():
            norm = get_total_norm(gradients, norm_type, error_if_nonfinite)
    else:
        norm = _finite(group.norm(norm_type)) if error_if_nonfinite else group.norm(norm_type)
    _scale(gradients, group, max_norm, norm)
    if norm_type >= 1:
        check_instead(gradients, norm)
    return norm


clip_grad_norm = clip_grad_norm_
"""The old name of ``clip_grad_norm_``."""


def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor) -> None:
    """Scale all gradients in place, treating ``total_norm`` as their joint norm and ``max_norm`` as its limit."""
    _scale(*_gradients(parameters), max_norm, total_norm)


def _scale(gradients: list[Any], group: TensorGroup | None, max_norm: Any, norm: Any) -> None:
    if group is not None and type(max_norm) in (int, float) and norm._data.__class__ is np.ndarray:
        with np.errstate(all="ignore"):
            scalar = norm._data.dtype.type
            factor = np.minimum(scalar(max_norm) / (norm._data + scalar(1e-6)), scalar(1))
        if factor != 1:
            group.scale(factor)
        return
    with no_grad():
        factor = ew.minimum(ew.div(max_norm, ew.add(norm, 1e-6)), 1.0)
        for gradient in gradients:
            gradient.copy_(ew.mul(gradient, factor))


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clamp every element of every gradient, in place, to ``-clip_value``..``clip_value``."""
    gradients, group = _gradients(parameters)
    if group is not None and type(clip_value) in (int, float):
        group.clamp(clip_value)
        return
    with no_grad():
        for gradient in gradients:
            gradient.copy_(composite.clamp(gradient, -clip_value, clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate all parameters into one vector."""
    return concat(*[p.reshape(-1) for p in parameters], axis=0)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy a vector from ``parameters_to_vector`` back into the parameters; raise ShapeError for a wrong length."""
    targets: list[Any] = list(parameters)
    count = sum(p.numel() for p in targets)
    if tuple(vec.shape) != (count,):
        raise ShapeError(
            f"vector_to_parameters: the parameters have {count} elements, the vector has shape {list(vec.shape)}"
        )
    start = 0
    with no_grad():
        for parameter in targets:
            stop = start + parameter.numel()
            parameter.copy_(vec[start:stop].reshape(*parameter.shape))
            start = stop
