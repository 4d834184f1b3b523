"""Discrete Fourier transforms along one axis, without scaling: complex, real to complex, and complex to real."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.base.dtypes import complex64, float32
from graphc.base.errors import DTypeError, IndexRangeError, ShapeError
from graphc.ir.op import Attr, ErrorSample, Sample
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.batch import along_axis
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.define import define
from graphc.ops.movement.shape import concat, flip, pad, reshape, slice, transpose
from graphc.ops.pointwise.elementwise import add, mul, neg, sub
from graphc.ops.pointwise.parts_of_complex import Complex
from graphc.ops.rules import check_axis, check_kind, show
from graphc.ops.samples import complexes, floats

LARGEST_MATRIX = 64
"""Points of the largest transform that is a single matrix product; longer ones are composed. Measured on AVX-512 in
f32: with 16, 32, 64 and 128, transforms of 256 to 65,536 points take the same time within a tenth."""
LARGEST_PRIME = 256
"""The same limit for sizes without a suitable divisor. A product takes 4 n multiply-adds per point; the convolution
that replaces it takes the time of about 1400, and the matrix has at most 1 MB in f32."""
_AXIS = Attr("axis", "int", "the dimension along which to transform")
_C, _F = TensorType(complex64, (2, 3)), TensorType(float32, (2, 3))


def bins_of(count: int) -> int:
    """Return the number of independent bins of a real transform; the others are their conjugates."""
    return count // 2 + 1


# ---- transforms as products with matrices


def _waves(rows: int, columns: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and -sin of ``2 pi i j / count`` for ``rows`` i and ``columns`` j, in f64."""
    angles = np.outer(np.arange(rows), np.arange(columns)) % count * (2 * np.pi / count)
    return np.cos(angles), -np.sin(angles)


def _constant(array: np.ndarray, like: Any) -> Any:
    return dispatch.current().constant(np.ascontiguousarray(array, like.dtype.numpy))


def _multiplied(x: Complex, matrix: Complex) -> Complex:
    """Multiply a complex tensor by a complex constant, element by element."""
    return Complex(
        sub(mul(x.real, matrix.real), mul(x.imag, matrix.imag)), add(mul(x.real, matrix.imag), mul(x.imag, matrix.real))
    )


def _constants(numbers: np.ndarray, like: Any) -> Complex:
    return Complex(_constant(np.real(numbers), like), _constant(np.imag(numbers), like))


def _swapped(x: Any) -> Any:
    """Exchange the last two dimensions."""
    rank = len(x.shape)
    return transpose(x, permutation=(*range(rank - 2), rank - 1, rank - 2))


def _columns(x: Any, first: int, count: int) -> Any:
    """Return ``count`` elements from ``first`` on along the last dimension."""
    rank = len(x.shape)
    starts, stops = (*(0,) * (rank - 1), first), (*x.shape[:-1], first + count)
    return slice(x, starts=starts, stops=stops, steps=(1,) * rank)


def _on_both(function: Any, x: Complex, *args: Any) -> Complex:
    return Complex(function(x.real, *args), function(x.imag, *args))


def _transformed(real: Any, imag: Any, bins: int) -> Complex:
    """Return the first ``bins`` bins of the transform of the last dimension; ``imag`` is None for real input."""
    count = real.shape[-1]
    inner = _divisor(count)
    if count <= (LARGEST_PRIME if inner == 1 else LARGEST_MATRIX):
        return _by_matrix(real, imag, bins)
    if inner == 1:
        return _on_both(_columns, _bluestein(real, imag), 0, bins)
    outer = count // inner
    grids = [None if p is None else _swapped(reshape(p, shape=(*p.shape[:-1], outer, inner))) for p in (real, imag)]
    first = _transformed(grids[0], grids[1], outer)
    cosine, sine = _waves(inner, outer, count)
    twiddled = _on_both(_swapped, _multiplied(first, _constants(cosine + 1j * sine, real)))
    transformed = _on_both(_swapped, _transformed(twiddled.real, twiddled.imag, inner))
    return _on_both(lambda component: _columns(reshape(component, shape=real.shape), 0, bins), transformed)


def _rows_times(x: Any, matrix: np.ndarray) -> Any:
    """Multiply the last dimension by a constant matrix."""
    rows = reshape(x, shape=(1, *x.shape)) if len(x.shape) == 1 else x
    product = matmul(rows, _constant(matrix, x))
    return product if rows is x else reshape(product, shape=product.shape[1:])


def _by_matrix(real: Any, imag: Any, bins: int) -> Complex:
    """Multiply rows by waves, as one product of real matrices."""
    cosine, sine = _waves(real.shape[-1], bins, real.shape[-1])
    if imag is None:
        product = _rows_times(real, np.concatenate([cosine, sine], 1))
    else:
        waves = np.block([[cosine, sine], [-sine, cosine]])
        product = _rows_times(concat(real, imag, axis=len(real.shape) - 1), waves)
    return Complex(_columns(product, 0, bins), _columns(product, bins, bins))


def _divisor(count: int) -> int:
    """Return a divisor near the square root of a number of points (Cooley and Tukey, 1965)."""
    return next(d for d in range(math.isqrt(count), 0, -1) if count % d == 0)


def _bluestein(real: Any, imag: Any) -> Complex:
    """Transform a prime number of points by a longer convolution (Bluestein, 1970). With w(k) = exp(-pi i k k / n), the
    transform is w(k) times the sum of x(j) w(j) conj(w(k - j))."""
    count = real.shape[-1]
    length = 1 << (2 * count - 2).bit_length()
    indices = np.arange(count)
    chirp = np.exp(-1j * np.pi / count * (indices * indices % (2 * count)))
    kernel = np.zeros(length, np.complex128)
    kernel[:count] = chirp.conj()
    kernel[length - count + 1 :] = chirp[1:].conj()[::-1]
    w = _constants(chirp, real)
    x = _multiplied(Complex(real, imag), w) if imag is not None else Complex(mul(real, w.real), mul(real, w.imag))
    longer = _on_both(_lengthened, x, length)
    spectrum = _transformed(longer.real, longer.imag, length)
    product = _multiplied(spectrum, _constants(np.fft.fft(kernel) / length, real))
    inverse = _transformed(product.imag, product.real, length)  # Swapped parts invert the transform.
    return _multiplied(Complex(_columns(inverse.imag, 0, count), _columns(inverse.real, 0, count)), w)


def _lengthened(x: Any, length: int) -> Any:
    zeros = (0,) * (len(x.shape) - 1)
    return pad(x, low=(*zeros, 0), high=(*zeros, length - x.shape[-1]), interior=(*zeros, 0), value=0)


def _along(x: Any, axis: int, back: bool = False) -> Any:
    """Move an axis to the end, or back from there."""
    last = len(x.shape) - 1
    order = [d for d in range(last + 1) if d != axis]
    if back:
        order = list(range(last))
        order.insert(axis, last)
        return transpose(x, permutation=order)
    return transpose(x, permutation=(*order, axis))


def _dft_of_parts(x: Complex, axis: int, inverse: bool) -> Complex:
    """Transform; the inverse exchanges real and imaginary parts before and after."""
    lines = _on_both(_along, x, axis)
    if not inverse:
        return _on_both(_along, _transformed(lines.real, lines.imag, x.shape[axis]), axis, True)
    transformed = _transformed(lines.imag, lines.real, x.shape[axis])
    return Complex(_along(transformed.imag, axis, True), _along(transformed.real, axis, True))


def _rdft_of_parts(x: Any, axis: int) -> Complex:
    return _on_both(_along, _transformed(_along(x, axis), None, bins_of(x.shape[axis])), axis, True)


def _irdft_of_parts(x: Complex, axis: int, count: int) -> Any:
    """Invert few points by a matrix product, and more by the transform of all bins, restored from conjugates."""
    lines = _on_both(_along, x, axis)
    bins = bins_of(count)
    if count <= LARGEST_MATRIX:
        cosine, sine = _waves(bins, count, count)
        waves = np.concatenate([cosine, sine]) * np.tile(_weights(count), 2)[:, None]
        both = concat(lines.real, lines.imag, axis=len(x.shape) - 1)
        return _along(_rows_times(both, waves), axis, True)
    last = len(x.shape) - 1
    rest = [flip(_columns(component, 1, count - bins), axes=(last,)) for component in (lines.real, lines.imag)]
    ends = _weights(count) == 1  # Their imaginary parts do not count.
    imag = mul(lines.imag, _constant(np.where(ends, 0.0, 1.0), x.real))
    spectrum = Complex(concat(lines.real, rest[0], axis=last), concat(imag, neg(rest[1]), axis=last))
    return _along(_transformed(spectrum.imag, spectrum.real, count).imag, axis, True)


def _weights(count: int) -> np.ndarray:
    """Return the multiplicity of each bin of a half transform: 2 for bins whose conjugates are left out."""
    weights = np.full(bins_of(count), 2.0)
    weights[0] = 1
    weights[-1] = 1 if count % 2 == 0 or count == 1 else 2
    return weights


def _weighed(x: Any, axis: int, weights: np.ndarray) -> Any:
    shape = [1] * len(x.shape)
    shape[axis] = len(weights)
    numbers = dispatch.current().constant(np.asarray(weights.reshape(shape), x.dtype.numpy))
    return mul(x, numbers)


# ---- the ops


def _check(name: str, x: TensorType, axis: int, kinds: str) -> None:
    check_kind(name, 0, x.dtype, kinds)
    check_axis(name, axis, x.rank)
    if not x.shape[axis]:
        raise ShapeError(f"{name}: axis {axis} of {show(x.shape)} has no elements", remedy="pass at least one point")


def _with(x: TensorType, axis: int, extent: int, dtype: Any) -> TensorType:
    return TensorType(dtype, (*x.shape[:axis], extent, *x.shape[axis + 1 :]))


def _infer_dft(x: TensorType, axis: int, inverse: bool) -> TensorType:
    _check("dft", x, axis, "c")
    return x


def _infer_rdft(x: TensorType, axis: int) -> TensorType:
    _check("rdft", x, axis, "f")
    return _with(x, axis, bins_of(x.shape[axis]), x.dtype.complex)


def _infer_irdft(x: TensorType, axis: int, count: int) -> TensorType:
    _check("irdft", x, axis, "c")
    if count < 1 or x.shape[axis] != bins_of(count):
        what = f"irdft: {count} points have {bins_of(count)} numbers of their transform, axis {axis} has"
        raise ShapeError(f"{what} {x.shape[axis]}", remedy="pass count // 2 + 1 bins")
    return _with(x, axis, count, x.dtype.real)


dft = define(
    "dft",
    "The discrete Fourier transform along an axis: sums of x(j) exp(-2 pi i j k / n), with the other sign for inverse; "
    "none is divided by n.",
    "x",
    _infer_dft,
    attrs=[_AXIS, Attr("inverse", "bool", "with exp(2 pi i j k / n)", False, False)],
    reference=lambda x, axis, inverse: (
        np.fft.ifft(x, axis=axis, norm="forward") if inverse else np.fft.fft(x, axis=axis)
    ),
    vjp=(lambda g, result, x, axis, inverse: dft(g, axis=axis, inverse=not inverse),),
    complex=_dft_of_parts,
    batch=along_axis,
    samples=lambda: [
        Sample((complexes((3, 5)),), {"axis": 1}),
        Sample((complexes((6, 2), "complex64"),), {"axis": 0, "inverse": True}),
        Sample((complexes((1,)),), {"axis": 0}),
        Sample((complexes((0, 4)),), {"axis": 1}),
    ],
    error_samples=(
        ErrorSample((_F,), "operand 0 is floating-point (f32)", {"axis": 0}, DTypeError),
        ErrorSample((_C,), "axis 2 is out of range", {"axis": 2}, IndexRangeError),
        ErrorSample((TensorType(complex64, (0,)),), "axis 0 of [0] has no elements", {"axis": 0}, ShapeError),
    ),
)
rdft = define(
    "rdft",
    "The first n // 2 + 1 numbers of the discrete Fourier transform of n real numbers along an axis.",
    "x",
    _infer_rdft,
    attrs=[_AXIS],
    reference=lambda x, axis: np.fft.rfft(x, axis=axis),
    vjp=(
        lambda g, result, x, axis: irdft(
            _weighed(g, axis, 1 / _weights(x.shape[axis])), axis=axis, count=x.shape[axis]
        ),
    ),
    complex=_rdft_of_parts,
    batch=along_axis,
    samples=lambda: [
        Sample((floats((3, 5)),), {"axis": 1}),
        Sample((floats((6, 2), "float32"),), {"axis": 0}),
        Sample((floats((1,)),), {"axis": 0}),
        Sample((floats((0, 4)),), {"axis": 1}),
    ],
    error_samples=(
        ErrorSample((_C,), "operand 0 is complex (c64)", {"axis": 0}, DTypeError),
        ErrorSample((_F,), "axis 2 is out of range", {"axis": 2}, IndexRangeError),
    ),
)
irdft = define(
    "irdft",
    "The inverse of rdft without division by n: count real numbers.",
    "x",
    _infer_irdft,
    attrs=[_AXIS, Attr("count", "int", "the number n of points")],
    reference=lambda x, axis, count: np.fft.irfft(x, count, axis, norm="forward"),
    vjp=(lambda g, result, x, axis, count: _weighed(rdft(g, axis=axis), axis, _weights(count)),),
    complex=_irdft_of_parts,
    batch=along_axis,
    samples=lambda: [
        Sample((complexes((3, 4)),), {"axis": 1, "count": 6}),
        Sample((complexes((3, 2), "complex64"),), {"axis": 0, "count": 5}),
        Sample((complexes((1,)),), {"axis": 0, "count": 1}),
    ],
    error_samples=(
        ErrorSample((_F,), "operand 0 is floating-point (f32)", {"axis": 0, "count": 2}, DTypeError),
        ErrorSample((_C,), "6 points have 4 numbers", {"axis": 1, "count": 6}, ShapeError),
    ),
)
