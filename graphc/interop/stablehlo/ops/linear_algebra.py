"""Rules of factorizations, of LAPACK's functions under the names of XLA for CPUs, and of Fourier transforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphc.base.dtypes import int32
from graphc.interop.stablehlo.call import OperationCall
from graphc.interop.stablehlo.registry import rule, target
from graphc.linalg import reflections, spectra, systems
from graphc.ops.movement import shape as moves
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import functions
from graphc.tensors.spectra import fourier
from graphc.tensors.tensor import Tensor


def _adjoint(x: Tensor) -> Tensor:
    """Return the conjugate transpose of matrices."""
    swapped = x.transpose(-1, -2)
    return swapped.conj() if x.dtype.is_complex else swapped


def _no_fault(x: Tensor) -> Tensor:
    """Return LAPACK's status of success for each matrix."""
    return moves.filled(0, int32, tuple(x.shape[:-2]))


def _letter(call: OperationCall, name: str, default: str) -> str:
    """Return an option of a LAPACK function, which the text holds as the code of its letter."""
    config = call.attributes.get("mhlo.backend_config", call.attributes.get("backend_config"))
    code = config.get(name) if isinstance(config, dict) else None
    return chr(code) if isinstance(code, int) and 0 < code < 128 else default


# ---- operations


@rule("cholesky")
def cholesky(call: OperationCall, x: Tensor) -> Tensor:
    """Return the factor of the lower or upper triangle, which alone is read."""
    lower = call.flag("lower")
    result = _factor(x if lower else _adjoint(x))[0]
    return result if lower else _adjoint(result)


def _factor(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower factor, NaN where the matrix is not positive definite, and LAPACK's status."""
    result = systems.cholesky_ex(x)
    failed = ew.ne(result.info, 0).reshape((*x.shape[:-2], 1, 1))
    return ew.where(failed, float("nan"), result.L), result.info


@rule("triangular_solve")
def triangular_solve(call: OperationCall, a: Tensor, b: Tensor) -> Tensor:
    """Solve ``op(a) x = b``, or ``x op(a) = b``, for a triangular ``a``."""
    lower, form = call.flag("lower"), call.word("transpose_a", "NO_TRANSPOSE")
    return _solved(a, b, call.flag("left_side"), lower, form, call.flag("unit_diagonal"))


def _solved(a: Tensor, b: Tensor, left: bool, lower: bool, form: str, unit: bool) -> Tensor:
    if form != "NO_TRANSPOSE":
        a, lower = _adjoint(a) if form == "ADJOINT" else a.transpose(-1, -2), not lower
    triangle = functions.tril(a) if lower else functions.triu(a)
    return systems.solve_triangular(triangle, b, upper=not lower, left=left, unitriangular=unit)


_TRANSFORMS: Mapping[str, Any] = {
    "FFT": fourier.fftn,
    "IFFT": fourier.ifftn,
    "RFFT": fourier.rfftn,
    "IRFFT": fourier.irfftn,
}


@rule("fft")
def fft(call: OperationCall, x: Tensor) -> Tensor:
    """Transform the last dimensions."""
    length, kind = call.ints("fft_length"), call.word("fft_type")
    axes = tuple(range(-len(length), 0))
    function = _TRANSFORMS.get(kind)
    if function is None:
        raise call.unsupported(f"the transform {kind!r}")
    return function(x, s=length, dim=axes)


# ---- functions of LAPACK


def _lapack(name: str, letters: str = "sdcz") -> Any:
    return target(*[f"lapack_{letter}{name}_ffi" for letter in letters])


@_lapack("getrf")
def lu(call: OperationCall, x: Tensor) -> tuple[Tensor, ...]:
    """Factor with row exchanges; positions count from 1."""
    result = systems.lu_factor_ex(x)
    return result.LU, ew.cast(result.pivots, dtype=int32), ew.cast(result.info, dtype=int32)


@_lapack("potrf")
def cholesky_of_triangle(call: OperationCall, x: Tensor) -> tuple[Tensor, Tensor]:
    lower = _letter(call, "uplo", "L") == "L"
    factor, info = _factor(x if lower else _adjoint(x))
    return factor if lower else _adjoint(factor), ew.cast(info, dtype=int32)


@_lapack("geqrf")
def householder_qr(call: OperationCall, x: Tensor) -> tuple[Tensor, Tensor]:
    result = reflections.geqrf(x)
    return result.a, result.tau


@_lapack("orgqr", "sd")
@_lapack("ungqr", "cz")
def reflections_product(call: OperationCall, a: Tensor, tau: Tensor) -> Tensor:
    return reflections.householder_product(a, tau)


@_lapack("syevd", "sd")
@_lapack("heevd", "cz")
def symmetric_eigenvalues(call: OperationCall, x: Tensor) -> tuple[Tensor, ...]:
    """Return eigenvectors, whose signs are those of graphc, and ascending eigenvalues."""
    result = spectra.eigh(x, UPLO=_letter(call, "uplo", "L"))
    return result.eigenvectors, result.eigenvalues, _no_fault(x)


@_lapack("gesdd")
def singular_values(call: OperationCall, x: Tensor) -> tuple[Tensor, ...]:
    """Return singular values and vectors, whose signs are those of graphc. The first result is the work space."""
    mode = _letter(call, "mode", "A")
    if mode == "N":
        types = call.operation.types
        empty = [moves.filled(0, t.dtype, t.shape) for t in types[2:4]]
        return x, spectra.svdvals(x), *empty, _no_fault(x)
    result = spectra.svd(x, full_matrices=mode == "A")
    return x, result.S, result.U, result.Vh, _no_fault(x)


@_lapack("trsm")
def triangular_solve_of_blas(call: OperationCall, a: Tensor, b: Tensor) -> Tensor:
    """Solve with a triangular matrix."""
    form = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[_letter(call, "trans_x", "N")]
    left, lower = _letter(call, "side", "L") == "L", _letter(call, "uplo", "L") == "L"
    return _solved(a, b, left, lower, form, _letter(call, "diag", "N") == "U")
