"""Distribution: base class with shapes of batches and events, and checks of parameters and samples."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from graphc.base.errors import ArgumentError, AttributeValueError, ShapeError, UnsupportedError
from graphc.base.sizes.dims import common_shape, new_shape
from graphc.distributions import constraints
from graphc.distributions.constraints import Constraint
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import get_default_dtype, tensor
from graphc.tensors.limits import finfo
from graphc.tensors.tensor import Tensor

__all__ = ["Distribution", "ExponentialFamily"]

Size = tuple[int, ...]


class Distribution:
    """The base of distributions.

    ``batch_shape`` is the shape of the independent distributions in one object, ``event_shape`` the shape of one sample
    of one of them. ``sample(sample_shape)`` has the shape ``sample_shape + batch_shape + event_shape``; ``log_prob``
    drops the event dimensions of its argument.

    Unless ``validate_args`` is False, parameters must satisfy ``arg_constraints``, and the arguments of ``log_prob``
    and ``cdf`` must be in ``support``; otherwise AttributeValueError is raised. Traced tensors have no values: traced
    code checks shapes, but not values.
    """

    has_rsample = False
    """True when gradients reach the parameters through the samples of ``rsample``."""
    has_enumerate_support = False
    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    """Allowed values of each parameter, by name."""
    support: Any = constraints.dependent
    """Constraint that samples satisfy; a property if it depends on parameters."""
    _validate_args: bool = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Choose whether distributions created from now on check values."""
        if value not in (True, False):
            raise AttributeValueError(f"validate_args must be True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ):
        self._batch_shape: Size = tuple(batch_shape)
        self._event_shape: Size = tuple(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    # ---- shapes

    @property
    def batch_shape(self) -> Size:
        """Shape of the independent distributions in this object."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """Shape of one sample of one distribution."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """Return the shape of samples."""
        if not isinstance(sample_shape, Sequence):
            raise ArgumentError(
                f"sample_shape must be a tuple, got {sample_shape!r}", remedy=f"pass ({sample_shape!r},)"
            )
        return (*new_shape((tuple(sample_shape),)), *self._batch_shape, *self._event_shape)

    def parameters_given(self) -> dict[str, Tensor]:
        """Return the parameters passed to the constructor, by name."""
        return {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """Broadcast the distributions to a larger ``batch_shape``.

        Inner distributions, whose batch shapes begin with this one's, grow with it.
        """
        shape, count = new_shape((tuple(batch_shape),)), len(self._batch_shape)
        new = copy.copy(self)
        for name, value in self.parameters_given().items():
            new.__dict__[name] = value.expand(*shape, *value.shape[count:])
        for name, inner in vars(self).items():
            if isinstance(inner, Distribution):
                new.__dict__[name] = inner.expand((*shape, *inner.batch_shape[count:]))
        new._batch_shape = shape
        return new

    # ---- overridden by subclasses

    @property
    def mean(self) -> Tensor:
        """Mean."""
        raise self._missing("mean")

    @property
    def mode(self) -> Tensor:
        """Most likely value."""
        raise self._missing("mode")

    @property
    def variance(self) -> Tensor:
        """Variance."""
        raise self._missing("variance")

    @property
    def stddev(self) -> Tensor:
        """Standard deviation, the square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw random values without gradients from the default generator."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw random values as differentiable functions of the parameters."""
        raise self._missing("rsample")

    def sample_n(self, n: int) -> Tensor:
        """Draw ``n`` samples; ``sample((n,))`` is the newer form."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the density, or of the probability of a discrete value."""
        raise self._missing("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of values up to ``value``."""
        raise self._missing("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile: values up to it have probability ``value``."""
        raise self._missing("icdf")

    def entropy(self) -> Tensor:
        """Compute the entropy in nats."""
        raise self._missing("entropy")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution along a new first dimension.

        Without ``expand`` the batch dimensions have size 1.
        """
        raise self._missing("enumerate_support")

    def perplexity(self) -> Tensor:
        """Compute the exponential of the entropy."""
        return self.entropy().exp()

    def _missing(self, name: str) -> UnsupportedError:
        return UnsupportedError(f"{type(self).__name__} has no {name}")

    # ---- checks

    def _check_parameters(self) -> None:
        for name, value in self.parameters_given().items():
            self._need(self.arg_constraints[name], value, f"parameter {name}")

    def _need(self, constraint: Constraint, value: Tensor, description: str) -> None:
        """Raise AttributeValueError for values outside of a constraint, if both are known."""
        if not isinstance(value._data, np.ndarray) or constraints.is_dependent(constraint):
            return
        with no_grad():
            valid = constraint.check(value.detach())
        if isinstance(valid._data, np.ndarray) and not valid._data.all():
            events = value.detach().reshape(-1, *value.shape[value.ndim - constraint.event_dim :])
            first_invalid = events[int(np.argmin(valid._data.reshape(-1)))].tolist()
            raise AttributeValueError(
                f"{type(self).__name__}: {description} must be {constraint!r}, got {first_invalid}",
                remedy="pass other values, or validate_args=False",
            )

    def _check_sample(self, value: Any) -> None:
        """Raise ArgumentError, ShapeError or AttributeValueError unless ``value`` is in the distribution's support."""
        if not self._validate_args:
            return
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"{name}: the value must be a tensor, got {type(value).__name__}", remedy="pass graphc.tensor(value)"
            )
        count = len(self._event_shape)
        if count > value.ndim or tuple(value.shape[value.ndim - count :]) != self._event_shape:
            raise ShapeError(f"{name}: one event has shape {list(self._event_shape)}, got {list(value.shape)}")
        batch = value.shape[: value.ndim - count]
        for own_size, value_size in zip(reversed(self._batch_shape), reversed(batch), strict=False):
            if own_size != value_size and 1 not in (own_size, value_size):
                raise ShapeError(
                    f"{name}: a value of shape {list(value.shape)} does not broadcast to "
                    f"{list(self._batch_shape)} and {list(self._event_shape)}"
                )
        self._need(self.support, value, "a value")

    def __repr__(self) -> str:
        fields = [
            f"{name}: {value.item() if _is_number(value) else tuple(value.shape)}"
            for name, value in self.parameters_given().items()
        ]
        return f"{type(self).__name__}({', '.join(fields)})"


def _is_number(value: Tensor) -> bool:
    return isinstance(value._data, np.ndarray) and value.numel() == 1


class ExponentialFamily(Distribution):
    """Marker of distributions whose density is an exponential of products of parameters and statistics."""


def broadcast_all(*values: Any) -> list[Tensor]:
    """Convert numbers and tensors to tensors of their common shape; numbers take the tensors' floating-point type."""
    floating = [v.dtype for v in values if isinstance(v, Tensor) and v.dtype.is_floating_point]
    dtype = floating[0] if floating else get_default_dtype()
    for v in values:
        if not isinstance(v, (Tensor, int, float, np.number, np.ndarray)):
            raise ArgumentError(
                f"a parameter must be a number or a tensor, got {type(v).__name__}", remedy="pass graphc.tensor(...)"
            )
    tensors = [v if isinstance(v, Tensor) else tensor(v, dtype=dtype) for v in values]
    shape = common_shape(*(t.shape for t in tensors))
    return [t if tuple(t.shape) == shape else t.expand(*shape) for t in tensors]


def summed(value: Tensor, count: int) -> Tensor:
    """Sum over the last ``count`` dimensions."""
    return value.sum(tuple(range(-count, 0))) if count else value


def either(name: str, **arguments: Any) -> str:
    """Return the name of the only argument that is not None; raise AttributeValueError for none or several."""
    names = [key for key, value in arguments.items() if value is not None]
    if len(names) != 1:
        raise AttributeValueError(f"{name} takes one of {' and '.join(arguments)}, got {' and '.join(names) or 'none'}")
    return names[0]


def clamped(probs: Tensor) -> Tensor:
    """Move probabilities away from 0 and 1 by the machine epsilon, so that their logarithms are finite."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


LOG_2_PI = math.log(2 * math.pi)
EULER = 0.57721566490153286060651209
"""The Euler-Mascheroni constant."""
