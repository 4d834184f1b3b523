"""Products of bytes with i32 sums, and of words that hold four bytes (quads) or two widened ones (pairs)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float32, float64, int8, int32, uint8
from graphc.base.errors import DTypeError, ShapeError
from graphc.ir.kernel import scalar
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.op import Attr, Attrs, Dims, ErrorSample, ImageRule, Sample, Trait, Types
from graphc.ir.types import TensorType
from graphc.ops.contraction.convolution import conv, conv_reference
from graphc.ops.contraction.matrix_product import matmul_multiply_adds, product_type
from graphc.ops.define import define
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise
from graphc.ops.reduction import reduce
from graphc.ops.reduction.sliding import DILATION, STRIDE, Sliding
from graphc.ops.rules import check_axis, check_one_dtype
from graphc.ops.samples import floats, plain

Ints = tuple[int, ...]
QUAD, PAIR = 4, 2
"""Bytes of a quad, and of a pair."""
_TRAITS = Trait.PURE | Trait.CONTRACTION

# ---- quads of real numbers


def _infer_quads(x: TensorType, factor: TensorType) -> TensorType:
    check_one_dtype("i8_quads", (x, factor))
    if x.dtype is not float32 or not x.rank or x.shape[-1] % QUAD or factor.shape != (*x.shape[:-1], 1):
        raise ShapeError(
            f"i8_quads: cannot make quads of {x} with factors {factor}",
            remedy=f"pass f32 rows of a multiple of {QUAD} elements, and a factor per row",
        )
    return TensorType(int32, (*x.shape[:-1], x.shape[-1] // QUAD))


def _quads_reference(x: np.ndarray, factor: np.ndarray) -> np.ndarray:
    codes = scalar.cast(np.rint(x * factor), int8)
    return np.ascontiguousarray(codes).view(np.int32)


def _joined(nest: NestBuilder, byte: Callable[[int], Scalar], count: int = QUAD) -> Scalar:
    """Return bytes, by number, as the parts of a word."""
    bits = 32 // count
    total = byte(0).cast(int32) & ((1 << bits) - 1)
    for i in range(1, count):
        part = byte(i).cast(int32)
        # The shift drops all higher bits of the last part.
        part = part if i == count - 1 else part & ((1 << bits) - 1)
        total = total | nest.op("shl", part, nest.const(bits * i, int32))
    return total


def _lower_quads(c: LowerContext, index: tuple[Index, ...], x: OperandRef, factor: OperandRef) -> Scalar:
    scale = c.load(factor, (*index[:-1], Index()))

    def byte(i: int) -> Scalar:
        return c.nest.op("roundeven", c.load(x, (*index[:-1], index[-1] * QUAD + i)) * scale).cast(int8)

    return _joined(c.nest, byte)


i8_quads = define(
    "i8_quads",
    "Elements times a factor per row, rounded to integers from -127 to 127, four neighbours in the bytes of an i32.",
    "x factor",
    _infer_quads,
    reference=_quads_reference,
    vjp=(None, None),
    lower=_lower_quads,
    samples=lambda: [
        plain(floats((3, 8), "float32"), floats((3, 1), "float32", 1, 60)),
        plain(floats((72,), "float32"), floats((1,), "float32", 1, 60)),
        plain(np.array([[np.nan, np.inf, 0.5, -0.5]], np.float32), np.ones((1, 1), np.float32)),
    ],
    error_samples=(
        ErrorSample(
            (TensorType(float32, (2, 6)), TensorType(float32, (2, 1))),
            "cannot make quads of f32[2,6] with factors f32[2,1]",
            {},
            ShapeError,
        ),
        ErrorSample((TensorType(float32, (2, 8)), TensorType(float64, (2, 1))), "f64 (operand 1)", {}, DTypeError),
    ),
)


# ---- words of bytes


def _infer_words(name: str, count: int, x: TensorType, axis: int) -> TensorType:
    check_axis(name, axis, x.rank)
    if x.dtype not in (int8, uint8) or x.shape[axis] % count:
        raise ShapeError(
            f"{name}: {x} has no words of {count} bytes along axis {axis}",
            remedy=f"pass i8 or u8, a multiple of {count}",
        )
    return TensorType(int32, (*x.shape[:axis], x.shape[axis] // count, *x.shape[axis + 1 :]))


def _words_reference(x: np.ndarray, axis: int, count: int) -> np.ndarray:
    last = np.ascontiguousarray(np.moveaxis(x if count == QUAD else x.astype(np.int16), axis, -1)).view(np.int32)
    return np.moveaxis(last, -1, axis).copy()


def _lower_words(c: LowerContext, index: tuple[Index, ...], x: OperandRef, axis: int, count: int) -> Scalar:
    return _joined(c.nest, lambda i: c.load(x, (*index[:axis], index[axis] * count + i, *index[axis + 1 :])), count)


def _bytes(dtype: str, *dims: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(sum(dims)).integers(info.min, info.max + 1, dims).astype(dtype)


def _define_words(name: str, count: int, doc: str) -> Any:
    return define(
        name,
        doc,
        "x",
        partial(_infer_words, name, count),
        attrs=[Attr("axis", "int", "the dimension whose neighbours are joined")],
        reference=partial(_words_reference, count=count),
        lower=partial(_lower_words, count=count),
        samples=lambda: [
            plain(_bytes("uint8", 3, 8), axis=1),
            plain(_bytes("int8", 3, 72), axis=1),
            plain(_bytes("int8", 2, 8, 5), axis=1),
            plain(_bytes("uint8", 0, 4), axis=1),
        ],
        error_samples=(
            ErrorSample((TensorType(uint8, (2, 7)),), f"no words of {count} bytes", {"axis": 1}, ShapeError),
            ErrorSample((TensorType(int32, (2, 8)),), f"no words of {count} bytes", {"axis": 1}, ShapeError),
        ),
    )


byte_quads = _define_words(
    "byte_quads", QUAD, "Four neighbours along an axis in the bytes of an i32, the first one in the lowest."
)
byte_pairs = _define_words(
    "byte_pairs", PAIR, "Two neighbours along an axis, widened to 16 bits, in an i32; the first one in the lower half."
)


def quad_matmul_type(a: TensorType, b: TensorType, unsigned_rows: bool) -> TensorType:
    """Return the type of a product of rows of quads. Raises DTypeError, ShapeError."""
    return _word_matmul_type("quad_matmul", a, b)


def _word_matmul_type(name: str, a: TensorType, b: TensorType) -> TensorType:
    if a.dtype is not int32 or b.dtype is not int32 or b.rank != 2:
        raise DTypeError(f"{name}: {a} and {b} are not rows of words in i32")
    if a.rank < 2 or a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"{name}: inner dimensions differ in {a} and {b}")
    return product_type(name, a, b, False, True)


def _quad_reference(a: np.ndarray, b: np.ndarray, unsigned_rows: bool) -> np.ndarray:
    kinds = (np.uint8, np.int8) if unsigned_rows else (np.int8, np.uint8)
    left, right = (np.ascontiguousarray(x).view(kind) for x, kind in zip((a, b), kinds, strict=True))
    return _exact_product(left, right.T)


def _exact_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply matrices of bytes in floating point, which NumPy multiplies by BLAS, with exact sums of 32 bits."""
    dtype = np.float32 if a.shape[-1] << 15 <= 1 << 24 else np.float64
    total = np.matmul(a.astype(dtype), b.astype(dtype))
    return total.astype(np.int64).astype(np.int32)


def _lower_quad_matmul(
    c: LowerContext, index: tuple[Index, ...], a: OperandRef, b: OperandRef, unsigned_rows: bool
) -> Scalar:
    def product(k: Index) -> Scalar:
        row, column = c.load(a, (*index[:-1], k)), c.load(b, (index[-1], k))
        return c.nest.op("dot4", *((row, column) if unsigned_rows else (column, row)))

    return c.nest.reduce("add", 0, int32, [a.shape[-1]], product)


def _quads(*dims: int) -> np.ndarray:
    return np.random.default_rng(sum(dims)).integers(-(2**31), 2**31, dims).astype(np.int32)


def _quad_samples() -> list[Sample]:
    pairs = [(_quads(3, 5), _quads(7, 5)), (_quads(2, 3, 9), _quads(33, 9)), (_quads(1, 40), _quads(64, 40))]
    return [plain(a, b, unsigned_rows=unsigned) for a, b in pairs for unsigned in (False, True)]


def quad_multiply_adds(types: Types, results: Types, attrs: Attrs) -> int:
    """Return the multiply-adds of a product with rows of quads in the first operand."""
    return QUAD * results[0].size * types[0].shape[-1]


quad_matmul = define(
    "quad_matmul",
    "The sums of products of bytes in rows of a and rows of b, four in an i32 each; those of b or of a are unsigned.",
    "a b",
    quad_matmul_type,
    attrs=[Attr("unsigned_rows", "bool", "bytes of a are unsigned and those of b signed", False, False)],
    reference=_quad_reference,
    lower=_lower_quad_matmul,
    traits=_TRAITS,
    multiply_adds=quad_multiply_adds,
    samples=_quad_samples,
    error_samples=(
        ErrorSample((TensorType(int32, (2, 4)), TensorType(float32, (3, 4))), "not rows of words", {}, DTypeError),
        ErrorSample((TensorType(int32, (2, 4)), TensorType(int32, (3, 5))), "inner dimensions differ", {}, ShapeError),
    ),
)


def _halves(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(np.int16)


def _lower_pair_matmul(c: LowerContext, index: tuple[Index, ...], a: OperandRef, b: OperandRef) -> Scalar:
    def product(k: Index) -> Scalar:
        return c.nest.op("dot2i", c.load(a, (*index[:-1], k)), c.load(b, (index[-1], k)))

    return c.nest.reduce("add", 0, int32, [a.shape[-1]], product)


pair_matmul = define(
    "pair_matmul",
    "The sums of products of rows of a with rows of b; an i32 holds two numbers of 16 bits, widened bytes.",
    "a b",
    partial(_word_matmul_type, "pair_matmul"),
    reference=lambda a, b: _exact_product(_halves(a), _halves(b).T),
    lower=_lower_pair_matmul,
    traits=_TRAITS,
    multiply_adds=lambda types, results, attrs: PAIR * results[0].size * types[0].shape[-1],
    samples=lambda: [
        plain(_byte_pairs(*a), _byte_pairs(*b))
        for a, b in [((3, 5), (7, 5)), ((2, 3, 9), (33, 9)), ((1, 40), (64, 40))]
    ],
    error_samples=(
        ErrorSample((TensorType(int32, (2, 4)), TensorType(int32, (3, 5))), "inner dimensions differ", {}, ShapeError),
    ),
)


def _byte_pairs(*dims: int) -> np.ndarray:
    """Return pairs of numbers from -128 to 255."""
    numbers = np.random.default_rng(sum(dims)).integers(-128, 256, (*dims[:-1], PAIR * dims[-1]))
    return numbers.astype(np.int16).view(np.int32)


def _infer_word_conv(name: str, x: TensorType, weight: TensorType, stride: Ints, dilation: Ints) -> TensorType:
    if x.dtype is not int32 or weight.dtype is not int32:
        raise DTypeError(f"{name}: {x} and {weight} are no words in i32")
    return _conv_type(x, weight, stride, dilation)


def _conv_type(x: TensorType, weight: TensorType, stride: Ints, dilation: Ints) -> TensorType:
    return conv.op.result_types((x, weight), _conv_attrs(len(stride), stride, dilation))[0]


def _conv_attrs(rank: int, stride: Ints, dilation: Ints) -> Attrs:
    return {"stride": stride, "padding": ((0, 0),) * rank, "dilation": dilation, "groups": 1}


def _word_conv_reference(
    x: np.ndarray, weight: np.ndarray, stride: Ints, dilation: Ints, kinds: tuple[Any, Any]
) -> np.ndarray:
    def channels(words: np.ndarray, kind: type[np.generic]) -> np.ndarray:
        last = np.ascontiguousarray(np.moveaxis(words, 1, -1)).view(kind)
        return np.moveaxis(last, -1, 1)

    return _byte_conv_reference(channels(x, kinds[0]), channels(weight, kinds[1]), stride, dilation)


def _lower_word_conv(
    c: LowerContext, index: tuple[Index, ...], x: OperandRef, weight: OperandRef, stride: Ints, dilation: Ints, dot: str
) -> Scalar:
    slide = Sliding(weight.shape[2:], stride, ((0, 0),) * len(stride), dilation)
    n, out, *window = index

    def product(channel: Index, *at: Index) -> Scalar:
        value = c.load(x, (n, channel, *slide.position(window, at)))
        return c.nest.op(dot, value, c.load(weight, (out, channel, *at)))

    return c.nest.reduce("add", 0, int32, [weight.shape[1], *slide.kernel], product)


_CONVOLUTION: dict[str, Any] = {
    "attrs": [STRIDE, DILATION],
    "traits": _TRAITS,
    "image": ImageRule((Dims.IMAGE, Dims.WINDOW), Dims.IMAGE),
}
"""Declarations that both convolutions share."""
_WINDOWS: list[tuple[Ints, Ints, Ints, Ints]] = [
    ((2, 8, 7, 6), (4, 8, 3, 3), (1, 1), (1, 1)),
    ((1, 4, 9, 8), (3, 4, 2, 3), (2, 1), (1, 2)),
    ((1, 12, 5), (5, 12, 1), (1,), (1,)),
    ((1, 36, 4, 17), (33, 36, 3, 3), (1, 1), (1, 1)),
]
"""Shapes of images and filters, stride and dilation of samples."""


def _wrong_types(image: DType, filters: DType, message: str) -> ErrorSample:
    types = TensorType(image, (1, 2, 3)), TensorType(filters, (3, 2, 1))
    return ErrorSample(types, message, {"stride": (1,), "dilation": (1,)}, DTypeError)


def _byte_windows() -> list[Sample]:
    """Return samples of convolutions of bytes, one with a number of channels that fills no word."""
    cases = [*_WINDOWS, ((1, 3, 5, 5), (2, 3, 3, 3), (1, 1), (1, 1))]
    return [plain(_bytes("uint8", *x), _bytes("int8", *w), stride=s, dilation=d) for x, w, s, d in cases]


def _window_multiply_adds(types: Types, results: Types, attrs: Attrs, count: int = 1) -> int:
    """Return the multiply-adds of a convolution of words of ``count`` bytes."""
    return count * results[0].size * prod(types[1].shape[1:])


def _define_word_conv(
    name: str, doc: str, count: int, dot: str, kinds: tuple[Any, Any], words: Callable[..., np.ndarray]
) -> Any:
    return define(
        name,
        doc,
        "x weight",
        partial(_infer_word_conv, name),
        **_CONVOLUTION,
        reference=partial(_word_conv_reference, kinds=kinds),
        lower=partial(_lower_word_conv, dot=dot),
        multiply_adds=partial(_window_multiply_adds, count=count),
        samples=lambda: [
            plain(
                words(x[0], x[1] // count, *x[2:]), words(w[0], w[1] // count, *w[2:]), stride=stride, dilation=dilation
            )
            for x, w, stride, dilation in _WINDOWS
        ],
        error_samples=(_wrong_types(int32, float32, "are no words in i32"),),
    )


quad_conv = _define_word_conv(
    "quad_conv",
    "Convolution of x [batch, quads, *size], of unsigned bytes, with weight [out, quads, *kernel], of signed ones.",
    QUAD,
    "dot4",
    (np.uint8, np.int8),
    _quads,
)
pair_conv = _define_word_conv(
    "pair_conv",
    "Convolution of x [batch, pairs, *size] with weight [out, pairs, *kernel]; an i32 holds two bytes, widened.",
    PAIR,
    "dot2i",
    (np.int16, np.int16),
    _byte_pairs,
)


# ---- products of bytes


def _check_bytes(name: str, a: TensorType, b: TensorType) -> None:
    if a.dtype is not uint8 or b.dtype is not int8:
        raise DTypeError(f"{name}: {a} and {b} are not u8 and i8", remedy="flip the highest bits of the others")


def _infer_byte_matmul(a: TensorType, b: TensorType) -> TensorType:
    _check_bytes("byte_matmul", a, b)
    if b.rank != 2:
        raise ShapeError(f"byte_matmul: {b} is no matrix")
    return TensorType(int32, product_type("byte_matmul", TensorType(int8, a.shape), b).shape)


def _words(x: Any, axis: int, count: int) -> Any:
    """Join neighbours along an axis to words. Zeros complete the last one."""
    missing = -x.shape[axis] % count
    if missing:
        zeros = (0,) * len(x.shape)
        x = shape.pad(x, low=zeros, high=(*zeros[:axis], missing, *zeros[axis + 1 :]), interior=zeros, value=0)
    return (byte_quads if count == QUAD else byte_pairs)(x, axis=axis)


def decompose_byte_matmul(a: Any, b: Any, count: int = QUAD) -> Any:
    """Return the product of words of ``count`` bytes."""
    columns = shape.transpose(_words(b, 0, count), permutation=(1, 0))
    rows = _words(a, len(a.shape) - 1, count)
    return quad_matmul(rows, columns, unsigned_rows=True) if count == QUAD else pair_matmul(rows, columns)


byte_matmul = define(
    "byte_matmul",
    "Product of u8 rows [..., m, k] with an i8 matrix [k, n]. Sums are i32.",
    "a b",
    _infer_byte_matmul,
    reference=_exact_product,
    decompose=decompose_byte_matmul,
    traits=_TRAITS,
    multiply_adds=matmul_multiply_adds,
    samples=lambda: [
        plain(_bytes("uint8", 3, 20), _bytes("int8", 20, 7)),
        plain(_bytes("uint8", 2, 3, 37), _bytes("int8", 37, 33)),
        plain(np.full((2, 600), 255, np.uint8), np.full((600, 3), -128, np.int8)),
        plain(_bytes("uint8", 2, 0), _bytes("int8", 0, 3)),
    ],
    error_samples=(
        ErrorSample((TensorType(int8, (2, 4)), TensorType(int8, (4, 3))), "not u8 and i8", {}, DTypeError),
        ErrorSample((TensorType(uint8, (2, 4)), TensorType(int8, (1, 4, 3))), "is no matrix", {}, ShapeError),
        ErrorSample((TensorType(uint8, (2, 4)), TensorType(int8, (5, 3))), "inner dimensions differ", {}, ShapeError),
    ),
)


def _infer_byte_conv(x: TensorType, weight: TensorType, stride: Ints, dilation: Ints) -> TensorType:
    _check_bytes("byte_conv", x, weight)
    return TensorType(int32, _conv_type(TensorType(int8, x.shape), weight, stride, dilation).shape)


def _byte_conv_reference(x: np.ndarray, weight: np.ndarray, stride: Ints, dilation: Ints) -> np.ndarray:
    attrs = _conv_attrs(len(stride), stride, dilation)
    total = conv_reference(x.astype(np.float64), weight.astype(np.float64), **attrs)
    return total.astype(np.int64).astype(np.int32)


def decompose_byte_conv(x: Any, weight: Any, stride: Ints, dilation: Ints, count: int = QUAD) -> Any:
    """Return the convolution of words of ``count`` bytes."""
    convolve = quad_conv if count == QUAD else pair_conv
    return convolve(_words(x, 1, count), _words(weight, 1, count), stride=stride, dilation=dilation)


byte_conv = define(
    "byte_conv",
    "Convolution of u8 x [batch, channels, *size] with i8 weight [out, channels, *kernel]. Sums are i32.",
    "x weight",
    _infer_byte_conv,
    **_CONVOLUTION,
    reference=_byte_conv_reference,
    decompose=decompose_byte_conv,
    multiply_adds=_window_multiply_adds,
    samples=_byte_windows,
    error_samples=(_wrong_types(int8, int8, "not u8 and i8"),),
)


def _infer_real(x: TensorType, weight: TensorType, stride: Ints, dilation: Ints, zero: float) -> TensorType:
    _check_bytes("real_byte_conv", x, weight)
    return TensorType(float32, _conv_type(TensorType(int8, x.shape), weight, stride, dilation).shape)


def _real_reference(x: np.ndarray, weight: np.ndarray, stride: Ints, dilation: Ints, zero: float) -> np.ndarray:
    return _byte_conv_reference(x - np.float64(zero), weight, stride, dilation).astype(np.float32)


def decompose_real_byte_conv(x: Any, weight: Any, stride: Ints, dilation: Ints, zero: float, count: int = QUAD) -> Any:
    """Return the exact sums of a convolution of words of ``count`` bytes, as f32."""
    total = decompose_byte_conv(x, weight, stride, dilation, count)
    if zero:
        sums = elementwise.cast(reduce.sum(weight, axes=tuple(range(1, len(weight.shape)))), dtype=int32)
        column = shape.reshape(sums, shape=(weight.shape[0], *(1,) * len(stride)))
        total = elementwise.add(total, elementwise.mul(column, -int(zero)))
    return elementwise.cast(total, dtype=float32)


_REAL_CONVOLUTION: dict[str, Any] = {
    **_CONVOLUTION,
    "attrs": [STRIDE, DILATION, Attr("zero", "float", "code of 0.0", 0.0, False)],
}
real_byte_conv = define(
    "real_byte_conv",
    "Convolution of x - zero, x u8 [batch, channels, *size], with i8 weight [out, channels, *kernel], as f32: exact "
    "sums, or those of f32 products where these are faster.",
    "x weight",
    _infer_real,
    **_REAL_CONVOLUTION,
    reference=_real_reference,
    decompose=decompose_real_byte_conv,
    multiply_adds=_window_multiply_adds,
    samples=lambda: [
        *_byte_windows(),
        plain(_bytes("uint8", 1, 3, 5, 5), _bytes("int8", 2, 3, 3, 3), stride=(1, 1), dilation=(1, 1), zero=117.0),
    ],
    error_samples=(_wrong_types(int8, int8, "not u8 and i8"),),
)
