"""Distributions of real numbers with a location and a scale: normal, Laplace, Cauchy, Gumbel, uniform, half normal."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from graphc.distributions import constraints
from graphc.distributions.constraints import Constraint
from graphc.distributions.distribution import (
    EULER,
    LOG_2_PI,
    Distribution,
    ExponentialFamily,
    broadcast_all,
)
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.creation import full_like, zeros_like
from graphc.tensors.random import sampling
from graphc.tensors.tensor import Tensor

__all__ = ["Cauchy", "Exponential", "Gumbel", "HalfCauchy", "HalfNormal", "Laplace", "Normal", "Uniform"]


class _LocationScale(Distribution):
    """Base of ``loc + scale * z`` with a standard variable z, which subclasses draw."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        raise self._missing("rsample")

    def _standard(self, value: Tensor) -> Any:
        self._check_sample(value)
        return (value - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + self._draw(self._extended_shape(sample_shape)) * self.scale

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class Normal(_LocationScale, ExponentialFamily):
    """Normal distribution with mean ``loc`` and standard deviation ``scale``.

    Example:
        >>> import graphc as gc
        >>> normal = gc.distributions.Normal(gc.tensor(0.0), gc.tensor(2.0))
        >>> normal.log_prob(gc.tensor(0.0))
        tensor(-1.6121)
        >>> normal.sample((3,)).shape
        (3,)
    """

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return sampling.normal(shape, self.loc.dtype)

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def log_prob(self, value: Tensor) -> Tensor:
        return self._standard(value).square() * -0.5 - self.scale.log() - 0.5 * LOG_2_PI

    def cdf(self, value: Tensor) -> Tensor:
        return (self._standard(value) * -math.sqrt(0.5)).erfc() * 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (value * 2 - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (0.5 + 0.5 * LOG_2_PI)


class Laplace(_LocationScale):
    """Density proportional to ``exp(-|x - loc| / scale)``."""

    def _draw(self, shape: tuple[int, ...]) -> Any:
        positive = sampling.bernoulli(0.5, shape)
        magnitude: Any = sampling.exponential(shape, self.loc.dtype)
        return ew.where(positive, magnitude, -magnitude)

    @property
    def stddev(self) -> Tensor:
        return self.scale * math.sqrt(2)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * 2

    def log_prob(self, value: Tensor) -> Tensor:
        return -(self.scale * 2).log() - self._standard(value).abs()

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (term.abs() * -2).log1p()

    def entropy(self) -> Tensor:
        return (self.scale * 2).log() + 1


class Cauchy(_LocationScale):
    """Quotient of two normal variables; mean and variance do not exist (NaN and infinite here)."""

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return sampling.cauchy(shape, self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        return full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return full_like(self.loc, math.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - self._standard(value).square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return ((value - 0.5) * math.pi).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return self.scale.log() + math.log(4 * math.pi)


class Gumbel(_LocationScale):
    """Limit distribution of the largest of many values."""

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return sampling.gumbel(shape, self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def stddev(self) -> Tensor:
        return self.scale * (math.pi / math.sqrt(6))

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -z - (-z).exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-(-self._standard(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


class _Half(Distribution):
    """Base of absolute values of variables that are symmetric about 0."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _symmetric: ClassVar[type[_LocationScale]]
    """Distribution of the symmetric variable."""

    def __init__(self, scale: Any, validate_args: bool | None = None):
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def _symmetric_variable(self) -> _LocationScale:
        return self._symmetric(0.0, self.scale, validate_args=False)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._symmetric_variable().rsample(sample_shape).abs()

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return ew.where(ew.ge(value, 0), self._symmetric_variable().log_prob(value) + math.log(2), -math.inf)

    def entropy(self) -> Tensor:
        return self._symmetric_variable().entropy() - math.log(2)


class HalfNormal(_Half):
    """Absolute value of a normal variable with mean 0 and standard deviation ``scale``."""

    _symmetric = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return (value / (self.scale * math.sqrt(2))).erf()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * value.erfinv() * math.sqrt(2)


class HalfCauchy(_Half):
    """Absolute value of a Cauchy variable with location 0; mean and variance are infinite."""

    _symmetric = Cauchy

    @property
    def mean(self) -> Tensor:
        return full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return full_like(self.scale, math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return (value / self.scale).atan() * (2 / math.pi)

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (value * (math.pi / 2)).tan()


class Uniform(Distribution):
    """Uniform distribution on the numbers from ``low`` up to, not including, ``high``."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"low": constraints.dependent, "high": constraints.dependent}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args:
            self._need(constraints.positive, self.high - self.low, "high - low")

    @property
    def support(self) -> Constraint:
        return constraints.interval(self.low, self.high)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        fractions: Any = sampling.uniform(self._extended_shape(sample_shape), self.low.dtype)
        return self.low + fractions * (self.high - self.low)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) * 0.5

    @property
    def mode(self) -> Tensor:
        return full_like(self.high, math.nan)

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) * (1 / math.sqrt(12))

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() * (1 / 12)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        inside = ew.logical_and(ew.le(self.low, value), ew.gt(self.high, value))
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Exponential(ExponentialFamily):
    """Waiting times of events that happen ``rate`` times per unit of time."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        samples: Any = sampling.exponential(self._extended_shape(sample_shape), self.rate.dtype)
        return samples / self.rate

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.square().reciprocal()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()
