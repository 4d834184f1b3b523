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


class Transform:
    """A function ``y = t(x)`` with ``x = t.inv(y)``; ``log_abs_det_jacobian(x, y)`` is the logarithm of how much it
    stretches volumes, one number for each event of its ``domain``.

    ``cache_size`` of 1 keeps the last pair, so that the inverse of a value just computed is what it was computed from.
    """

    bijective = True
    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    _given: ClassVar[tuple[str, ...]] = ()
    """The attributes that say which function of the class it is."""

    def __init__(self, cache_size: int = 0):
        self._keeps = cache_size > 0
        self._last: tuple[Any, Any] | None = None

    @property
    def sign(self) -> Any:
        """1 for a function that grows, -1 for one that falls."""
        raise UnsupportedError(f"{type(self).__name__} is not known to grow or fall")

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return _Inverse(self)

    def __call__(self, x: Tensor) -> Tensor:
        if self._last is not None and self._last[0] is x:
            return self._last[1]
        y = self._call(x)
        if self._keeps:
            self._last = (x, y)
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._last is not None and self._last[1] is y:
            return self._last[0]
        x = self._inverse(y)
        if self._keeps:
            self._last = (x, y)
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the absolute value of the Jacobian determinant at x, where ``y = t(x)``."""
        raise UnsupportedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of y for that of x."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of x for that of y."""
        return tuple(shape)

    def __eq__(self, other: object) -> bool:
        """Whether the other is known to be the same function: in traced code tensors are equal to themselves alone."""
        if self is other:
            return True
        pairs = [(getattr(self, name), getattr(other, name, None)) for name in self._given]
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
    """A transform backwards."""

    _given = ("_forward",)

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


class _Growing(Transform):
    """A function of each element that grows."""

    @property
    def sign(self) -> Any:
        return 1


class ExpTransform(_Growing):
    """``exp(x)``."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """``x ** exponent`` of positive numbers."""

    domain = constraints.positive
    codomain = constraints.positive
    _given = ("exponent",)

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


class SigmoidTransform(_Growing):
    """``1 / (1 + exp(-x))``; its inverse keeps away from 0 and 1."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return x.sigmoid()

    def _inverse(self, y: Tensor) -> Tensor:
        kind = finfo(y.dtype)
        return y.clamp(kind.tiny, 1 - kind.eps).logit()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -composite.softplus(-x) - composite.softplus(x)


class TanhTransform(_Growing):
    """``tanh(x)``. Near -1 and 1 the inverse is inexact: ``cache_size=1`` keeps what a sample was made of."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (math.log(2.0) - x - composite.softplus(x * -2.0)) * 2.0


class SoftplusTransform(_Growing):
    """``log(1 + exp(x))``."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return composite.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -composite.softplus(-x)


class AbsTransform(Transform):
    """``|x|``, of which the inverse is x itself."""

    bijective = False
    codomain = constraints.nonnegative

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """``loc + scale * x``; ``event_dim`` dimensions on the right are one event."""

    _given = ("loc", "scale", "event_dim")

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
        found = self.scale.abs().log() if isinstance(self.scale, Tensor) else math.log(abs(self.scale))
        return summed(zeros_like(x) + found, self.event_dim)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return common_shape(tuple(shape), getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape

    def __repr__(self) -> str:
        return f"AffineTransform(loc={self.loc}, scale={self.scale})"


class SoftmaxTransform(Transform):
    """Probabilities in proportion to ``exp(x)``; not bijective, the inverse is the logarithm."""

    bijective = False
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return composite.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """From n numbers to n + 1 probabilities: each number says which share of what is left of a stick is broken off."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _centred(self, x: Tensor) -> Tensor:
        """``x`` so shifted that zeros give equal probabilities."""
        count = x.shape[-1]
        return x - arange(count, 0, -1, dtype=x.dtype).log()

    def _call(self, x: Tensor) -> Tensor:
        share = self._centred(x).sigmoid()
        left = (1 - share).cumprod(-1)
        one = ones_like(left.narrow(-1, 0, 1))
        return shaping.concatenate([share, one], -1) * shaping.concatenate([one, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        count = y.shape[-1] - 1
        parts = y.narrow(-1, 0, count)
        left = (1 - parts.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return parts.log() - left.log() + arange(count, 0, -1, dtype=y.dtype).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (y.narrow(-1, 0, x.shape[-1]).log() - composite.softplus(self._centred(x))).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        if not shape:
            raise ShapeError("StickBreakingTransform takes vectors")
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        if not shape:
            raise ShapeError("StickBreakingTransform gives vectors")
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """The lower triangle of a matrix, with the exponential of its diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class IndependentTransform(Transform):
    """A transform whose last batch dimensions belong to the event, too."""

    _given = ("base_transform", "reinterpreted_batch_ndims")

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
    """Transforms one after the other."""

    _given = ("parts",)

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = list(parts)
        self.bijective = all(part.bijective for part in parts)
        self.domain, self.codomain = self._ends()

    def _ends(self) -> tuple[Constraint, Constraint]:
        """What the parts take and give, with as many event dimensions as any of them needs."""
        if not self.parts:
            return constraints.real, constraints.real
        first, last = self.parts[0].domain, self.parts[-1].codomain
        need = first.event_dim
        count = first.event_dim
        for part in self.parts:
            extra = max(part.domain.event_dim - count, 0)
            need, count = need + extra, count + extra
            count += part.codomain.event_dim - part.domain.event_dim
        return _with_events(first, need), _with_events(last, count)

    @property
    def sign(self) -> Any:
        return reduce(operator.mul, [part.sign for part in self.parts], 1)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        count, terms = self.domain.event_dim, []
        for i, part in enumerate(self.parts):
            after = y if i == len(self.parts) - 1 else part(x)
            terms.append(summed(part.log_abs_det_jacobian(x, after), count - part.domain.event_dim))
            count += part.codomain.event_dim - part.domain.event_dim
            x = after
        return reduce(operator.add, terms) if terms else summed(zeros_like(x), count)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return reduce(lambda found, part: part.forward_shape(found), self.parts, tuple(shape))

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return reduce(lambda found, part: part.inverse_shape(found), reversed(self.parts), tuple(shape))

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


def _with_events(constraint: Constraint, event_dim: int) -> Constraint:
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


identity_transform = ComposeTransform([])


def extreme(found: Tensor, sign: Any) -> Any:
    """A probability of values below, where the transform falls instead of growing."""
    if isinstance(sign, int):
        return found if sign > 0 else 1 - found
    return ew.where(ew.lt(sign, 0), 1 - found, found)


__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
