"""Parametrizations of weights: weight norm, spectral norm (largest singular value 1), orthogonal matrices."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import AttributeValueError, IndexRangeError
from graphc.nn import functional as F
from graphc.nn.module import Module
from graphc.nn.modules.convolution import _ConvTranspose
from graphc.nn.utils.orthogonal import orthogonal
from graphc.nn.utils.parametrize import register_parametrization
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor


def norm_except_dim(weight: Tensor, dim: int | None) -> Tensor:
    """Compute the Euclidean norm over all dimensions but ``dim``, keeping them as 1; over all for -1 or None."""
    if dim is None or dim == -1:
        return (weight * weight).sum().sqrt()
    axes = [a for a in range(len(weight.shape)) if a != dim]
    return (weight * weight).sum(axes, keepdim=True).sqrt() if axes else weight.abs()


def scaled_direction(weight: Tensor, norm: Tensor, dim: int | None) -> Tensor:
    """Replace the norm of ``weight`` by ``norm`` (Salimans and Kingma 2016)."""
    return weight * (norm / norm_except_dim(weight, dim))


class _WeightNorm(Module):
    def __init__(self, dim: int | None):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return scaled_direction(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Compute a weight from its norm (``original0``), one per slice along ``dim``, and direction (``original1``)."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Reshape ``weight`` to a matrix with ``dim`` as rows and everything else as columns."""
    rank = len(weight.shape)
    if not -rank <= dim < rank:
        raise IndexRangeError(f"spectral_norm: dim {dim} is out of range for a weight of shape {list(weight.shape)}")
    first = dim % rank
    order = [first, *(a for a in range(rank) if a != first)]
    return weight.permute(*order).reshape(weight.shape[first], -1)


def power_iteration(matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float) -> None:
    """Move ``u`` and ``v`` closer to the first singular vectors of ``matrix``, in place."""
    with no_grad():
        for _ in range(count):
            u.copy_(F.normalize(matrix.detach() @ v, dim=0, eps=eps))
            v.copy_(F.normalize(matrix.detach().transpose(0, 1) @ u, dim=0, eps=eps))


def over_singular_value(weight: Tensor, matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Divide ``weight`` by its singular value at ``u`` and ``v`` (Miyato et al. 2018)."""
    u, v = u.detach().clone(), v.detach().clone()
    return weight / (u * (matrix @ v)).sum()


def default_dim(module: Module) -> int:
    """Return the dimension of output channels: 1 in transposed convolutions, else 0."""
    return 1 if isinstance(module, _ConvTranspose) else 0


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float):
        super().__init__()
        if n_power_iterations < 1:
            raise AttributeValueError(f"spectral_norm: n_power_iterations must be 1 or more, got {n_power_iterations}")
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps
        if len(weight.shape) > 1:
            with no_grad():
                matrix = as_matrix(weight.detach(), dim)
                for name, size in (("_u", matrix.shape[0]), ("_v", matrix.shape[1])):
                    self.register_buffer(name, F.normalize(matrix.new_empty(size).normal_(), dim=0, eps=eps))
            power_iteration(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        if len(weight.shape) == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iteration(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        return over_singular_value(weight, matrix, self._u, self._v)

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value; each read in training mode refines the estimate.

    The matrix has dimension ``dim`` as rows (the output channels when None) and all others as columns.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise AttributeValueError(f"{type(module).__name__} has no parameter or buffer {name!r}")
    rows = default_dim(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, rows, eps))


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
