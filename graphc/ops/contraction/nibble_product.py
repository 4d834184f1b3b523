"""Products of rows, of f32 or of bytes, with a matrix of 4-bit codes in groups that share a scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import bfloat16, float32, float64, int32, narrow, widen
from graphc.base.errors import DTypeError, ShapeError
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.op import ErrorSample, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.contraction.byte_product import quad_multiply_adds
from graphc.ops.contraction.group_product import PANEL, panels_of, product_of_groups, sum_of_groups
from graphc.ops.contraction.matrix_product import matmul_multiply_adds
from graphc.ops.define import define
from graphc.ops.samples import plain

GROUP = 32
"""Neighbours along the summed axis that share a scale. With a 16-bit scale a weight takes 4.5 bits; groups of 64 would
take 4.25 and have errors larger by an eighth (for normally distributed weights)."""
NIBBLES = 8
"""Codes per 32-bit word: code ``i`` of eight neighbours along the summed axis in the bits from ``4 * i`` on."""
_WORDS = GROUP // NIBBLES
_LOW, _SIGN = 0x0F0F0F0F, 0x08080808
"""Masks of the lower nibble of each byte, and of its sign bit."""


def _groups(array: np.ndarray) -> np.ndarray:
    """Reshape f32[K, N] to f32[G, GROUP, N], with zeros at the end of the last group."""
    return np.pad(array, ((0, -array.shape[0] % GROUP), (0, 0))).reshape(-1, GROUP, array.shape[1])


def nibble_scales(array: np.ndarray) -> np.ndarray:
    """Return the scales as bits of bf16[ceil(K/32), N] for f32[K, N]: the element of largest magnitude of each group
    over -8, rounded before codes are computed with it. All codes from -8 to 7 are used then, which makes the mean error
    a tenth smaller than with -7 to 7."""
    groups = _groups(array)
    largest = np.take_along_axis(groups, np.abs(groups).argmax(axis=1)[:, None], axis=1)[:, 0]
    return narrow(largest / np.float32(-8), bfloat16)


def store_nibbles(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (words i32[ceil(K/32)*4, N], ``nibble_scales``) of f32[K, N]. Padding of the last group and codes that are
    not finite are 0."""
    scales = nibble_scales(array)
    with np.errstate(all="ignore"):
        codes = np.rint(_groups(array) / widen(scales)[:, None])
        clipped = np.where(np.isfinite(codes), np.clip(codes, -8, 7), 0).astype(np.int32)
    return words_of(clipped), scales


def words_of(codes: np.ndarray) -> np.ndarray:
    """Pack codes from -8 to 7, integers[..., N] of 8*R rows, into words i32[R, N]."""
    rows = np.ascontiguousarray(codes.reshape(-1, codes.shape[-1]).T).astype(np.uint8)
    pairs = rows[:, 1::2] << 4 | rows[:, ::2] & 15
    return np.ascontiguousarray(pairs.view("<i4").T)


def steps_of(words: np.ndarray) -> np.ndarray:
    """Unpack the codes i32[..., 8*R, N] of words i32[..., R, N]."""
    up = np.arange(28, -4, -4, dtype=np.int32)[:, None]
    return ((words[..., None, :] << up) >> 28).reshape(*words.shape[:-2], -1, words.shape[-1])


def _check(name: str, rows: TensorType, depth: int, words: TensorType, scale: TensorType) -> TensorType:
    if words.dtype is not int32 or scale.dtype is not float32:
        raise DTypeError(f"{name}: {words} and {scale} are not words of codes and scales", remedy="pass i32 and f32")
    *panels, count, width = words.shape if words.rank in (2, 3) else (-1, 0)
    groups = count // _WORDS
    if count % _WORDS or scale.shape != (*panels, groups, width) or rows.rank < 2 or depth != groups * GROUP:
        raise ShapeError(
            f"{name}: {rows}, {words} and {scale} do not fit",
            remedy=f"pass rows[..., G*{GROUP}], words[P,G*{_WORDS},W] and scales[P,G,W], or both without P",
        )
    return TensorType(float32, (*rows.shape[:-1], *panels, width))


# ---- rows of f32


def _infer(a: TensorType, words: TensorType, scale: TensorType) -> TensorType:
    if a.dtype is not float32:
        raise DTypeError(f"nibble_matmul: rows are {a.dtype}", remedy="cast the rows to f32")
    return _check("nibble_matmul", a, a.shape[-1] if a.shape else 0, words, scale)


def _reference(a: np.ndarray, words: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return product_of_groups(a, steps_of(words), scale)


def _lower(c: LowerContext, index: tuple[Index, ...], a: OperandRef, words: OperandRef, scale: OperandRef) -> Scalar:
    nest, row, (*panel, column) = c.nest, index[: len(a.shape) - 1], index[len(a.shape) - 1 :]

    def product(g: Index, q: Index, i: Index) -> Scalar:
        element = c.load(a, (*row, g * GROUP + q * NIBBLES + i))
        lowered = nest.op("shr_unsigned", c.load(words, (*panel, g * _WORDS + q, column)), nest.index(i * 4, int32))
        return element * nest.op("nibble", lowered)

    return sum_of_groups(c, scale, (*panel, column), [_WORDS, NIBBLES], product)


def _random_words(*dims: int) -> np.ndarray:
    return np.random.default_rng(sum(dims)).integers(-(2**31), 2**31, dims).astype(np.int32)


def _samples() -> list[Sample]:
    """Return samples of numbers whose sums are exact in any order."""

    def one(*rows: int, groups: int, columns: int) -> Sample:
        a = np.random.default_rng(columns).integers(-32, 33, (*rows, groups * GROUP)).astype(np.float32) / 16
        return plain(a, *_operands(groups, columns))

    return [one(3, groups=2, columns=20), one(1, groups=3, columns=2 * PANEL), one(2, 5, groups=1, columns=33)]


def _halves(*dims: int) -> np.ndarray:
    return np.random.default_rng(sum(dims)).integers(-6, 7, dims).astype(np.float32) / 2


def _operands(groups: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return words and scales, in panels where there are several."""
    words, scale = _random_words(groups * _WORDS, columns), _halves(groups, columns)
    return (panels_of(words), panels_of(scale)) if columns > PANEL else (words, scale)


nibble_matmul = define(
    "nibble_matmul",
    "Rows times the panels of a matrix of 4-bit codes: sums of products of each group of 32, times the group's scale.",
    "a words scale",
    _infer,
    reference=_reference,
    lower=_lower,
    traits=Trait.PURE | Trait.CONTRACTION,
    multiply_adds=matmul_multiply_adds,
    samples=_samples,
    error_samples=(
        ErrorSample(
            (TensorType(float32, (2, 40)), TensorType(int32, (1, 4, 3)), TensorType(float32, (1, 1, 3))),
            "do not fit",
            {},
        ),
        ErrorSample(
            (TensorType(float32, (2, 32)), TensorType(float32, (1, 4, 3)), TensorType(float32, (1, 1, 3))),
            "not words of codes",
            {},
            DTypeError,
        ),
        ErrorSample(
            (TensorType(float64, (2, 32)), TensorType(int32, (1, 4, 3)), TensorType(float32, (1, 1, 3))),
            "rows are f64",
            {},
            DTypeError,
        ),
    ),
)


# ---- rows of bytes


def _infer_quads(a: TensorType, start: TensorType, words: TensorType, scale: TensorType) -> TensorType:
    if a.dtype is not int32 or start.dtype is not int32:
        raise DTypeError(f"nibble_quad_matmul: {a} and {start} are not quads and their sums", remedy="pass i32")
    if start.shape != (*a.shape[:-1], scale.shape[-2] if scale.rank >= 2 else 0):
        raise ShapeError(
            f"nibble_quad_matmul: {start} is not a sum for each group of {a}", remedy="pass one per row and scale"
        )
    return _check("nibble_quad_matmul", a, 4 * a.shape[-1] if a.shape else 0, words, scale)


def _quad_reference(a: np.ndarray, start: np.ndarray, words: np.ndarray, scale: np.ndarray) -> np.ndarray:
    if words.ndim == 2:
        return _quad_reference(a, start, words[None], scale[None])[..., 0, :]
    quads = np.ascontiguousarray(a).view(np.int8).reshape(*a.shape[:-1], -1, 2, 4)
    rows = quads.swapaxes(-1, -2).reshape(*a.shape[:-1], -1, GROUP).astype(np.float64)
    codes = (steps_of(words) + 8).reshape(len(words), -1, GROUP, words.shape[2])
    sums = np.einsum("...gk,pgkw->...pgw", rows, codes).astype(np.int32) + start[..., None, :, None]
    return (sums.astype(np.float32) * scale).sum(axis=-2, dtype=np.float32)


def _lower_quads(
    c: LowerContext, index: tuple[Index, ...], a: OperandRef, start: OperandRef, words: OperandRef, scale: OperandRef
) -> Scalar:
    nest, rows, (*panel, column) = c.nest, index[: len(a.shape) - 1], index[len(a.shape) - 1 :]

    def group(g: Index) -> Scalar:
        def product(q: Index, half: Index) -> Scalar:
            word = c.load(words, (*panel, g * _WORDS + q, column))
            low = nest.op("shr_unsigned", word, nest.index(half * 4, int32)) & _LOW
            return nest.op("dot4", low ^ _SIGN, c.load(a, (*rows, g * (GROUP // 4) + q * 2 + half)))

        total = nest.reduce("add", c.load(start, (*rows, g)), int32, [_WORDS, 2], product)
        return total.cast(float32) * c.load(scale, (*panel, g, column))

    return nest.reduce("add", 0, float32, [scale.shape[-2]], group)


def _quad_samples() -> list[Sample]:
    def one(*rows: int, groups: int, columns: int) -> Sample:
        quads, start = _random_words(*rows, groups * GROUP // 4), _random_words(*rows, groups) >> 16
        return plain(quads, start, *_operands(groups, columns))

    return [one(3, groups=2, columns=20), one(1, groups=3, columns=2 * PANEL), one(2, 5, groups=1, columns=33)]


def _quad_errors() -> tuple[ErrorSample, ...]:
    a, start, words, scale = (2, 8), (2, 1), (1, 4, 3), (1, 1, 3)

    def types(first: Any, second: tuple[int, ...]) -> tuple[TensorType, ...]:
        return TensorType(first, a), TensorType(int32, second), TensorType(int32, words), TensorType(float32, scale)

    return (
        ErrorSample(types(float32, start), "not quads", {}, DTypeError),
        ErrorSample(types(int32, (2, 2)), "not a sum for each group", {}, ShapeError),
    )


nibble_quad_matmul = define(
    "nibble_quad_matmul",
    "Rows of bytes times the panels of a matrix of 4-bit codes, 8 added to each: for each group of 32 a sum in i32 "
    "from its own start value, times a scale. Bytes of a quad are every other one of eight elements: the even, then "
    "the odd ones.",
    "a start words scale",
    _infer_quads,
    reference=_quad_reference,
    lower=_lower_quads,
    traits=Trait.PURE | Trait.CONTRACTION,
    multiply_adds=quad_multiply_adds,
    samples=_quad_samples,
    error_samples=_quad_errors(),
)
