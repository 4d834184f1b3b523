"""Named tuples that functions of matrices return, as in PyTorch."""

from __future__ import annotations

from typing import NamedTuple

from graphc.tensors.tensor import Tensor


class CholeskyExResult(NamedTuple):
    """A factor, and 0 where it exists."""

    L: Tensor
    info: Tensor


class EigResult(NamedTuple):
    """Of a square matrix."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """Of a symmetric matrix."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class GeqrfResult(NamedTuple):
    """R on and above the diagonal and reflections below it, and their factors."""

    a: Tensor
    tau: Tensor


class InvExResult(NamedTuple):
    """An inverse, and 0 where it exists."""

    inverse: Tensor
    info: Tensor


class LstsqResult(NamedTuple):
    """Of a problem of least squares."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class SVDColumnsResult(NamedTuple):
    """Singular vectors, as columns on both sides, and values."""

    U: Tensor
    S: Tensor
    V: Tensor


class LUResult(NamedTuple):
    """A permutation and triangular factors, of which the product is the matrix."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactorResult(NamedTuple):
    """Both triangles in one matrix, and the rows that were exchanged, counted from 1 (i32)."""

    LU: Tensor
    pivots: Tensor


class LUFactorExResult(NamedTuple):
    """As ``LUFactorResult``, and the number of the first pivot that is 0 (0 for none)."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class QRResult(NamedTuple):
    """An orthogonal and an upper triangular factor."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """Of a determinant."""

    sign: Tensor
    logabsdet: Tensor


class SolveExResult(NamedTuple):
    """A solution, and 0 where it exists."""

    result: Tensor
    info: Tensor


class SVDResult(NamedTuple):
    """Singular vectors and values; those on the right are rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor
