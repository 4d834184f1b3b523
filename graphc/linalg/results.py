"""Named tuples of the results of matrix functions, as in PyTorch."""

from __future__ import annotations

from typing import NamedTuple

from graphc.tensors.tensor import Tensor


class CholeskyExResult(NamedTuple):
    """Factor ``L``, and the LAPACK status ``info`` (0 is success)."""

    L: Tensor
    info: Tensor


class EigResult(NamedTuple):
    """Complex eigenvalues, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """Real ascending eigenvalues, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class GeqrfResult(NamedTuple):
    """Compact QR factorization: R on and above the diagonal, reflections below it, and the factors of these."""

    a: Tensor
    tau: Tensor


class InvExResult(NamedTuple):
    """Inverse, and the LAPACK status ``info`` (0 is success)."""

    inverse: Tensor
    info: Tensor


class LstsqResult(NamedTuple):
    """Least-squares solution, sums of squared residuals, ranks, and singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class SVDColumnsResult(NamedTuple):
    """Singular vectors, as columns on both sides, and singular values."""

    U: Tensor
    S: Tensor
    V: Tensor


class LUResult(NamedTuple):
    """Permutation and triangular factors, whose product is the matrix."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactorResult(NamedTuple):
    """Both triangular factors in one matrix, and the exchanged rows, counted from 1 (i32)."""

    LU: Tensor
    pivots: Tensor


class LUFactorExResult(NamedTuple):
    """The fields of ``LUFactorResult``, and the number of the first zero pivot (0 for none)."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class QRResult(NamedTuple):
    """Orthogonal factor, and upper triangular factor."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """Sign of a determinant, and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


class SolveExResult(NamedTuple):
    """Solution, and the LAPACK status ``info`` (0 is success)."""

    result: Tensor
    info: Tensor


class SVDResult(NamedTuple):
    """Singular vectors and values; the right vectors are rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor
