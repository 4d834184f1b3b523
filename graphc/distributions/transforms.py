"""Transforms: functions of samples with an inverse and the logarithm of their Jacobian determinant."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from graphc.base.errors import ShapeError, UnsupportedError
from graphc.base.sizes.dims import common_shape
from graphc.distributions import constraints
from graphc.distributions.constraints import Constraint
from graphc.distributions.distribution import summed
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import composite
from graphc.tensors.creation import arange, ones_like, zeros_like
from graphc.tensors.limits import finfo
from graphc.tensors.methods import shaping
from graphc.tensors.tensor import Tensor

__all__ = ["AbsTransform", "AffineTransform", "ComposeTransform", "ExpTransform", "IndependentTransform"]
__all__ += ["LowerCholeskyTransform", "PowerTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform"]
__all__ += ["StickBreakingTransform", "TanhTransform", "Transform", "biject_to", "identity_transform", "transform_to"]


class Transform:
    """A function ``y = t(x)`` with the inverse ``x = t.inv(y)``.

    ``log_abs_det_jacobian(x, y)`` is the logarithm of its volume change, one number per event of ``domain``.
    ``cache_size=1`` keeps the last pair, so that inverting the last result returns its argument exactly.
    """

    bijective = True
    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    _compared_attributes: ClassVar[tuple[str, ...]] = ()
    """Attributes that ``==`` compares: the parameters of the function."""

    def __init__(self, cache_size: int = 0):
        self._caches = cache_size > 0
        self._last: tuple[Any, Any] | None = None

    @property
    def sign(self) -> Any:
        """1 for an increasing function, -1 for a decreasing one."""
        raise UnsupportedError(f"{type(self).__name__} is not known to be monotonic")

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        return _Inverse(self)

    def __call__(self, x: Tensor) -> Tensor:
        if self._last is not None and self._last[0] is x:
            return self._last[1]
        y = self._call(x)
        if self._caches:
            self._last = (x, y)
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._last is not None and self._last[1] is y:
            return self._last[0]
        x = self._inverse(y)
        if self._caches:
            self._last = (x, y)
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute the logarithm of the absolute Jacobian determinant at x, where ``y = t(x)``."""
        raise UnsupportedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of y for the shape of x."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of x for the shape of y."""
        return tuple(shape)

    def __eq__(self, other: object) -> bool:
        """Check whether both are known to be the same function; a traced tensor equals only itself."""
        if self is other:
            return True
        pairs = [(getattr(self, name), getattr(other, name, None)) for name in self._compared_attributes]
        return type(self) is type(other) and all(_equal(a, b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _equal(a: Any, b: Any) -> bool:
    values = [v._data if isinstance(v, Tensor) else v for v in (a, b)]
    if not any(isinstance(v, np.ndarray) for v in values):
        return a is b if any(isinstance(v, Tensor) for v in (a, b)) else bool(a == b)
    return all(isinstance(v, (np.ndarray, int, float)) for v in values) and np.array_equal(*values)


class _Inverse(Transform):
    """The inverse of a transform."""

    _compared_attributes = ("_forward",)

    def __init__(self, transform: Transform):
        super().__init__()
        self._forward = transform
        self.bijective = transform.bijective
        self.domain, self.codomain = transform.codomain, transform.domain

    @property
    def sign(self) -> Any:
        return self._forward.sign

    @property
    def inv(self) -> Transform:
        return self._forward

    def __call__(self, x: Tensor) -> Tensor:
        return self._forward._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._forward(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._forward.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._forward.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._forward.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{self._forward!r}.inv"


class _Increasing(Transform):
    """Base of increasing functions of each element."""

    @property
    def sign(self) -> Any:
        return 1


class ExpTransform(_Increasing):
    """``exp(x)``."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """``x ** exponent`` for positive x."""

    domain = constraints.positive
    codomain = constraints.positive
    _compared_attributes = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        return _sign(self.exponent)

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (y * self.exponent / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return common_shape(tuple(shape), getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


def _sign(value: Any) -> Any:
    return value.sign() if isinstance(value, Tensor) else (value > 0) - (value < 0)


class SigmoidTransform(_Increasing):
    """``1 / (1 + exp(-x))``; the inverse clamps its argument away from 0 and 1."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return x.sigmoid()

    def _inverse(self, y: Tensor) -> Tensor:
        limits = finfo(y.dtype)
        return y.clamp(limits.tiny, 1 - limits.eps).logit()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -composite.softplus(-x) - composite.softplus(x)


class TanhTransform(_Increasing):
    """``tanh(x)``. The inverse is inexact near -1 and 1; ``cache_size=1`` keeps the argument of the last sample."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (math.log(2.0) - x - composite.softplus(x * -2.0)) * 2.0


class SoftplusTransform(_Increasing):
    """``log(1 + exp(x))``."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return composite.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -composite.softplus(-x)


class AbsTransform(Transform):
    """``|x|``; the inverse returns its argument unchanged."""

    bijective = False
    codomain = constraints.nonnegative

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """``loc + scale * x``; the last ``event_dim`` dimensions form one event."""

    _compared_attributes = ("loc", "scale", "event_dim")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim
        if event_dim:
            self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    @property
    def sign(self) -> Any:
        return _sign(self.scale)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        log_scale = self.scale.abs().log() if isinstance(self.scale, Tensor) else math.log(abs(self.scale))
        return summed(zeros_like(x) + log_scale, self.event_dim)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return common_shape(tuple(shape), getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape

    def __repr__(self) -> str:
        return f"AffineTransform(loc={self.loc}, scale={self.scale})"


class SoftmaxTransform(Transform):
    """Probabilities proportional to ``exp(x)``; not bijective, the inverse is the logarithm."""

    bijective = False
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return composite.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """Map from n numbers to n + 1 probabilities: each number fixes the fraction of the remaining stick to break off."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _centred(self, x: Tensor) -> Tensor:
        """Shift ``x`` so that zeros give equal probabilities."""
        count = x.shape[-1]
        return x - arange(count, 0, -1, dtype=x.dtype).log()

    def _call(self, x: Tensor) -> Tensor:
        fractions = self._centred(x).sigmoid()
        remaining = (1 - fractions).cumprod(-1)
        one = ones_like(remaining.narrow(-1, 0, 1))
        return shaping.concatenate([fractions, one], -1) * shaping.concatenate([one, remaining], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        count = y.shape[-1] - 1
        pieces = y.narrow(-1, 0, count)
        remaining = (1 - pieces.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return pieces.log() - remaining.log() + arange(count, 0, -1, dtype=y.dtype).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (y.narrow(-1, 0, x.shape[-1]).log() - composite.softplus(self._centred(x))).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        if not shape:
            raise ShapeError("StickBreakingTransform takes vectors")
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        if not shape:
            raise ShapeError("StickBreakingTransform returns vectors")
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """Lower triangle of a matrix, with its diagonal exponentiated."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class IndependentTransform(Transform):
    """A transform whose last ``reinterpreted_batch_ndims`` batch dimensions belong to the event, too."""

    _compared_attributes = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.bijective = base_transform.bijective
        self.domain = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain = constraints.independent(base_transform.codomain, reinterpreted_batch_ndims)

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return summed(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.inverse_shape(shape)


class ComposeTransform(Transform):
    """Transforms applied one after another."""

    _compared_attributes = ("parts",)

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = list(parts)
        self.bijective = all(transform.bijective for transform in parts)
        self.domain, self.codomain = self._ends()

    def _ends(self) -> tuple[Constraint, Constraint]:
        """Return domain and codomain, with as many event dimensions as any of the transforms needs."""
        if not self.parts:
            return constraints.real, constraints.real
        first, last = self.parts[0].domain, self.parts[-1].codomain
        input_dims = first.event_dim
        output_dims = first.event_dim
        for transform in self.parts:
            extra = max(transform.domain.event_dim - output_dims, 0)
            input_dims, output_dims = input_dims + extra, output_dims + extra
            output_dims += transform.codomain.event_dim - transform.domain.event_dim
        return _with_events(first, input_dims), _with_events(last, output_dims)

    @property
    def sign(self) -> Any:
        return reduce(operator.mul, [transform.sign for transform in self.parts], 1)

    def _call(self, x: Tensor) -> Tensor:
        for transform in self.parts:
            x = transform(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for transform in reversed(self.parts):
            y = transform.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        event_dim, terms = self.domain.event_dim, []
        for i, transform in enumerate(self.parts):
            after = y if i == len(self.parts) - 1 else transform(x)
            terms.append(summed(transform.log_abs_det_jacobian(x, after), event_dim - transform.domain.event_dim))
            event_dim += transform.codomain.event_dim - transform.domain.event_dim
            x = after
        return reduce(operator.add, terms) if terms else summed(zeros_like(x), event_dim)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return reduce(lambda current, transform: transform.forward_shape(current), self.parts, tuple(shape))

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return reduce(lambda current, transform: transform.inverse_shape(current), reversed(self.parts), tuple(shape))

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


def _with_events(constraint: Constraint, event_dim: int) -> Constraint:
    extra = event_dim - constraint.event_dim
    return constraints.independent(constraint, extra) if extra > 0 else constraint


identity_transform = ComposeTransform([])


def extreme(probability: Tensor, sign: Any) -> Any:
    """Return a lower-tail probability after a monotonic transform: its complement where ``sign`` is negative."""
    if isinstance(sign, int):
        return probability if sign > 0 else 1 - probability
    return ew.where(ew.lt(sign, 0), 1 - probability, probability)


def biject_to(constraint: Constraint) -> Transform:
    """Return a bijective transform from real numbers to the values of a constraint, with a Jacobian determinant.

    For samplers and approximations over unconstrained values. Raises UnsupportedError when no such transform exists.
    """
    transform = _transform(constraint, StickBreakingTransform())
    if transform is None:
        raise UnsupportedError(f"biject_to: no transform gives values that are {constraint!r}")
    return transform


def transform_to(constraint: Constraint) -> Transform:
    """Return a transform from real numbers to the values of a constraint; it need not be bijective.

    For optimizers. Raises UnsupportedError when no such transform exists.
    """
    transform = _transform(constraint, SoftmaxTransform())
    if transform is None:
        raise UnsupportedError(f"transform_to: no transform gives values that are {constraint!r}")
    return transform


def _transform(constraint: Any, to_simplex: Transform) -> Transform | None:
    if constraint.is_discrete:
        return None
    if isinstance(constraint, constraints.independent):
        inner = _transform(constraint.base_constraint, to_simplex)
        return inner and IndependentTransform(inner, constraint.reinterpreted_batch_ndims)
    fixed = {
        constraints.real: identity_transform,
        constraints.simplex: to_simplex,
        constraints.lower_cholesky: LowerCholeskyTransform(),
    }
    return fixed.get(constraint) or _within(
        getattr(constraint, "lower_bound", None), getattr(constraint, "upper_bound", None)
    )


def _within(low: Any, high: Any) -> Transform | None:
    """Return a transform from real numbers to the numbers between two bounds, one of which may be None."""
    if low is None and high is None:
        return None
    if low is None:
        return ComposeTransform([ExpTransform(), AffineTransform(high, -1.0)])
    if high is None:
        positive = isinstance(low, (int, float)) and low == 0
        return ExpTransform() if positive else ComposeTransform([ExpTransform(), AffineTransform(low, 1.0)])
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])
