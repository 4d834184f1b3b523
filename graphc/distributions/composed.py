"""Distributions composed of others: independent dimensions, transformed samples, mixtures, relaxed choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from graphc.base.errors import ArgumentError, AttributeValueError, ShapeError
from graphc.distributions import constraints
from graphc.distributions.constraints import Constraint
from graphc.distributions.discrete import Bernoulli, Categorical, CategoryVectors
from graphc.distributions.distribution import Distribution, broadcast_all, either, summed
from graphc.distributions.location_scale import Normal
from graphc.distributions.transforms import (
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    Transform,
    extreme,
)
from graphc.ops.pointwise import exact
from graphc.tape.grad_mode import no_grad
from graphc.tensors import composite
from graphc.tensors.random import sampling
from graphc.tensors.tensor import Tensor

__all__ = ["Independent", "LogNormal", "MixtureSameFamily", "RelaxedBernoulli", "RelaxedOneHotCategorical"]
__all__ += ["TransformedDistribution"]


class Independent(Distribution):
    """A distribution whose last ``reinterpreted_batch_ndims`` batch dimensions are part of one event."""

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ):
        batch = base_distribution.batch_shape
        if not 0 <= reinterpreted_batch_ndims <= len(batch):
            raise AttributeValueError(
                f"Independent: cannot reinterpret {reinterpreted_batch_ndims} dimensions of batch shape {list(batch)}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.has_rsample = base_distribution.has_rsample
        batch_ndims = len(batch) - reinterpreted_batch_ndims
        super().__init__(batch[:batch_ndims], (*batch[batch_ndims:], *base_distribution.event_shape), validate_args)

    @property
    def has_enumerate_support(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    @property
    def support(self) -> Constraint:
        return constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return summed(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return summed(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise self._missing("enumerate_support over several dimensions")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """Distribution of ``t(x)`` for x of ``base_distribution``, where t is a transform or a chain of several.

    Batch dimensions become part of the event if a transform takes vectors or matrices.
    """

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None):
        chain = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in chain):
            raise ArgumentError("TransformedDistribution takes a transform or a list of them")
        self.transforms = chain
        composed = ComposeTransform(chain)
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if len(shape) < composed.domain.event_dim:
            raise ShapeError(
                f"TransformedDistribution: the transforms take {composed.domain.event_dim} dimensions, the base has "
                f"{list(shape)}"
            )
        after = composed.forward_shape(shape)
        before = composed.inverse_shape(after)
        if before != shape:
            base_distribution = base_distribution.expand(before[: len(before) - len(base_distribution.event_shape)])
        extra = composed.domain.event_dim - len(base_distribution.event_shape)
        self.base_dist = Independent(base_distribution, extra) if extra > 0 else base_distribution
        count = composed.codomain.event_dim + max(-extra, 0)
        cut = len(after) - count
        self.has_rsample = self.base_dist.has_rsample
        super().__init__(after[:cut], after[cut:], validate_args)

    @property
    def support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        codomain = self.transforms[-1].codomain
        extra = len(self._event_shape) - codomain.event_dim
        return constraints.independent(codomain, extra) if extra > 0 else codomain

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        count, y, terms = len(self._event_shape), value, []
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            count += transform.domain.event_dim - transform.codomain.event_dim
            terms.append(summed(transform.log_abs_det_jacobian(x, y), count - transform.domain.event_dim))
            y = x
        total = summed(self.base_dist.log_prob(y), count - len(self.base_dist.event_shape))
        for term in terms:
            total = total - term
        return total

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        sign: Any = 1
        for transform in reversed(self.transforms):
            value, sign = transform.inv(value), sign * transform.sign
        return extreme(self.base_dist.cdf(value), sign)

    def icdf(self, value: Tensor) -> Tensor:
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return self._forward(self.base_dist.icdf(extreme(value, sign)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.transforms!r})"


class LogNormal(TransformedDistribution):
    """Exponential of a normal variable with mean ``loc`` and standard deviation ``scale``."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"loc": constraints.real, "scale": constraints.positive}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        samples: Any = exact.exact_exp(self.base_dist.rsample(sample_shape))
        return samples

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    @property
    def loc(self) -> Tensor:
        """Mean of the logarithm."""
        return self.base_dist.mean

    @property
    def scale(self) -> Tensor:
        """Standard deviation of the logarithm."""
        return self.base_dist.stddev

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() * 0.5).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (self.loc * 2 + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class MixtureSameFamily(Distribution):
    """Mixture whose components are the last batch dimension of ``component_distribution``, chosen by a Categorical."""

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ):
        batch = component_distribution.batch_shape
        if not isinstance(mixture_distribution, Categorical) or not batch:
            raise ArgumentError("MixtureSameFamily takes a Categorical and components along a last batch dimension")
        if mixture_distribution.param_shape[-1] != batch[-1]:
            raise ShapeError(
                f"MixtureSameFamily: {mixture_distribution.param_shape[-1]} probabilities do not fit "
                f"{batch[-1]} components"
            )
        self._mixture = mixture_distribution
        self._component = component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        """Distribution of the component's index."""
        return self._mixture

    @property
    def component_distribution(self) -> Distribution:
        """Distributions of the components."""
        return self._component

    @property
    def support(self) -> Constraint:
        return self._component.support

    def _weights(self) -> Tensor:
        return self._mixture.probs.reshape(*self._mixture.param_shape, *([1] * len(self._event_shape)))

    @property
    def _dim(self) -> int:
        return -1 - len(self._event_shape)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component.mean).sum(self._dim)

    @property
    def variance(self) -> Tensor:
        within = (self._weights() * self._component.variance).sum(self._dim)
        deviation = self._component.mean - self.mean.unsqueeze(self._dim)
        return within + (self._weights() * deviation.square()).sum(self._dim)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return (self._component.cdf(value.unsqueeze(self._dim)) * self._mixture.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        component_log_probs = self._component.log_prob(value.unsqueeze(self._dim))
        return (component_log_probs + composite.log_softmax(self._mixture.logits, -1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            samples = self._component.sample(sample_shape)
            chosen = self._mixture.expand(self._batch_shape).sample(sample_shape)
            shape = list(samples.shape)
            shape[self._dim] = 1
            index = chosen.reshape(*chosen.shape, *([1] * (1 + len(self._event_shape)))).expand(*shape)
            return samples.gather(self._dim, index).squeeze(self._dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture!r}, {self._component!r})"


class LogitRelaxedBernoulli(Distribution):
    """Log-odds of a relaxed Bernoulli variable (Maddison et al., The Concrete Distribution, 2017)."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "temperature": constraints.positive,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        parameter = either(type(self).__name__, probs=probs, logits=logits)
        self.temperature, value = broadcast_all(temperature, logits if probs is None else probs)
        self._odds = Bernoulli(**{parameter: value}, validate_args=validate_args)
        super().__init__(value.shape, validate_args=validate_args)

    @property
    def probs(self) -> Tensor:
        """Probability of success."""
        return self._odds.probs

    @property
    def logits(self) -> Tensor:
        """Logarithm of the odds of success."""
        return self._odds.logits

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        first: Any = sampling.gumbel(shape, self.temperature.dtype)
        second: Any = sampling.gumbel(shape, self.temperature.dtype)
        return (first - second + self.logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        difference = self.logits - value * self.temperature
        return self.temperature.log() + difference - composite.softplus(difference) * 2


class _Relaxed(TransformedDistribution):
    """Base of transformed relaxed choices; exposes their parameters."""

    base_dist: Any

    @property
    def temperature(self) -> Tensor:
        """Temperature: the lower, the closer samples are to discrete choices."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        """Probability of success, or of each category."""
        return self.base_dist.probs

    @property
    def logits(self) -> Tensor:
        """Log-odds of success, or log probabilities of categories."""
        return self.base_dist.logits


class RelaxedBernoulli(_Relaxed):
    """Differentiable Bernoulli variable with values between 0 and 1, close to 0 or 1 at a low ``temperature``."""

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(CategoryVectors):
    """Logarithm of a relaxed one-hot variable.

    See Jang et al., Categorical Reparameterization with Gumbel-Softmax, 2017.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"temperature": constraints.positive}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        (self.temperature,) = broadcast_all(temperature)
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape)
        new.temperature = self.temperature  # The whole batch shares one temperature.
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise: Any = sampling.gumbel(self._extended_shape(sample_shape), self.logits.dtype)
        return composite.log_softmax((self.logits + noise) / self.temperature, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        count = self._event_shape[0]
        score = composite.log_softmax(self.logits - value * self.temperature, -1).sum(-1)
        return score + math.lgamma(count) + self.temperature.log() * (count - 1)


class RelaxedOneHotCategorical(_Relaxed):
    """Differentiable one-hot variable with values between 0 and 1, close to 0 or 1 at a low ``temperature``."""

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
