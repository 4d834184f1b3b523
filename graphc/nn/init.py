"""Initial values of parameters: constants, scaled random values, orthogonal and sparse matrices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

_GAINS: dict[str, float] = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}
MODES = ("fan_in", "fan_out")


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Return the gain by which weights make up for a nonlinearity that shrinks the standard deviation.

    ``param`` is the slope of ``leaky_relu`` (0.01 when None). Raises AttributeValueError for an unknown name.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise AttributeValueError(f"calculate_gain: the slope of leaky_relu must be a number, got {slope!r}")
        return math.sqrt(2.0 / (1.0 + slope**2))
    if nonlinearity not in _GAINS:
        supported = sorted([*_GAINS, "leaky_relu"])
        raise AttributeValueError(
            f"calculate_gain: nonlinearity {nonlinearity!r} is not supported", remedy=f"pass one of {supported}"
        )
    return _GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with values drawn uniformly from a..b."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normally distributed values."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill with normally distributed values truncated to a..b."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            f"trunc_normal_: the mean {mean} is more than 2 standard deviations outside of {a}..{b}; "
            "the distribution may be wrong",
            stacklevel=2,
        )
    low, high = _normal_cdf((a - mean) / std), _normal_cdf((b - mean) / std)
    with no_grad():
        tensor.uniform_(low, high, generator=generator)
        probabilities = front().values(tensor, "trunc_normal_").astype(np.float64)
        values = np.clip(mean + std * _normal_quantile(probabilities), a, b)
        return tensor.copy_(front().constant(values))


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _normal_quantile(p: np.ndarray) -> np.ndarray:
    """Invert the normal distribution function, by Newton's method on the distribution itself.

    From 0 the iteration moves monotonically outward on each side, where the function is concave or convex.
    """
    erf = np.vectorize(math.erf, otypes=[np.float64])
    p = np.clip(p, 1e-300, 1 - 1e-16)
    x = np.zeros_like(p)
    for _ in range(60):
        below = (1.0 + erf(x / math.sqrt(2.0))) / 2.0
        step = np.clip((p - below) / np.maximum(np.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi), 1e-300), -1.0, 1.0)
        x = x + step
        if np.max(np.abs(step), initial=0.0) < 1e-12:
            break
    return x


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0."""
    return constant_(tensor, 0.0)


def _fill(tensor: Tensor, values: np.ndarray) -> Tensor:
    with no_grad():
        return tensor.copy_(front().constant(np.ascontiguousarray(values, tensor.dtype.numpy)))


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity (ones on the diagonal where it is not square)."""
    if len(tensor.shape) != 2:
        raise AttributeValueError(f"eye_: expected a matrix, got shape {list(tensor.shape)}")
    return _fill(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight [out, in, *kernel] so that each of ``groups`` passes its channels on unchanged."""
    if not 3 <= len(tensor.shape) <= 5:
        raise AttributeValueError(f"dirac_: expected 3 to 5 dimensions, got shape {list(tensor.shape)}")
    out, in_per_group, *kernel = tensor.shape
    if groups < 1 or out % groups:
        raise AttributeValueError(f"dirac_: {groups} groups do not divide {out} output channels")
    values = np.zeros(tuple(tensor.shape))
    centre = tuple(k // 2 for k in kernel)
    for group in range(groups):
        for channel in range(min(out // groups, in_per_group)):
            values[(group * (out // groups) + channel, channel, *centre)] = 1.0
    return _fill(tensor, values)


def fans(tensor: Tensor) -> tuple[int, int]:
    """Return fan-in and fan-out: the inputs and outputs of one unit of a weight [out, in, *kernel].

    Raises AttributeValueError for fewer than 2 dimensions.
    """
    if len(tensor.shape) < 2:
        raise AttributeValueError(f"fan-in and fan-out need 2 or more dimensions, got shape {list(tensor.shape)}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = fans


def _fan(tensor: Tensor, mode: str) -> int:
    if mode.lower() not in MODES:
        raise AttributeValueError(f"mode {mode!r} is not supported", remedy=f"pass one of {list(MODES)}")
    return fans(tensor)[MODES.index(mode.lower())]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill uniformly with variance ``2 gain^2 / (fan_in + fan_out)`` (Glorot and Bengio 2010, section 4.2)."""
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill normally with variance ``2 gain^2 / (fan_in + fan_out)`` (Glorot and Bengio 2010, section 4.2)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def _empty(tensor: Tensor) -> bool:
    if 0 not in tensor.shape:
        return False
    warnings.warn("initializing a tensor without elements does nothing", stacklevel=3)
    return True


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill uniformly with variance ``gain^2 / fan`` (He et al. 2015, section 2.2).

    ``a`` is the slope of leaky_relu, ``mode`` says which fan: ``fan_in`` or ``fan_out``.

    Example:
        >>> import graphc as gc
        >>> weight = gc.nn.init.kaiming_uniform_(gc.zeros(2, 6), nonlinearity="relu")
        >>> weight.shape, bool(weight.abs().max() <= 1.0)
        ((2, 6), True)
    """
    if _empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill normally with variance ``gain^2 / fan`` (He et al. 2015, section 2.2).

    ``a`` is the slope of leaky_relu, ``mode`` says which fan: ``fan_in`` or ``fan_out``.
    """
    if _empty(tensor):
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with ``gain`` times a matrix of orthonormal rows or columns (Saxe et al. 2013).

    All dimensions after the first are flattened to columns.
    """
    if len(tensor.shape) < 2:
        raise AttributeValueError(f"orthogonal_: expected 2 or more dimensions, got shape {list(tensor.shape)}")
    if 0 in tensor.shape:
        return tensor
    normal_(tensor, 0.0, 1.0, generator)
    rows = tensor.shape[0]
    samples = front().values(tensor, "orthogonal_").astype(np.float64).reshape(rows, -1)
    wide = rows < samples.shape[1]
    q, r = np.linalg.qr(samples.T if wide else samples)
    q = q * np.sign(np.diag(r))
    return _fill(tensor, gain * (q.T if wide else q).reshape(tuple(tensor.shape)))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix with normal values, and set the fraction ``sparsity`` of each column to zero (Martens 2010)."""
    if len(tensor.shape) != 2:
        raise AttributeValueError(f"sparse_: expected a matrix, got shape {list(tensor.shape)}")
    rows, columns = tensor.shape
    uniform_(tensor, 0.0, 1.0, generator)
    order = np.argsort(front().values(tensor, "sparse_"), axis=0)
    normal_(tensor, 0.0, std, generator)
    values = front().values(tensor, "sparse_").copy()
    values[order[: math.ceil(sparsity * rows)], np.arange(columns)] = 0.0
    return _fill(tensor, values)


def bias_bound(weight: Tensor) -> float:
    """Return ``1 / sqrt(fan_in)``; layers draw their biases uniformly from minus to plus this bound."""
    fan_in, _ = fans(weight)
    return 1.0 / math.sqrt(fan_in) if fan_in > 0 else 0.0


def _deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap ``function`` under its name of 2017, without the underscore."""
    old = function.__name__[:-1]

    def renamed(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"nn.init.{old} is deprecated; call nn.init.{function.__name__}", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    renamed.__name__ = old
    renamed.__doc__ = f"Call ``{function.__name__}``; this is its old name."
    renamed.__wrapped__ = function  # type: ignore[attr-defined]  # its signature is shown
    return renamed


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
