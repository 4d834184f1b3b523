"""Normal distribution of vectors, given by its covariance, precision, or Cholesky factor."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from graphc.base.errors import ArgumentError, ShapeError
from graphc.base.sizes.dims import common_shape
from graphc.distributions import constraints
from graphc.distributions.constraints import Constraint
from graphc.distributions.distribution import LOG_2_PI, Distribution, either
from graphc.linalg.systems import cholesky, inv, solve_triangular
from graphc.tensors.random import sampling
from graphc.tensors.tensor import Tensor

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """Vectors of mean ``loc`` [..., n] and covariance [..., n, n].

    The covariance is ``covariance_matrix``, the inverse of ``precision_matrix``, or ``scale_tril @ scale_tril.mT``.
    Prefer ``scale_tril`` if you have it: the other two need a decomposition at each use.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        parameter = either("MultivariateNormal", **matrices)
        matrix = matrices[parameter]
        if not isinstance(loc, Tensor) or not isinstance(matrix, Tensor):
            raise ArgumentError(
                f"MultivariateNormal: loc and {parameter} must be tensors", remedy="pass graphc.tensor([...])"
            )
        if loc.ndim < 1 or matrix.ndim < 2 or tuple(matrix.shape[-2:]) != (loc.shape[-1], loc.shape[-1]):
            raise ShapeError(
                f"MultivariateNormal: loc must be [..., n] and {parameter} [..., n, n], got {list(loc.shape)} and "
                f"{list(matrix.shape)}"
            )
        batch = common_shape(loc.shape[:-1], matrix.shape[:-2])
        self.loc = loc.expand(*batch, *loc.shape[-1:])
        self.__dict__[parameter] = matrix.expand(*batch, *matrix.shape[-2:])
        super().__init__(batch, loc.shape[-1:], validate_args)

    @property
    def scale_tril(self) -> Tensor:
        """Lower triangular Cholesky factor of the covariance."""
        if "scale_tril" in self.__dict__:
            return self.__dict__["scale_tril"]
        return cholesky(self.covariance_matrix)

    @property
    def covariance_matrix(self) -> Tensor:
        """Covariance of the elements."""
        covariance = self.__dict__.get("covariance_matrix")
        if covariance is not None:
            return covariance
        if "scale_tril" in self.__dict__:
            lower = self.__dict__["scale_tril"]
            return lower @ lower.mT
        return inv(self.__dict__["precision_matrix"])

    @property
    def precision_matrix(self) -> Tensor:
        """Inverse of the covariance."""
        precision = self.__dict__.get("precision_matrix")
        return inv(self.covariance_matrix) if precision is None else precision

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.covariance_matrix.diagonal(dim1=-2, dim2=-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise: Any = sampling.normal(self._extended_shape(sample_shape), self.loc.dtype)
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        lower = self.scale_tril
        distance = mahalanobis(lower, value - self.loc)
        return (distance + self._event_shape[0] * LOG_2_PI) * -0.5 - log_determinant(lower)

    def entropy(self) -> Tensor:
        return log_determinant(self.scale_tril) + 0.5 * self._event_shape[0] * (1 + LOG_2_PI)


def log_determinant(lower: Tensor) -> Tensor:
    """Compute the log determinant of a triangular factor: half the log determinant of the covariance."""
    return lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def mahalanobis(lower: Tensor, deviation: Tensor) -> Tensor:
    """Compute the squared length of ``lower**-1 @ deviation`` for vectors [..., n].

    With a single factor, one call solves for all vectors.
    """
    if lower.ndim > 2:
        return solve_triangular(lower, deviation.unsqueeze(-1), upper=False).squeeze(-1).square().sum(-1)
    columns = deviation.reshape(math.prod(deviation.shape[:-1]), deviation.shape[-1]).mT
    return solve_triangular(lower, columns, upper=False).square().sum(-2).reshape(*deviation.shape[:-1])
