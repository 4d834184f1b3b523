"""Distributions of powers and exponentials of other variables: Weibull, Pareto, inverse gamma."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from graphc.distributions import constraints
from graphc.distributions.composed import TransformedDistribution
from graphc.distributions.constraints import Constraint
from graphc.distributions.distribution import EULER, Distribution, broadcast_all
from graphc.distributions.gamma_family import Gamma
from graphc.distributions.location_scale import Exponential
from graphc.distributions.transforms import AffineTransform, ExpTransform, PowerTransform
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.creation import ones_like
from graphc.tensors.tensor import Tensor

__all__ = ["InverseGamma", "Pareto", "Weibull"]


class _Named(TransformedDistribution):
    """Base of transformed distributions with their own parameters, which ``repr`` shows."""

    __repr__ = Distribution.__repr__


class Weibull(_Named):
    """``scale * x ** (1 / concentration)`` of an exponential variable x of rate 1; models times to failure."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }

    @property
    def support(self) -> Constraint:
        return constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(ones_like(self.scale), validate_args=False)
        power = PowerTransform(self.concentration.reciprocal())
        super().__init__(base, [power, AffineTransform(0.0, self.scale)], validate_args)

    def _moment(self, order: int) -> Tensor:
        return (order / self.concentration + 1).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    def entropy(self) -> Tensor:
        return EULER * (1 - self.concentration.reciprocal()) + (self.scale / self.concentration).log() + 1


class Pareto(_Named):
    """``scale * exp(x)`` of an exponential variable x of rate ``alpha``."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "scale": constraints.positive,
        "alpha": constraints.positive,
    }

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=False)
        super().__init__(base, [ExpTransform(), AffineTransform(0.0, self.scale)], validate_args)

    @property
    def support(self) -> Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()


class InverseGamma(_Named):
    """Reciprocal of a gamma variable."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }

    @property
    def support(self) -> Constraint:
        return constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        base = Gamma(self.concentration, self.rate, validate_args=False)
        super().__init__(base, PowerTransform(-ones_like(self.rate)), validate_args)

    @property
    def mean(self) -> Tensor:
        return ew.where(ew.gt(self.concentration, 1), self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        finite_variance = self.rate.square() / ((c - 1).square() * (c - 2))
        return ew.where(ew.gt(c, 2), finite_variance, math.inf)

    def entropy(self) -> Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (c + 1) * c.digamma()
