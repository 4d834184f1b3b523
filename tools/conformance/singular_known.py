"""Differences from PyTorch at singular points that stay, with the reason: docs/reliability.md lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

_NOT_JUDGED = {
    "linear algebra, whose samples `operators` compares": (
        "cholesky cholesky_inverse cholesky_solve det geqrf inverse logdet lu lu_solve lu_unpack matrix_exp "
        "matrix_power orgqr ormqr pinverse qr slogdet svd triangular_solve"
    ),
    "functions of sorted sequences, or that may name any of equal elements": (
        "argsort bucketize kthvalue mode searchsorted topk"
    ),
    "conversions of numbers out of range, which are undefined in PyTorch": "byte char int long",
    "gradients that fail according to PyTorch's own table": "as_strided_scatter",
}
EXCLUDED = {name: reason for reason, names in _NOT_JUDGED.items() for name in names.split()}
"""Functions that are not judged, with the reason."""

Point = Sequence[np.ndarray]
_TINY, _HUGE = 1e-30, 1e30


def _any(test: Callable[[np.ndarray], np.ndarray]) -> Callable[[Point], bool]:
    return lambda point: any(bool(np.any(test(a))) for a in point if a.dtype.kind == "f")


_always: Callable[[Point], bool] = lambda _: True  # noqa: E731
_nan = _any(np.isnan)
_not_finite = _any(lambda a: ~np.isfinite(a))
_extreme = _any(lambda a: ~(np.abs(a) < _HUGE))
_tiny = _any(lambda a: (a != 0) & (np.abs(a) < _TINY))
_negative = _any(lambda a: a < 0)


def _extreme_or_tiny(point: Point) -> bool:
    return _extreme(point) or _tiny(point)


def _large(point: Point) -> bool:
    return _any(lambda a: ~(np.abs(a) < 88))(point)


def _of_equal_elements(point: Point) -> bool:
    """Check for a variance of 0, which a normalization divides the rounding of the mean by."""
    return bool(np.ptp(point[0]) < 1e-6 * np.abs(point[0]).max(initial=1.0)) if point[0].size else True


def _overflowing(point: Point) -> bool:
    """Check for f32 in a call of many elements whose sums and products may overflow on the way."""
    return point[0].ndim > 0 and any(bool(np.any(np.abs(a) >= _HUGE)) for a in point if a.dtype == np.float32)


def _denormal(point: Point) -> bool:
    limit = np.finfo(np.float32).tiny
    return any(bool(np.any((np.abs(a) < limit) & (a != 0))) for a in point if a.dtype == np.float32)


class Known(NamedTuple):
    """Points of some functions at which results differ from PyTorch's."""

    names: str
    """Functions without their modules, distributions with their methods, or all ``distributions``; a star for all."""
    applies: Callable[[Point], bool]
    reason: str


KNOWN = (
    Known("*", _overflowing, "sums and products of f32 that overflow on the way, in another order"),
    Known("distributions", _denormal, "distributions with denormal parameters of f32"),
    Known("binary_cross_entropy", _always, "gradient of `binary_cross_entropy` with respect to targets"),
    Known("hardshrink hardswish elu selu celu softshrink", _nan, "gradients of activations at NaN"),
    Known("soft_margin_loss", _large, "`soft_margin_loss` where the power of e overflows"),
    Known("ctc_loss", _always, "gradient of `ctc_loss` of numbers that are no log-probabilities"),
    Known("interpolate", _not_finite, "`interpolate` with infinities"),
    Known("scaled_dot_product_attention", _not_finite, "attention to infinities that a boolean mask hides"),
    Known(
        "layer_norm group_norm batch_norm instance_norm local_response_norm rms_norm std var std_mean var_mean",
        _extreme,
        "variances and normalizations of infinities",
    ),
    Known("layer_norm group_norm batch_norm instance_norm", _of_equal_elements, "normalizations of equal elements"),
    Known("trapz trapezoid cumulative_trapezoid", _extreme, "`trapezoid` next to infinity"),
    Known(
        "add sub addcdiv addcmul ldexp lerp hypot remainder fmod",
        _extreme_or_tiny,
        "products and quotients that overflow or underflow on the way, in another order",
    ),
    Known(
        "rnn_tanh_cell rnn_relu_cell lstm_cell gru_cell", _large, "sums of f32 that cancel before a function saturates"
    ),
    Known("fmod", _always, "gradient of `fmod` with respect to the divisor where the remainder is NaN"),
    Known("clamp clip", _not_finite, "`clamp` between two infinite limits"),
    Known("cumprod prod index_reduce scatter_reduce", _extreme_or_tiny, "gradients of products and extremes"),
    Known("digamma psi mvlgamma multigammaln", _always, "gradients of `digamma` and `mvlgamma` at poles"),
    Known("logit", _always, "gradient of `logit` at -0"),
    Known("logcumsumexp logsumexp", _extreme, "gradient of `logcumsumexp` of infinities"),
    Known("max min norm renorm amax amin aminmax", _nan, "gradients of the largest element and of norms at NaN"),
    Known(
        "erfcx i0 i1 i0e i1e modified_bessel_i0 modified_bessel_i1 log_ndtr", _large, "gradients of Bessel functions"
    ),
    Known(
        "igamma igammac gammainc gammaincc", _extreme_or_tiny, "incomplete gamma functions of NaN and denormal numbers"
    ),
    Known("zeta", lambda p: _nan(p) or _negative(p) or _extreme(p), "`zeta` of negative numbers"),
    Known("scatter_reduce", _always, "gradients of products and extremes"),
    Known(
        "geometric.entropy geometric.kl_divergence geometric_by_logits.entropy geometric_by_logits.kl_divergence",
        _always,
        "entropies of `Geometric` below the machine epsilon",
    ),
    Known(
        "binomial.kl_divergence binomial_by_logits.kl_divergence",
        _always,
        "divergences of `Binomial` at probabilities of 0 and 1",
    ),
    Known("sticks.log_prob", _always, "running sums of f32, which PyTorch adds up in f64"),
    Known("gumbel.kl_divergence", _always, "divergences of `Gumbel` that overflow"),
    Known(
        "pareto.cdf weibull.cdf weibull.log_prob",
        _always,
        "gradients of powers of exponential variables, below the rounding unit",
    ),
)


def reason_of(subject: str, point: Point) -> str:
    """Return the reason for a difference at a point, or nothing where none is known."""
    parts = {
        subject.partition(".")[0],
        subject.rpartition(".")[2],
        subject.removeprefix("distributions.").replace(" ", "_"),
        "*",
    }
    return next((k.reason for k in KNOWN if parts & set(k.names.split()) and k.applies(point)), "")
