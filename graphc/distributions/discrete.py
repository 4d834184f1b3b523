"""Discrete distributions: Bernoulli, geometric, binomial, Poisson, categorical, one-hot, multinomial."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.distributions import constraints
from graphc.distributions.constraints import Constraint
from graphc.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    broadcast_all,
    clamped,
    either,
)
from graphc.ops.pointwise import elementwise as ew
from graphc.tape.grad_mode import no_grad
from graphc.tensors import composite
from graphc.tensors.creation import arange, full_like, poisson, zeros_like
from graphc.tensors.free_functions import multinomial
from graphc.tensors.limits import finfo
from graphc.tensors.random import sampling
from graphc.tensors.tensor import Tensor

__all__ = ["Bernoulli", "Binomial", "Categorical", "Geometric", "Multinomial", "OneHotCategorical"]
__all__ += ["OneHotCategoricalStraightThrough", "Poisson"]


class _Chances(Distribution):
    """Base of distributions with ``probs`` or ``logits``, whichever was passed."""

    @property
    def _param(self) -> Tensor:
        probs = self.__dict__.get("probs")
        return self.__dict__["logits"] if probs is None else probs


class _Trial(_Chances):
    """Base of distributions over trials that succeed with probability ``probs``; ``logits`` are log-odds."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        parameter = either(type(self).__name__, probs=probs, logits=logits)
        (value,) = broadcast_all(logits if probs is None else probs)
        self.__dict__[parameter] = value
        super().__init__(value.shape, validate_args=validate_args)

    @property
    def probs(self) -> Tensor:
        """Probability of success."""
        return self._param if "probs" in self.__dict__ else self._param.sigmoid()

    @property
    def logits(self) -> Tensor:
        """Logarithm of the odds of success."""
        return self._param if "logits" in self.__dict__ else clamped(self._param).logit()

    def _success(self, shape: tuple[int, ...]) -> Any:
        """Sample True with the probability of success."""
        return sampling.bernoulli(self.probs.expand(*shape), shape)


def _cross_entropy(logits: Tensor, value: Any) -> Tensor:
    """Compute the negative log probability of ``value`` (0, 1, or between) from log-odds."""
    return _softplus(logits) - logits * value


def _softplus(logits: Tensor) -> Tensor:
    """Compute ``log(1 + exp(logits))``, with the gradient 1/2 at 0."""
    return composite.softplus(logits, threshold=math.inf)


class Bernoulli(_Trial, ExponentialFamily):
    """1 with probability ``probs``, else 0.

    Example:
        >>> import graphc as gc
        >>> coin = gc.distributions.Bernoulli(probs=gc.tensor(0.5))
        >>> coin.mean, coin.variance
        (tensor(0.5000), tensor(0.2500))
    """

    support = constraints.boolean
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        probs = self.probs
        return ew.where(ew.eq(probs, 0.5), math.nan, ew.cast(ew.ge(probs, 0.5), dtype=probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._success(self._extended_shape(sample_shape)).to_dtype(self._param.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return -_cross_entropy(self.logits, value)

    def entropy(self) -> Tensor:
        return _cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _counted(self, 2, self._param, expand)


def _counted(distribution: Distribution, count: int, like: Tensor, expand: bool) -> Tensor:
    """Return 0 to ``count`` - 1 along a new first dimension."""
    batch = distribution.batch_shape
    values = arange(count, dtype=like.dtype, device=like.device).reshape(-1, *([1] * len(batch)))
    return values.expand(count, *batch) if expand else values


class Geometric(_Trial):
    """Number of failed trials before the first success."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "probs": constraints.interval(0, 1, open_below=True),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            waiting_time: Any = sampling.exponential(shape, self._param.dtype)
            return (waiting_time / -(-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        probs = self.probs
        certain = ew.logical_and(ew.eq(probs, 1), ew.eq(value, 0))
        return value * (-ew.where(certain, 0.0, probs)).log1p() + probs.log()

    def entropy(self) -> Tensor:
        probs = self.probs
        if "logits" in self.__dict__:
            return _cross_entropy(self.logits, probs) / probs
        rare = ew.lt(probs, finfo(probs.dtype).eps)
        usual = ew.where(rare, 0.5, probs)
        # NOTE: where 1 - p is 1, log-odds could not tell p from the machine epsilon.
        return ew.where(rare, 1 - probs.log(), _cross_entropy(clamped(usual).logit(), usual) / usual)


class Binomial(_Trial):
    """Number of successes in ``total_count`` trials. A sample draws ``total_count`` random numbers."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        parameter = either("Binomial", probs=probs, logits=logits)
        count, value = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = count.to_dtype(value.dtype)
        self._largest: int | None = total_count if isinstance(total_count, int) else None
        super().__init__(**{parameter: value}, validate_args=validate_args)

    @property
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.total_count)

    def _max_count(self) -> int:
        """Return the largest number of trials; the shape of random numbers depends on it."""
        return int(self.total_count.max().item()) if self._largest is None else self._largest

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape, count = self._extended_shape(sample_shape), self._max_count()
        with no_grad():
            outcomes = self._success((count, *shape))
            trial = arange(count, dtype=self._param.dtype).reshape(-1, *([1] * len(shape)))
            return ew.logical_and(outcomes, ew.lt(trial, self.total_count)).to_dtype(self._param.dtype).sum(0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        n, logits = self.total_count, self.logits
        log_binomial = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return log_binomial + value * logits - n * _softplus(logits)

    def entropy(self) -> Tensor:
        if self._largest is None and bool((self.total_count != self.total_count.max()).any()):
            raise self._missing("entropy of different total counts")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _counted(self, self._max_count() + 1, self._param, expand)


class Poisson(ExponentialFamily):
    """Number of events when ``rate`` are expected. Sampling reads the values of the rates, so compiled code cannot
    sample."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(*self._extended_shape(sample_shape)).detach())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return value.xlogy(self.rate) - self.rate - (value + 1).lgamma()


class Categorical(_Chances):
    """Category indices from 0, with probabilities in the last dimension.

    ``probs`` need not be normalised, and ``logits`` may have any constant added.

    Example:
        >>> import graphc as gc
        >>> weather = gc.distributions.Categorical(probs=gc.tensor([0.5, 0.25, 0.25]))
        >>> weather.log_prob(gc.tensor([0, 1])).exp()
        tensor([0.5000, 0.2500])
        >>> weather.entropy()
        tensor(1.0397)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "probs": constraints.independent(constraints.nonnegative, 1),
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        parameter = either("Categorical", probs=probs, logits=logits)
        value = logits if probs is None else probs
        if not isinstance(value, Tensor) or not value.ndim:
            raise ArgumentError(
                f"Categorical: {parameter} must be a tensor of at least one dimension",
                remedy="pass graphc.tensor([...])",
            )
        value = value / value.sum(-1, keepdim=True) if parameter == "probs" else composite.log_softmax(value, -1)
        self.__dict__[parameter] = value
        self._num_events = value.shape[-1]
        super().__init__(value.shape[:-1], validate_args=validate_args)

    @property
    def probs(self) -> Tensor:
        """Probabilities, with a sum of 1."""
        return self._param if "probs" in self.__dict__ else self._param.exp()

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return self._param if "logits" in self.__dict__ else clamped(self._param).log()

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Shape of the probabilities."""
        return tuple(self._param.shape)

    @property
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return full_like(self._param.select(-1, 0), math.nan)

    @property
    def mode(self) -> Tensor:
        return self._param.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        count = math.prod(sample_shape)
        with no_grad():
            probs = self.probs.detach().reshape(-1, self._num_events)
            return multinomial(probs, count, True).transpose(0, 1).reshape(*shape) if count else arange(0).view(*shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        chosen = value.long().unsqueeze(-1)
        shape = [max(a, b) for a, b in zip(_padded(chosen, self._param), _padded(self._param, chosen), strict=True)]
        logits = self.logits.expand(*shape[:-1], self._num_events)
        return logits.gather(-1, chosen.expand(*shape[:-1], 1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.logits.clamp(min=finfo(self._param.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _counted(self, self._num_events, arange(1), expand)


def _padded(x: Tensor, other: Tensor) -> tuple[int, ...]:
    return (*([1] * (other.ndim - x.ndim)), *x.shape)


class CategoryVectors(Distribution):
    """Base of vectors with one element for each category of a ``Categorical``."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    @property
    def probs(self) -> Tensor:
        """Probabilities, with a sum of 1."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> tuple[int, ...]:
        """Shape of the probabilities."""
        return self._categorical.param_shape

    def _one_hot(self, category: Tensor) -> Tensor:
        count = self._event_shape[0]
        return ew.eq(category.unsqueeze(-1), arange(count)).to_dtype(self._categorical._param.dtype)


class OneHotCategorical(CategoryVectors):
    """Categories as one-hot vectors; parameters as for ``Categorical``."""

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._event_shape[0]
        values = self._one_hot(arange(count)).reshape(count, *([1] * len(self._batch_shape)), count)
        return values.expand(count, *self._batch_shape, count) if expand else values

    def __repr__(self) -> str:
        return repr(self._categorical).replace("Categorical", type(self).__name__, 1)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot samples with a straight-through gradient: the probabilities get the gradient of the samples.

    See Bengio et al., Estimating or Propagating Gradients Through Stochastic Neurons, 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())


class Multinomial(CategoryVectors):
    """Number of times that each category occurs in ``total_count`` draws; parameters as for ``Categorical``."""

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        if not isinstance(total_count, int):
            raise ArgumentError(f"Multinomial: total_count must be an int, got {type(total_count).__name__}")
        if total_count < 0:
            raise AttributeValueError(f"Multinomial: total_count must be at least 0, got {total_count}")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @property
    def support(self) -> Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs) * self.total_count

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._one_hot(self._categorical.sample((self.total_count, *sample_shape))).sum(0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits = self.logits
        impossible = ew.logical_and(ew.eq(value, 0), ew.eq(logits, -math.inf))
        terms = value * ew.where(impossible, 0, logits) - (value + 1).lgamma()
        return (value.sum(-1) + 1).lgamma() + terms.sum(-1)

    def __repr__(self) -> str:
        return repr(self._categorical).replace("Categorical(", f"Multinomial(total_count: {self.total_count}, ", 1)
