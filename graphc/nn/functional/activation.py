"""Activations: rectifiers, smooth and bounded ones, gates, and softmax with its relatives."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.sizes.dims import extent_of
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.reduction import reduce
from graphc.ops.selection.index import iota
from graphc.tensors import composite
from graphc.tensors.mixed import in_f32
from graphc.tensors.random import sampling
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

__all__ = ["celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish"]
__all__ += ["hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid", "mish", "normalize"]
__all__ += ["prelu", "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid", "silu", "softmax"]
__all__ += ["softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_"]


SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805
"""Fixed point of mean 0 and variance 1 (Klambauer et al. 2017, "Self-Normalizing Neural Networks", section 2)."""


def put(input: Tensor, function: Callable[[Tensor], Tensor], inplace: bool) -> Tensor:
    """Apply ``function``; with ``inplace``, write the result to ``input``. Gradients then use the values from before
    the write."""
    if isinstance(input, Tensor) and input.dtype.kind == "h":
        function = in_f32(function)
    return input.copy_(function(front().before_write(input))) if inplace else function(input)


@compiled_when_repeated
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``max(x, 0)``.

    Example:
        >>> import graphc as gc
        >>> gc.nn.functional.relu(gc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    return put(input, composite.relu, inplace)


@compiled_when_repeated
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else ``negative_slope * x``."""
    return put(input, lambda x: ew.where(ew.gt(x, 0), x, ew.mul(x, negative_slope)), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Clamp x to 0..6."""
    return hardtanh(input, 0.0, 6.0, inplace)


@compiled_when_repeated
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Clamp x to ``min_val``..``max_val``; the gradient is 0 at the limits. Integers stay integers."""
    if min_val > max_val:
        raise AttributeValueError(f"hardtanh: min_val {min_val} > max_val {max_val}", remedy="pass min_val <= max_val")
    if input.dtype.kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
    return put(input, lambda x: mathematics.clamp(x, min_val, max_val, strict=True), inplace)


@compiled_when_repeated
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else ``alpha (exp(x) - 1)``."""

    def function(x: Tensor) -> Tensor:
        return ew.where(ew.gt(x, 0), x, ew.mul(mathematics.expm1(ew.where(ew.gt(x, 0), 0, x)), alpha))

    return put(input, function, inplace)


@compiled_when_repeated
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply the scaled elu, which keeps mean 0 and variance 1."""
    return put(input, lambda x: ew.mul(elu(x, SELU_ALPHA), SELU_SCALE), inplace)


@compiled_when_repeated
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else ``alpha (exp(x / alpha) - 1)``."""
    if alpha == 0:
        raise AttributeValueError("celu: alpha is 0", remedy="use relu, which is the limit, or another alpha")

    def function(x: Tensor) -> Tensor:
        below = ew.mul(mathematics.expm1(ew.mul(ew.where(ew.gt(x, 0), 0, x), 1.0 / alpha)), alpha)
        return ew.where(ew.gt(x, 0), x, below)

    return put(input, function, inplace)


@compiled_when_repeated
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x where x > 0, else ``weight * x`` with one weight, or one per channel (dimension 1).

    Raises ShapeError when the number of weights is neither 1 nor the number of channels.
    """
    if weight.numel() == 1:
        slope = weight.reshape(*(1,) * len(input.shape))
    else:
        channels = input.shape[1] if len(input.shape) > 1 else 1
        if tuple(weight.shape) != (channels,):
            raise ShapeError(f"prelu: {weight.numel()} weights for {channels} channels")
        slope = weight.reshape(-1, *(1,) * (len(input.shape) - 2))
    above = ew.gt(input, 0)
    # Infinity times a gradient of 0 would make the weights' gradient NaN.
    return ew.where(above, input, ew.mul(ew.where(above, 0, input), slope))


@compiled_when_repeated
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Multiply x by the normal distribution function at x; ``approximate="tanh"`` selects the tanh approximation.

    Example:
        >>> import graphc as gc
        >>> gc.nn.functional.gelu(gc.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1587,  0.0000,  0.8413])
    """
    return composite.gelu(input, approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Multiply x by its logistic sigmoid."""
    return put(input, composite.silu, inplace)


@compiled_when_repeated
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Multiply x by tanh(softplus(x))."""
    return put(input, lambda x: ew.mul(x, mathematics.tanh(composite.softplus(x))), inplace)


def tanh(input: Tensor) -> Tensor:
    """Compute the hyperbolic tangent."""
    return mathematics.tanh(input)


def sigmoid(input: Tensor) -> Tensor:
    """Compute ``1 / (1 + exp(-x))``."""
    return composite.sigmoid(input)


@in_f32
@compiled_when_repeated
def logsigmoid(input: Tensor) -> Tensor:
    """Compute the logarithm of the logistic sigmoid, without overflow."""
    tail = mathematics.log1p(mathematics.exp(ew.neg(ew.abs(input))))
    return ew.sub(ew.minimum(input, 0), tail)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Compute ``log(1 + exp(beta x)) / beta``; return x itself where ``beta x`` exceeds ``threshold``."""
    return composite.softplus(input, beta, threshold)


@in_f32
@compiled_when_repeated
def softsign(input: Tensor) -> Tensor:
    """Compute ``x / (1 + |x|)``."""
    return ew.div(input, ew.add(ew.abs(input), 1))


@compiled_when_repeated
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Clamp ``(x + 3) / 6`` to 0..1."""
    return put(input, lambda x: ew.mul(hardtanh(ew.add(x, 3), 0.0, 6.0), 1.0 / 6.0), inplace)


@compiled_when_repeated
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Multiply x by hardsigmoid(x)."""
    return put(input, lambda x: ew.mul(x, hardsigmoid(x)), inplace)


@compiled_when_repeated
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Multiply the first half along ``dim`` by the sigmoid of the second; raise ShapeError for an odd size."""
    _, extent = extent_of(dim, input.shape, "glu")
    if extent % 2:
        raise ShapeError(f"glu: dimension {dim} has an odd size {extent}")
    half = extent // 2
    return ew.mul(input.narrow(dim, 0, half), composite.sigmoid(input.narrow(dim, half, half)))


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Divide exp(x) by its sum along ``dim``. Without ``dim`` one is guessed, with a warning; see ``implicit_dim``.

    Example:
        >>> import graphc as gc
        >>> gc.nn.functional.softmax(gc.tensor([[0.0, 0.0]]), dim=-1)
        tensor([[0.5000, 0.5000]])
    """
    return composite.softmax(input, implicit_dim("softmax", input, dim, _stacklevel), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Compute the logarithm of softmax along ``dim``.

    Without ``dim`` one is guessed, with a warning; see ``implicit_dim``.
    """
    return composite.log_softmax(input, implicit_dim("log_softmax", input, dim, _stacklevel), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Compute the softmax of -x."""
    return composite.softmax(ew.neg(input), implicit_dim("softmin", input, dim, _stacklevel), dtype)


def implicit_dim(name: str, input: Tensor, dim: int | None, stacklevel: int) -> int:
    """Return ``dim``, or if it is None the default of 2017: 0 for 0, 1 or 3 dimensions, else 1."""
    if dim is not None:
        return dim
    guessed = 0 if len(input.shape) in (0, 1, 3) else 1
    warnings.warn(
        f"{name} without a dimension takes dimension {guessed} here, which is deprecated; pass dim={guessed}",
        stacklevel=stacklevel,
    )
    return guessed


@in_f32
@compiled_when_repeated
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide x by its p-norm along ``dim``, but at least by ``eps``."""
    return ew.div(input, ew.maximum(composite.norm(input, p, dim, keepdim=True), eps))


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
