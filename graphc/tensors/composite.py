"""Functions composed of ops that tensors offer as methods: softmax, variance, norms, smooth activations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any

from graphc.base.dtypes import DType, float32, int64, limits
from graphc.base.errors import ArgumentError, DTypeError
from graphc.base.sizes.dims import Dims, dim_of, dims_of
from graphc.base.sizes.size import is_size
from graphc.ops.define import common_type
from graphc.ops.effects.state import stop_gradient
from graphc.ops.movement.shape import reshape
from graphc.ops.pointwise import complex as parts
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.reduction import reduce
from graphc.tensors.mixed import in_f32
from graphc.tensors.repeated import compiled_when_repeated


def to_float(x: Any) -> Any:
    """Return ``x``, as f32 if it is not floating point."""
    return x if x.dtype.is_differentiable else ew.cast(x, dtype=float32)


@compiled_when_repeated
def total(x: Any, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
    """Compute the sum; integers and booleans are summed as i64 without ``dtype``."""
    return folded(reduce.sum, x, dim, keepdim, dtype)


def folded(reduction: Any, x: Any, dim: Dims, keepdim: bool, dtype: DType | None) -> Any:
    """Reduce elements to their sum or product, converted to ``dtype`` first (None: i64 for integers and booleans, else
    unchanged); integers wrap around."""
    dtype = dtype or (x.dtype if x.dtype.is_differentiable else int64)
    operand = x if x.dtype is dtype else ew.cast(x, dtype=dtype)
    result = reduction(operand, axes=dims_of(dim, len(x.shape)), keepdims=keepdim)
    return result if result.dtype is dtype else ew.cast(result, dtype=dtype)


@in_f32
@compiled_when_repeated
def mean(x: Any, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
    """Compute the mean; raise DTypeError for a type that is not floating point."""
    if dtype is not None:
        x = ew.cast(x, dtype=dtype)
    if not x.dtype.is_differentiable:
        raise DTypeError(f"mean needs a floating-point tensor, got {x.dtype.name}", remedy="call tensor.float().mean()")
    axes = dims_of(dim, len(x.shape))
    return ew.mul(reduce.sum(x, axes=axes, keepdims=keepdim), _inverse(prod(x.shape[a] for a in axes)))


def _inverse(count: int) -> float:
    # NOTE: a size that may be 0 is divided in the tensors' arithmetic, where 1 / 0 is infinite, and 0 times that is
    # NaN.
    return 1.0 / count if is_size(count) or count else math.nan


@in_f32
@compiled_when_repeated
def var(x: Any, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> Any:
    """Compute the variance; ``correction`` is subtracted from the count (1: unbiased)."""
    if not x.dtype.is_differentiable:
        raise DTypeError(f"var needs a floating-point tensor, got {x.dtype.name}", remedy="call tensor.float().var()")
    axes = dims_of(dim, len(x.shape))
    count = prod(x.shape[a] for a in axes)
    centred = ew.sub(x, mean(x, axes, keepdim=True) if axes else x)
    squares = reduce.sum(squared(centred), axes=axes, keepdims=keepdim)
    free = max(count - (int(correction) if float(correction).is_integer() else correction), 0)
    # NOTE: a size that may be 0 is divided in the tensors' arithmetic, where 1 / 0 is infinite.
    return ew.mul(squares, 1.0 / free) if is_size(free) or free else ew.div(squares, 0.0)


def squared(x: Any) -> Any:
    """Compute x * x, or the squared absolute value of a complex number."""
    if not x.dtype.is_complex:
        return ew.mul(x, x)
    return ew.add(*(ew.mul(p, p) for p in (parts.real(x), parts.imag(x))))


@compiled_when_repeated
def std(x: Any, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> Any:
    """Compute the square root of the variance."""
    return root(var(x, dim, correction, keepdim))


@compiled_when_repeated
def relu(x: Any) -> Any:
    """Compute the larger of x and 0; the gradient at 0 is 0."""
    return ew.where(ew.le(x, 0), 0, x)


@in_f32
@compiled_when_repeated
def sigmoid(x: Any) -> Any:
    """Compute 1 / (1 + exp(-x))."""
    return mathematics.sigmoid(to_float(x))


@in_f32
@compiled_when_repeated
def silu(x: Any) -> Any:
    """Compute x * sigmoid(x)."""
    return ew.mul(x, sigmoid(x))


@in_f32
@compiled_when_repeated
def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Compute log(1 + exp(beta x)) / beta, or x itself if beta x exceeds the threshold."""
    if not beta:
        return ew.add(ew.mul(to_float(x), 0.5), math.inf)  # log(2) / 0, with the gradient for every other beta at 0
    scaled = ew.mul(to_float(x), beta)
    smooth = ew.add(ew.maximum(scaled, 0), mathematics.log1p(mathematics.exp(ew.neg(ew.abs(scaled)))))
    return ew.where(ew.gt(scaled, threshold), x, ew.mul(smooth, 1.0 / beta))


@in_f32
@compiled_when_repeated
def gelu(x: Any, approximate: str = "none") -> Any:
    """Compute x times the normal distribution's cumulative function at x; ``tanh`` selects the tanh approximation."""
    if approximate == "none":
        return ew.mul(ew.mul(x, 0.5), ew.add(mathematics.erf(ew.mul(x, math.sqrt(0.5))), 1.0))
    if approximate != "tanh":
        raise ArgumentError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    cube = ew.mul(ew.mul(x, x), x)
    inner = ew.mul(ew.add(x, ew.mul(cube, 0.044715)), math.sqrt(2 / math.pi))
    return ew.mul(ew.mul(x, 0.5), ew.add(mathematics.tanh(inner), 1.0))


def _shifted(x: Any, axes: tuple[int, ...]) -> Any:
    """Subtract the maximum along ``axes`` from ``x``; no gradient needs to flow through the maximum."""
    return ew.sub(x, stop_gradient(reduce.max(x, axes=axes, keepdims=True)))


def _is_empty(extents: Sequence[int], axis: int) -> bool:
    """Return whether the tensor, as far as known, or the dimension ``at`` has no elements."""
    return 0 in [d for d in extents if not is_size(d)] or (bool(extents) and extents[axis] == 0)


@in_f32
@compiled_when_repeated
def softmax(x: Any, dim: int, dtype: DType | None = None) -> Any:
    """Compute exp(x) divided by its sum along ``dim``."""
    x = ew.cast(x, dtype=dtype) if dtype is not None else _checked(x, "softmax")
    axis = dim_of(dim, len(x.shape))
    axes = (axis,) if x.shape else ()
    if _is_empty(x.shape, axis):
        return ew.mul(x, 1.0)
    powers = mathematics.exp(_shifted(x, axes))
    return ew.div(powers, reduce.sum(powers, axes=axes, keepdims=True))


@in_f32
@compiled_when_repeated
def masked_softmax(x: Any, dim: int) -> Any:
    """Compute the softmax of ``x``, which is minus infinity at masked elements; zeros if all along ``dim`` are
    masked."""
    axis = dim_of(dim, len(x.shape))
    if _is_empty(x.shape, axis):
        return ew.mul(x, 1.0)
    axes = (axis,)
    top = stop_gradient(reduce.max(x, axes=axes, keepdims=True))
    unmasked = ew.ne(top, -math.inf)
    powers = mathematics.exp(ew.sub(x, ew.where(unmasked, top, 0)))
    return ew.div(powers, ew.where(unmasked, reduce.sum(powers, axes=axes, keepdims=True), 1))


@in_f32
@compiled_when_repeated
def log_softmax(x: Any, dim: int, dtype: DType | None = None) -> Any:
    """Compute the logarithm of the softmax along ``dim``, without forming the softmax."""
    x = ew.cast(x, dtype=dtype) if dtype is not None else _checked(x, "log_softmax")
    axis = dim_of(dim, len(x.shape))
    axes = (axis,) if x.shape else ()
    if _is_empty(x.shape, axis):
        return ew.mul(x, 1.0)
    shifted = _shifted(x, axes)
    return ew.sub(shifted, mathematics.log(reduce.sum(mathematics.exp(shifted), axes=axes, keepdims=True)))


def _checked(x: Any, name: str) -> Any:
    if not x.dtype.is_floating_point:
        raise DTypeError(f"{name} needs a floating-point tensor, got {x.dtype.name}", remedy="pass dtype=")
    return x


@in_f32
@compiled_when_repeated
def logsumexp(x: Any, dim: Dims, keepdim: bool = False) -> Any:
    """Compute log(sum(exp(x))) along ``dim``; minus infinity if all elements are."""
    x = to_float(x)
    axes = dims_of(dim, len(x.shape))
    if 0 in x.shape:
        return mathematics.log(reduce.sum(x, axes=axes, keepdims=keepdim))
    top = stop_gradient(reduce.max(x, axes=axes, keepdims=True))
    top = ew.where(mathematics.isfinite(top), top, 0)
    powers = mathematics.exp(ew.sub(x, top))
    result = ew.add(mathematics.log(reduce.sum(powers, axes=axes, keepdims=True)), top)
    return result if keepdim else reshape(result, shape=tuple(s for i, s in enumerate(x.shape) if i not in axes))


@compiled_when_repeated
def clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    """Limit ``x`` to low..high (numbers or tensors; either may be None)."""
    if low is None and high is None:
        raise ArgumentError("clamp needs min, max or both")
    dtype = common_type([x, *(bound for bound in (low, high) if bound is not None)], "clamp")
    if dtype.kind == "b" and (low is None or high is None):
        return ew.minimum(x, high) if low is None else ew.maximum(x, low)
    least, most = limits(dtype)
    return mathematics.clamp(x, least if low is None else low, most if high is None else high)


@compiled_when_repeated
def power(x: Any, exponent: Any) -> Any:
    """Raise ``x`` to the power ``exponent``, a number or a tensor.

    As in PyTorch, the exponents 0.5 and -0.5 are roots, which differ from powers at -inf (NaN) and -0.
    """
    if isinstance(exponent, float) and abs(exponent) == 0.5 and not isinstance(x, (bool, int, float)):
        return mathematics.sqrt(to_float(x)) if exponent > 0 else mathematics.rsqrt(to_float(x))
    return mathematics.pow(x, exponent)


@in_f32
@compiled_when_repeated
def norm(x: Any, p: float = 2.0, dim: Dims = None, keepdim: bool = False) -> Any:
    """Compute the p-norm of the elements along ``dim`` (all of them for None); p may be infinite."""
    x = to_float(x)
    axes = dims_of(dim, len(x.shape))
    if p == math.inf:
        return reduce.max(ew.abs(x), axes=axes, keepdims=keepdim)
    if p == -math.inf:
        return reduce.min(ew.abs(x), axes=axes, keepdims=keepdim)
    if p == 0:
        return reduce.sum(_counted(x), axes=axes, keepdims=keepdim)
    if p == 1:
        return reduce.sum(ew.abs(x), axes=axes, keepdims=keepdim)
    if p == 2:
        squares = reduce.sum(squared(x), axes=axes, keepdims=keepdim)
        return root(squares)
    powers = reduce.sum(_power(ew.abs(x), p), axes=axes, keepdims=keepdim)
    return _power(powers, 1.0 / p)


def _counted(x: Any) -> Any:
    """Return 1 for elements that are not zero, else 0, with a gradient of zeros."""
    return ew.where(mathematics.isnan(x), 1, ew.abs(ew.sign(x)))


def _power(x: Any, exponent: float) -> Any:
    """Compute ``x**exponent`` for x >= 0, with gradient 0 at 0, where the gradient of a root is infinite."""
    if exponent > 1:
        return mathematics.pow(x, exponent)
    zero = ew.eq(x, 0)
    return ew.where(zero, 0 if exponent > 0 else math.inf, mathematics.pow(ew.where(zero, 1, x), exponent))


def root(squares: Any) -> Any:
    """Compute the square root, with gradient 0 at 0 (the subgradient of least norm)."""
    zero = ew.eq(squares, 0)
    return ew.where(zero, 0, mathematics.sqrt(ew.where(zero, 1, squares)))
