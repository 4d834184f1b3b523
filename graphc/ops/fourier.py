"""Discrete Fourier transforms along one axis, not scaled: of complex numbers, of real ones, and back to real ones."""

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
from graphc.ops.define import define
from graphc.ops.elementwise import add, mul, neg, sub
from graphc.ops.matrix_product import matmul
from graphc.ops.parts_of_complex import Complex
from graphc.ops.rules import check_axis, check_kind, show
from graphc.ops.samples import complexes, floats
from graphc.ops.shape import concat, flip, pad, reshape, slice, transpose

LARGEST_MATRIX = 64
"""Points of a transform that is one product with a matrix; longer ones are made of shorter ones. By measurement on
AVX-512 in f32: with 16, 32, 64 and 128 transforms of 256 to 65,536 points take the same time within a tenth."""
LARGEST_PRIME = 256
"""As many, where shorter ones cannot make them: a product takes 4 n multiply-adds per point, the convolution instead of
it the time of about 1400, and the matrix is of at most 1 MB in f32."""
_AXIS = Attr("axis", "int", "the dimension along which to transform")
_C, _F = TensorType(complex64, (2, 3)), TensorType(float32, (2, 3))


def bins_of(count: int) -> int:
    """How many numbers of the transform of so many real ones tell the others, which are their conjugates."""
    return count // 2 + 1


# ---- transforms as products with matrices


def _waves(rows: int, columns: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """cos and -sin of ``2 pi i j / count`` for so many i and j, f64."""
    angles = np.outer(np.arange(rows), np.arange(columns)) % count * (2 * np.pi / count)
    return np.cos(angles), -np.sin(angles)


def _constant(array: np.ndarray, like: Any) -> Any:
    return dispatch.current().constant(np.ascontiguousarray(array, like.dtype.numpy))


def _multiplied(x: Complex, matrix: Complex) -> Complex:
    """Elements of a complex tensor times those of a complex constant."""
    return Complex(
        sub(mul(x.real, matrix.real), mul(x.imag, matrix.imag)), add(mul(x.real, matrix.imag), mul(x.imag, matrix.real))
    )


def _constants(numbers: np.ndarray, like: Any) -> Complex:
    return Complex(_constant(np.real(numbers), like), _constant(np.imag(numbers), like))


def _swapped(x: Any) -> Any:
    """The last two dimensions exchanged."""
    rank = len(x.shape)
    return transpose(x, permutation=(*range(rank - 2), rank - 1, rank - 2))


def _columns(x: Any, first: int, count: int) -> Any:
    """So many elements along the last dimension."""
    rank = len(x.shape)
    starts, stops = (*(0,) * (rank - 1), first), (*x.shape[:-1], first + count)
    return slice(x, starts=starts, stops=stops, steps=(1,) * rank)


def _on_both(function: Any, x: Complex, *args: Any) -> Complex:
    return Complex(function(x.real, *args), function(x.imag, *args))


def _transformed(real: Any, imag: Any, bins: int) -> Complex:
    """The first bins of the transform of the last dimension; ``imag`` is None where all of it is 0."""
    count = real.shape[-1]
    inner = _divisor(count)
    if count <= (LARGEST_PRIME if inner == 1 else LARGEST_MATRIX):
        return _by_matrix(real, imag, bins)
    if inner == 1:
        return _on_both(_columns, _bluestein(real, imag), 0, bins)
    outer = count // inner
    parts = [None if p is None else _swapped(reshape(p, shape=(*p.shape[:-1], outer, inner))) for p in (real, imag)]
    first = _transformed(parts[0], parts[1], outer)
    cosine, sine = _waves(inner, outer, count)
    turned = _on_both(_swapped, _multiplied(first, _constants(cosine + 1j * sine, real)))
    found = _on_both(_swapped, _transformed(turned.real, turned.imag, inner))
    return _on_both(lambda part: _columns(reshape(part, shape=real.shape), 0, bins), found)


def _rows_times(x: Any, matrix: np.ndarray) -> Any:
    """The last dimension times a constant matrix."""
    rows = reshape(x, shape=(1, *x.shape)) if len(x.shape) == 1 else x
    found = matmul(rows, _constant(matrix, x))
    return found if rows is x else reshape(found, shape=found.shape[1:])


def _by_matrix(real: Any, imag: Any, bins: int) -> Complex:
    """Rows times waves, as one product of real matrices."""
    cosine, sine = _waves(real.shape[-1], bins, real.shape[-1])
    if imag is None:
        found = _rows_times(real, np.concatenate([cosine, sine], 1))
    else:
        waves = np.block([[cosine, sine], [-sine, cosine]])
        found = _rows_times(concat(real, imag, axis=len(real.shape) - 1), waves)
    return Complex(_columns(found, 0, bins), _columns(found, bins, bins))


def _divisor(count: int) -> int:
    """A divisor near the root of a number of points (Cooley and Tukey, 1965)."""
    return next(d for d in range(math.isqrt(count), 0, -1) if count % d == 0)


def _bluestein(real: Any, imag: Any) -> Complex:
    """A prime number of points by a longer convolution (Bluestein, 1970): with w(k) = exp(-pi i k k / n), the transform
    is w(k) times the sum of x(j) w(j) conj(w(k - j))."""
    count = real.shape[-1]
    length = 1 << (2 * count - 2).bit_length()
    places = np.arange(count)
    chirp = np.exp(-1j * np.pi / count * (places * places % (2 * count)))
    kernel = np.zeros(length, np.complex128)
    kernel[:count] = chirp.conj()
    kernel[length - count + 1 :] = chirp[1:].conj()[::-1]
    w = _constants(chirp, real)
    x = _multiplied(Complex(real, imag), w) if imag is not None else Complex(mul(real, w.real), mul(real, w.imag))
    longer = _on_both(_lengthened, x, length)
    there = _transformed(longer.real, longer.imag, length)
    product = _multiplied(there, _constants(np.fft.fft(kernel) / length, real))
    back = _transformed(product.imag, product.real, length)  # the inverse
    return _multiplied(Complex(_columns(back.imag, 0, count), _columns(back.real, 0, count)), w)


def _lengthened(x: Any, length: int) -> Any:
    none = (0,) * (len(x.shape) - 1)
    return pad(x, low=(*none, 0), high=(*none, length - x.shape[-1]), interior=(*none, 0), value=0)


def _along(x: Any, axis: int, back: bool = False) -> Any:
    """An axis as the last one, or the last one there."""
    last = len(x.shape) - 1
    order = [d for d in range(last + 1) if d != axis]
    if back:
        order = list(range(last))
        order.insert(axis, last)
        return transpose(x, permutation=order)
    return transpose(x, permutation=(*order, axis))


def _dft_of_parts(x: Complex, axis: int, inverse: bool) -> Complex:
    """The inverse is the transform with real and imaginary parts changed for each other, before and after."""
    given = _on_both(_along, x, axis)
    if not inverse:
        return _on_both(_along, _transformed(given.real, given.imag, x.shape[axis]), axis, True)
    found = _transformed(given.imag, given.real, x.shape[axis])
    return Complex(_along(found.imag, axis, True), _along(found.real, axis, True))


def _rdft_of_parts(x: Any, axis: int) -> Complex:
    return _on_both(_along, _transformed(_along(x, axis), None, bins_of(x.shape[axis])), axis, True)


def _irdft_of_parts(x: Complex, axis: int, count: int) -> Any:
    """Of few points a product with a matrix, else the transform of all numbers, of which the rest are conjugates."""
    given = _on_both(_along, x, axis)
    bins = bins_of(count)
    if count <= LARGEST_MATRIX:
        cosine, sine = _waves(bins, count, count)
        waves = np.concatenate([cosine, sine]) * np.tile(_weights(count), 2)[:, None]
        both = concat(given.real, given.imag, axis=len(x.shape) - 1)
        return _along(_rows_times(both, waves), axis, True)
    last = len(x.shape) - 1
    rest = [flip(_columns(part, 1, count - bins), axes=(last,)) for part in (given.real, given.imag)]
    ends = _weights(count) == 1  # of which the imaginary part does not count
    imag = mul(given.imag, _constant(np.where(ends, 0.0, 1.0), x.real))
    whole = Complex(concat(given.real, rest[0], axis=last), concat(imag, neg(rest[1]), axis=last))
    return _along(_transformed(whole.imag, whole.real, count).imag, axis, True)


def _weights(count: int) -> np.ndarray:
    """How often each number of the half of a transform counts: those whose conjugates are left out twice."""
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
        raise ShapeError(f"{name}: axis {axis} of {show(x.shape)} has no elements", remedy="at least one point")


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
        raise ShapeError(f"{what} {x.shape[axis]}", remedy="as many as count // 2 + 1")
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
    "The inverse of rdft without division by n: real numbers, as many as count says.",
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
