"""Matrices with orthonormal columns (or rows), as functions of unconstrained matrices.

Three maps: reflections (Householder 1958), the exponential of a skew-symmetric matrix, and its Cayley transform.
"""

from __future__ import annotations

import numpy as np

from graphc.base.errors import ArgumentError, AttributeValueError, ShapeError
from graphc.linalg.products import matrix_exp
from graphc.linalg.reflections import householder_product
from graphc.linalg.systems import solve
from graphc.nn.module import Module
from graphc.nn.utils.parametrize import register_parametrization
from graphc.tensors.creation import eye, from_numpy, randn
from graphc.tensors.free_functions import cat
from graphc.tensors.tensor import Tensor


def reflected(vectors: Tensor) -> Tensor:
    """Multiply Householder reflections and return the first k columns of the product.

    The vectors are the columns of [..., n, k] below the diagonal, with an implicit 1 on the diagonal.
    """
    below = vectors.tril(-1)
    return householder_product(vectors, 2.0 / (1.0 + (below * below).sum(-2)))


def _skew(weight: Tensor) -> Tensor:
    n, k = weight.shape[-2:]
    lower = weight.tril()
    if n != k:
        lower = cat([lower, lower.new_zeros(*lower.shape[:-1], n - k)], -1)
    return lower - lower.mT


def _cayley(weight: Tensor) -> Tensor:
    half, one = _skew(weight) * 0.5, eye(weight.shape[-2], dtype=weight.dtype)
    return solve(one - half, one + half)[..., : weight.shape[-1]]


def _householder(weight: Tensor) -> Tensor:
    signs = weight.detach().diagonal(0, -2, -1).int().to(weight.dtype)
    return reflected(weight) * signs.unsqueeze(-2)


MAPS = {
    "matrix_exp": lambda weight: matrix_exp(_skew(weight))[..., : weight.shape[-1]],
    "cayley": _cayley,
    "householder": _householder,
}


def _orthonormal(values: np.ndarray) -> np.ndarray:
    """Orthonormalize the columns in the sense of Gram and Schmidt."""
    q, r = np.linalg.qr(values)
    return q * np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, -1, 1)[..., None, :]


class Orthogonal(Module):
    """The parametrization. ``base``, unless None, is a matrix that multiplies the map's result from the left."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True):
        super().__init__()
        self.size = tuple(weight.shape)
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, weight: Tensor) -> Tensor:
        """Map to orthonormal columns, or to orthonormal rows if there are fewer rows."""
        wide = weight.shape[-2] < weight.shape[-1]
        result = MAPS[self.orthogonal_map](weight.mT if wide else weight)
        if self.use_trivialization and self.base is not None:
            result = self.base @ result
        return result.mT if wide else result

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the tensor that the parametrization maps to ``value``, which is made orthonormal if it is not."""
        if tuple(value.shape) != self.size:
            raise ShapeError(f"orthogonal: expected a matrix of shape {list(self.size)}, got {list(value.shape)}")
        wide = value.shape[-2] < value.shape[-1]
        tall = (value.mT if wide else value).detach().numpy()
        if self.use_trivialization:
            self.base = from_numpy(self._completed(tall))
            start = -eye(*self.size[-2:], dtype=value.dtype)
            return start.expand(*self.size).clone()
        if self.orthogonal_map != "householder":
            raise NotImplementedError(f"{self.orthogonal_map} cannot be assigned to with use_trivialization=False")
        reflections, scales = np.linalg.qr(tall, mode="raw")
        vectors = np.array(np.swapaxes(reflections, -2, -1))
        diagonal = np.arange(tall.shape[-1])
        vectors[..., diagonal, diagonal] = np.sign(vectors[..., diagonal, diagonal]) * np.where(scales == 0, -1, 1)
        result = from_numpy(np.ascontiguousarray(vectors))
        return result.mT if wide else result

    def _completed(self, tall: np.ndarray) -> np.ndarray:
        """Extend the columns of ``tall``, made orthonormal, to a square orthogonal matrix."""
        n, k = tall.shape[-2:]
        if n != k:
            random_columns = randn(*tall.shape[:-2], n, n - k).numpy().astype(tall.dtype)
            return _orthonormal(np.concatenate([tall, random_columns], -1))
        distance = np.abs(np.swapaxes(tall, -2, -1) @ tall - np.eye(n)).max(initial=0.0)
        return tall.copy() if distance <= 10 * n * np.finfo(tall.dtype).eps else _orthonormal(tall)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep the columns of a weight [..., n, k] orthonormal (its rows for n < k) while it is trained.

    ``orthogonal_map`` is ``matrix_exp`` (the default for square matrices), ``cayley`` or ``householder``. With
    ``use_trivialization`` (Lezcano-Casado 2019) the map starts at the current weight, made orthonormal.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise AttributeValueError(f"{type(module).__name__} has no parameter or buffer {name!r}")
    if len(weight.shape) < 2:
        raise AttributeValueError(f"orthogonal: expected 2 or more dimensions, got shape {list(weight.shape)}")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in MAPS:
        raise ArgumentError(
            f"orthogonal: orthogonal_map {orthogonal_map!r} is not known", remedy=f"pass {' or '.join(MAPS)}"
        )
    parametrization = Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, parametrization, unsafe=True)
