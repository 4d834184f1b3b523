"""Activations that cut off small values, thresholds, random slopes, and samples of a softmax."""

from __future__ import annotations

from graphc.base.errors import AttributeValueError
from graphc.nn.functional.activation import celu, elu, hardtanh, leaky_relu, relu, selu
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.reduction import reduce
from graphc.ops.selection.index import iota
from graphc.tensors import composite
from graphc.tensors.random import sampling
from graphc.tensors.tensor import Tensor

__all__ = ["celu_", "elu_", "gumbel_softmax", "hardshrink", "hardtanh_", "leaky_relu_", "relu_", "rrelu", "rrelu_"]
__all__ += ["selu_", "softshrink", "tanhshrink", "threshold", "threshold_"]


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x, but 0 from ``-lambd`` to ``lambd``."""
    inside = ew.logical_and(ew.ge(input, -lambd), ew.le(input, lambd))
    return ew.where(inside, 0, input)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Move x towards 0 by ``lambd``; return 0 from ``-lambd`` to ``lambd``."""
    if lambd < 0:
        raise AttributeValueError(f"softshrink: lambd must not be negative, got {lambd}")
    below = ew.where(ew.lt(input, -lambd), ew.add(input, lambd), ew.mul(input, 0))
    return ew.where(ew.gt(input, lambd), ew.sub(input, lambd), below)


def tanhshrink(input: Tensor) -> Tensor:
    """Subtract its hyperbolic tangent from x."""
    return ew.sub(input, mathematics.tanh(input))


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where it exceeds ``threshold``, else ``value``."""
    result = ew.where(ew.le(input, threshold), value, input)
    return input.copy_(result) if inplace else result


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return x where x > 0, else x times a slope: drawn from ``lower``..``upper`` in training, else their mean."""
    if lower > upper:
        raise AttributeValueError(f"rrelu: lower {lower} > upper {upper}", remedy="pass lower <= upper")
    if training:
        draw = sampling.uniform_of_rows(tuple(input.shape), input)
        slope = ew.cast(ew.add(ew.mul(draw, upper - lower), lower), dtype=input.dtype)
    else:
        slope = (lower + upper) / 2
    result = ew.where(ew.gt(input, 0), input, ew.mul(input, slope))
    return input.copy_(result) if inplace else result


def relu_(input: Tensor) -> Tensor:
    """Apply ``relu`` in place."""
    return relu(input, inplace=True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Apply ``leaky_relu`` in place."""
    return leaky_relu(input, negative_slope, inplace=True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Apply ``elu`` in place."""
    return elu(input, alpha, inplace=True)


def selu_(input: Tensor) -> Tensor:
    """Apply ``selu`` in place."""
    return selu(input, inplace=True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Apply ``celu`` in place."""
    return celu(input, alpha, inplace=True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Apply ``hardtanh`` in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Apply ``threshold`` in place."""
    return input.copy_(ew.where(ew.le(input, threshold), value, input))


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """Apply ``rrelu`` in place."""
    return rrelu(input, lower, upper, training, inplace=True)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Sample the categorical distribution that ``logits`` describe along ``dim``, softened by temperature ``tau``.

    See Jang et al. 2017. ``hard`` makes the sample one-hot, with the gradient of the soft one.
    """
    gumbel = sampling.gumbel(tuple(logits.shape), logits.dtype, near=logits)
    soft = composite.softmax(ew.mul(ew.add(logits, gumbel), 1.0 / tau), dim)
    if not hard:
        return soft
    axis = dim % len(soft.shape)
    top = reduce.argmax(soft, axis=axis, keepdims=True)
    one_hot = ew.cast(ew.eq(iota(shape=tuple(soft.shape), axis=axis), top), dtype=soft.dtype)
    return ew.add(ew.sub(one_hot, soft.detach()), soft)
