"""Distribution: what all distributions have, shapes of batches and events, checks of parameters and samples."""

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

Size = tuple[int, ...]


class Distribution:
    """The base of distributions.

    ``batch_shape`` is the shape of independent distributions that one object holds, ``event_shape`` that of one sample
    of one of them. ``sample(sample_shape)`` has the shape ``sample_shape + batch_shape + event_shape``, ``log_prob`` of
    a value the shape of the value without its event.

    Unless ``validate_args`` is False, parameters must satisfy ``arg_constraints``, and the values that ``log_prob`` and
    ``cdf`` take must lie in ``support``; else AttributeValueError. In traced code tensors have no values to look at:
    there values are not checked, shapes are.
    """

    has_rsample = False
    """Whether ``rsample`` gives samples through which gradients reach the parameters."""
    has_enumerate_support = False
    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    """Parameters by name, each with the values that it may have."""
    support: Any = constraints.dependent
    """The Constraint that samples satisfy; a property where it depends on parameters."""
    _validate_args: bool = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions that are made from now on check values."""
        if value not in (True, False):
            raise AttributeValueError(f"validate_args is True or False, got {value!r}")
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
        """The shape of the distributions that this object holds."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """The shape of samples."""
        if not isinstance(sample_shape, Sequence):
            raise ArgumentError(f"sample_shape is a tuple, got {sample_shape!r}", remedy=f"({sample_shape!r},)")
        return (*new_shape((tuple(sample_shape),)), *self._batch_shape, *self._event_shape)

    def parameters_given(self) -> dict[str, Tensor]:
        """The parameters that this object was made with, by name."""
        return {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """The same distributions with a larger ``batch_shape``, to which theirs broadcasts. The batches of those that
        this one is made of begin with its own, and grow with it."""
        shape, count = new_shape((tuple(batch_shape),)), len(self._batch_shape)
        new = copy.copy(self)
        for name, value in self.parameters_given().items():
            new.__dict__[name] = value.expand(*shape, *value.shape[count:])
        for name, part in vars(self).items():
            if isinstance(part, Distribution):
                new.__dict__[name] = part.expand((*shape, *part.batch_shape[count:]))
        new._batch_shape = shape
        return new

    # ---- what subclasses say

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._missing("mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise self._missing("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._missing("variance")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Random values without gradients, drawn from the default generator."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Random values as functions of the parameters, which get gradients."""
        raise self._missing("rsample")

    def sample_n(self, n: int) -> Tensor:
        """``n`` samples; ``sample((n,))`` is the newer form."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability of a discrete value."""
        raise self._missing("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to ``value``."""
        raise self._missing("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The value up to which the probability is ``value``."""
        raise self._missing("icdf")

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        raise self._missing("entropy")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution along a new first dimension; without ``expand`` the batch dimensions
        have size 1."""
        raise self._missing("enumerate_support")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _missing(self, name: str) -> UnsupportedError:
        return UnsupportedError(f"{type(self).__name__} has no {name}")

    # ---- checks

    def _check_parameters(self) -> None:
        for name, value in self.parameters_given().items():
            self._need(self.arg_constraints[name], value, f"parameter {name}")

    def _need(self, constraint: Constraint, value: Tensor, what: str) -> None:
        """Raises AttributeValueError for values that are known and outside of a constraint that is known."""
        if not isinstance(value._data, np.ndarray) or constraints.is_dependent(constraint):
            return
        with no_grad():
            valid = constraint.check(value.detach())
        if isinstance(valid._data, np.ndarray) and not valid._data.all():
            example = value.detach().reshape(-1, *value.shape[value.ndim - constraint.event_dim :])
            wrong = example[int(np.argmin(valid._data.reshape(-1)))].tolist()
            raise AttributeValueError(
                f"{type(self).__name__}: {what} must be {constraint!r}, got {wrong}",
                remedy="other values, or validate_args=False",
            )

    def _check_sample(self, value: Any) -> None:
        """Raises for what is no value of the distribution: ArgumentError, ShapeError, AttributeValueError."""
        if not self._validate_args:
            return
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ArgumentError(f"{name} takes a tensor as value, got {type(value).__name__}", remedy="graphc.tensor")
        count = len(self._event_shape)
        if count > value.ndim or tuple(value.shape[value.ndim - count :]) != self._event_shape:
            raise ShapeError(f"{name}: one event has shape {list(self._event_shape)}, got {list(value.shape)}")
        batch = value.shape[: value.ndim - count]
        for mine, given in zip(reversed(self._batch_shape), reversed(batch), strict=False):
            if mine != given and 1 not in (mine, given):
                raise ShapeError(
                    f"{name}: a value of shape {list(value.shape)} does not broadcast to "
                    f"{list(self._batch_shape)} and {list(self._event_shape)}"
                )
        self._need(self.support, value, "a value")

    def __repr__(self) -> str:
        parts = [
            f"{name}: {value.item() if _is_number(value) else tuple(value.shape)}"
            for name, value in self.parameters_given().items()
        ]
        return f"{type(self).__name__}({', '.join(parts)})"


def _is_number(value: Tensor) -> bool:
    return isinstance(value._data, np.ndarray) and value.numel() == 1


class ExponentialFamily(Distribution):
    """Marks the distributions whose density is an exponential of products of parameters and statistics."""


def broadcast_all(*values: Any) -> list[Tensor]:
    """Numbers and tensors as tensors of their common shape; numbers take the floating-point type of the tensors."""
    given = [v for v in values if isinstance(v, Tensor)]
    floating = [t.dtype for t in given if t.dtype.is_floating_point]
    dtype = floating[0] if floating else get_default_dtype()
    for v in values:
        if not isinstance(v, (Tensor, int, float, np.number, np.ndarray)):
            raise ArgumentError(f"a parameter is a number or a tensor, got {type(v).__name__}", remedy="graphc.tensor")
    tensors = [v if isinstance(v, Tensor) else tensor(v, dtype=dtype) for v in values]
    shape = common_shape(*(t.shape for t in tensors))
    return [t if tuple(t.shape) == shape else t.expand(*shape) for t in tensors]


def summed(value: Tensor, count: int) -> Tensor:
    """The sum over the last ``count`` dimensions."""
    return value.sum(tuple(range(-count, 0))) if count else value


def either(name: str, **given: Any) -> str:
    """The name of the only argument that is not None; raises AttributeValueError for none or several."""
    names = [key for key, value in given.items() if value is not None]
    if len(names) != 1:
        raise AttributeValueError(f"{name} takes one of {' and '.join(given)}, got {' and '.join(names) or 'none'}")
    return names[0]


def clamped(probs: Tensor) -> Tensor:
    """Probabilities away from 0 and 1 by the rounding unit, so that their logarithms are finite."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


LOG_2_PI = math.log(2 * math.pi)
EULER = 0.57721566490153286060651209
"""Euler's constant."""
