"""Distributions derived from gamma variates: gamma, chi-squared, beta, Dirichlet, Student's t.

Samples are differentiable in the concentrations by implicit reparameterisation (Figurnov et al., Implicit
Reparameterization Gradients, 2018): gammas through their distribution function, others as quotients of gammas.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from graphc.base.errors import ShapeError
from graphc.distributions import constraints
from graphc.distributions.constraints import Constraint
from graphc.distributions.distribution import Distribution, ExponentialFamily, broadcast_all
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import exact, gamma
from graphc.tensors import composite
from graphc.tensors.creation import arange, full_like
from graphc.tensors.limits import finfo
from graphc.tensors.methods import shaping
from graphc.tensors.random import sampling
from graphc.tensors.tensor import Tensor

__all__ = ["Beta", "Chi2", "Dirichlet", "Gamma", "StudentT"]


def _log_gammas(concentration: Tensor, shape: tuple[int, ...]) -> Any:
    """Sample the logarithms of gamma variates of scale 1, with gradients; in f32 for f16 and bf16."""
    if concentration.dtype.kind == "h":
        concentration = concentration.float()
    return gamma.log_gamma_variate(sampling.log_gamma(concentration, shape), concentration)


def _exp(log: Any) -> Tensor:
    """Compute the exponential with equal bits on all executors, clamped to the smallest normal number."""
    return composite.clamp(exact.exact_exp(log), finfo(log.dtype).tiny, None)


class Gamma(ExponentialFamily):
    """Density ``rate**c x**(c - 1) exp(-rate x) / gamma(c)`` with the concentration c."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        log = _log_gammas(self.concentration, self._extended_shape(sample_shape))
        return (_exp(log) / self.rate).to_dtype(self.rate.dtype)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        c, rate = self.concentration, self.rate
        return c.xlogy(rate) + (c - 1).xlogy(value) - rate * value - c.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return gamma.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        c = self.concentration
        return c - self.rate.log() + c.lgamma() + (1 - c) * c.digamma()


class Chi2(Gamma):
    """Sum of the squares of ``df`` standard normal variables."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None):
        (self.df,) = broadcast_all(df)
        Distribution.__init__(self, self.df.shape, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Half the degrees of freedom."""
        return self.df * 0.5

    @property
    def rate(self) -> Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The constant 1/2."""
        return full_like(self.df, 0.5)


class Beta(ExponentialFamily):
    """Fraction ``x / (x + y)`` of gamma variates x, y with concentrations ``concentration1``, ``concentration0``."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def _total(self) -> Tensor:
        return self.concentration1 + self.concentration0

    def _log_norm(self) -> Tensor:
        return self.concentration1.lgamma() + self.concentration0.lgamma() - self._total().lgamma()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        log_ratio = _log_gammas(self.concentration1, shape) - _log_gammas(self.concentration0, shape)
        ratio = exact.exact_exp(-log_ratio.abs())
        fraction = ew.where(ew.lt(log_ratio, 0), ratio, 1.0) / (ratio + 1)
        limits = finfo(self.concentration1.dtype)
        return fraction.clamp(limits.tiny, 1 - limits.eps / 2).to_dtype(self.concentration1.dtype)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / self._total()

    @property
    def mode(self) -> Tensor:
        return _dirichlet_mode(shaping.stacked([self.concentration1, self.concentration0], -1)).select(-1, 0)

    @property
    def variance(self) -> Tensor:
        total = self._total()
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return (self.concentration1 - 1).xlogy(value) + (self.concentration0 - 1).xlogy(1 - value) - self._log_norm()

    def entropy(self) -> Tensor:
        a, b, total = self.concentration1, self.concentration0, self._total()
        inner = (a - 1) * a.digamma() + (b - 1) * b.digamma()
        return self._log_norm() - inner + (total - 2) * total.digamma()


def _dirichlet_mode(concentration: Tensor) -> Tensor:
    above = (concentration - 1).clamp(min=0)
    total = above.sum(-1, keepdim=True)
    largest = concentration.argmax(-1).unsqueeze(-1)
    corner = ew.eq(arange(concentration.shape[-1]), largest).to_dtype(concentration.dtype)
    return ew.where(ew.gt(total, 0), above / ew.where(ew.gt(total, 0), total, 1.0), corner)


class Dirichlet(ExponentialFamily):
    """Probability vectors: gamma variates with the concentrations of the last dimension, divided by their sum."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if not isinstance(concentration, Tensor) or not concentration.ndim:
            raise ShapeError(
                "Dirichlet: concentration must be a tensor of at least one dimension",
                remedy="pass graphc.tensor([...])",
            )
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        log = _log_gammas(self.concentration, self._extended_shape(sample_shape))
        size = _exp(log - log.detach().amax(-1, keepdim=True))
        # NOTE: a running sum fixes the order of additions, so that all executors give the same bits.
        fractions = size / size.cumsum(-1).narrow(-1, size.shape[-1] - 1, 1)
        return fractions.to_dtype(self.concentration.dtype)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        return _dirichlet_mode(self.concentration)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return (self.concentration - 1).xlogy(value).sum(-1) - self._log_norm()

    def _log_norm(self) -> Tensor:
        return self.concentration.lgamma().sum(-1) - self.concentration.sum(-1).lgamma()

    def entropy(self) -> Tensor:
        c, total = self.concentration, self.concentration.sum(-1)
        inner = ((c - 1) * c.digamma()).sum(-1)
        return self._log_norm() - (c.shape[-1] - total) * total.digamma() - inner


class StudentT(Distribution):
    """``loc + scale * z / sqrt(s / df)`` of a normal z and a chi-squared s with ``df`` degrees of freedom."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        z: Any = sampling.normal(shape, self.loc.dtype)
        half = self.df * 0.5
        return (self.loc + self.scale * (z * (half / _exp(_log_gammas(half, shape))).sqrt())).to_dtype(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        return ew.where(ew.gt(self.df, 1), self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = ew.gt(self.df, 2)
        df = ew.where(finite, self.df, 3.0)
        beyond = ew.where(ew.gt(self.df, 1), math.inf, math.nan)
        return ew.where(finite, self.scale.square() * df / (df - 2), beyond)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        y, df = (value - self.loc) / self.scale, self.df
        norm = self.scale.log() + (df * math.pi).log() * 0.5 + (df * 0.5).lgamma() - (df * 0.5 + 0.5).lgamma()
        return (df * -0.5 - 0.5) * (y.square() / df).log1p() - norm

    def entropy(self) -> Tensor:
        half, half_next = self.df * 0.5, self.df * 0.5 + 0.5
        log_beta = half.lgamma() + math.lgamma(0.5) - half_next.lgamma()
        return self.scale.log() + half_next * (half_next.digamma() - half.digamma()) + self.df.log() * 0.5 + log_beta
