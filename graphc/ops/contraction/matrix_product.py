"""Matrix products: batched, broadcasting, with either operand transposed; also of pairs of bf16."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bfloat16x2, float32, float64, halves, int32, pair
from graphc.base.errors import DTypeError, IndexRangeError, ShapeError
from graphc.base.sizes.size import is_one
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.op import Attr, Attrs, ErrorSample, OnParts, OpDef, Sample, Trait, Types, ZeroSign
from graphc.ir.types import TensorType
from graphc.ops.batch import BatchedOperand
from graphc.ops.define import define
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise
from graphc.ops.pointwise.parts_of_complex import holomorphic
from graphc.ops.rules import broadcast, check_axis, check_kind
from graphc.ops.samples import floats, plain


def _infer(a: TensorType, b: TensorType, transpose_a: bool, transpose_b: bool) -> TensorType:
    return product_type("matmul", a, b, transpose_a, transpose_b)


def product_type(
    name: str, a: TensorType, b: TensorType, transpose_a: bool = False, transpose_b: bool = False
) -> TensorType:
    """Return the type of a matrix product, for the op of that name. Raises ShapeError, DTypeError."""
    if a.rank < 2 or b.rank < 2:
        raise ShapeError(
            f"{name}: operands need at least 2 dimensions, got {a} and {b}", remedy="add a dimension of size 1"
        )
    if a.dtype is not b.dtype or a.dtype.kind not in "fiupc":
        raise DTypeError(f"{name}: operands must have one numeric element type, got {a.dtype} and {b.dtype}")
    m, ka = a.shape[-2:][::-1] if transpose_a else a.shape[-2:]
    kb, n = b.shape[-2:][::-1] if transpose_b else b.shape[-2:]
    if ka != kb:
        at_a, at_b = (-2 if transpose_a else -1) % a.rank, (-1 if transpose_b else -2) % b.rank
        ta, tb = (", transposed" if t else "" for t in (transpose_a, transpose_b))
        raise ShapeError(
            f"{name}: inner dimensions differ: {ka} (operand 0, dim {at_a}{ta}) and {kb} (operand 1, dim {at_b}{tb})"
        )
    try:
        batch = broadcast(name, [TensorType(x.dtype, x.shape[:-2]) for x in (a, b)])
    except ShapeError:
        raise ShapeError(f"{name}: batch dimensions {a.shape[:-2]} and {b.shape[:-2]} do not broadcast") from None
    return TensorType(summed_type(a.dtype), (*batch, m, n))


def summed_type(dtype: DType) -> DType:
    """Return the element type of sums of products; it is f32 for pairs."""
    return float32 if dtype is bfloat16x2 else dtype


def product_of(nest: NestBuilder, a: Scalar, b: Scalar) -> Scalar:
    """Emit one term of such a sum."""
    return nest.op("dot2", a, b) if a.dtype is bfloat16x2 else a * b


def of_halves(reference: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Extend a reference of sums of products to pairs: the sum over both halves."""

    def run(a: np.ndarray, b: np.ndarray, **attrs: Any) -> np.ndarray:
        if a.dtype != bfloat16x2.numpy:
            return reference(a, b, **attrs)
        first, second = zip(halves(a), halves(b), strict=True)
        return reference(*first, **attrs) + reference(*second, **attrs)

    return run


@of_halves
def _reference(a: np.ndarray, b: np.ndarray, transpose_a: bool, transpose_b: bool) -> np.ndarray:
    return np.matmul(a.swapaxes(-1, -2) if transpose_a else a, b.swapaxes(-1, -2) if transpose_b else b)


def _vjp_a(g: Any, result: Any, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    if transpose_a:
        return matmul(b, g, transpose_a=transpose_b, transpose_b=True)
    return matmul(g, b, transpose_b=not transpose_b)


def _vjp_b(g: Any, result: Any, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    if len(b.shape) == 2 and len(a.shape) > 2 and not transpose_a:
        # Compute one long sum, rather than one product per batch entry and then their sum.
        a, g = _rows(a), _rows(g)
    if transpose_b:
        return matmul(g, a, transpose_a=True, transpose_b=transpose_a)
    return matmul(a, g, transpose_a=not transpose_a)


def _rows(x: Any) -> Any:
    return shape.reshape(x, shape=(prod(x.shape[:-1]), x.shape[-1]))


def lower_matmul(
    c: LowerContext,
    index: tuple[Index, ...],
    a: OperandRef,
    b: OperandRef,
    transpose_a: bool = False,
    transpose_b: bool = False,
    term: Callable[[NestBuilder, Scalar, Scalar], Scalar] = product_of,
) -> Scalar:
    """Emit an entry of a matrix product: the sum of the terms of pairs of elements."""
    batch, m, n = index[:-2], index[-2], index[-1]

    def product(k: Index) -> Scalar:
        x = c.load(a, (*_batch(a, batch), *((k, m) if transpose_a else (m, k))))
        y = c.load(b, (*_batch(b, batch), *((n, k) if transpose_b else (k, n))))
        return term(c.nest, x, y)

    return c.nest.reduce("add", 0, summed_type(a.dtype), [a.shape[-2 if transpose_a else -1]], product)


def _batch(operand: OperandRef, batch: tuple[Index, ...]) -> tuple[Index, ...]:
    extents = operand.shape[:-2]
    return tuple(Index() if is_one(e) else i for e, i in zip(extents, batch[len(batch) - len(extents) :], strict=True))


def _samples() -> list[Sample]:
    def normal(*dims: int, dtype: Any = np.float32) -> np.ndarray:
        return np.random.default_rng(len(dims) + sum(dims)).standard_normal(dims).astype(dtype)

    result = [
        Sample((normal(5, 7), normal(7, 3))),
        Sample((normal(7, 5), normal(3, 7)), {"transpose_a": True, "transpose_b": True}),
        Sample((normal(4, 6, dtype=np.float64), normal(5, 6, dtype=np.float64)), {"transpose_b": True}),
        Sample((normal(2, 3, 4, 5), normal(5, 6))),
        Sample((normal(2, 1, 5, 4), normal(3, 5, 2)), {"transpose_a": True}),
        Sample((normal(3, 2, 4), normal(3, 5, 4)), {"transpose_b": True}),
        Sample((normal(33, 17), normal(17, 65))),
        Sample((normal(1, 1), normal(1, 1))),
        Sample((normal(2, 0), normal(0, 3))),
    ]
    integers = np.arange(-6, 6, dtype=np.int32)
    return [*result, Sample((integers.reshape(3, 4), integers.reshape(4, 3)), differentiable=False)]


def matmul_multiply_adds(types: Types, results: Types, attrs: Attrs) -> int:
    """Return the multiply-adds of a product with rows in the first operand, or columns where it is transposed."""
    return results[0].size * types[0].shape[-2 if attrs.get("transpose_a") else -1]


def _pairs_of_matmul(types: Types, attrs: Attrs) -> tuple[int, int]:
    a, b = (t.rank for t in types)
    return (a - 2 if attrs["transpose_a"] else a - 1, b - 1 if attrs["transpose_b"] else b - 2)


def _batched_matmul(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    rank = max(len(e.shape) for e in operands)
    values = [
        shape.reshape(e.value, shape=(size, *(1,) * (rank - len(e.shape)), *e.shape)) if e.batched else e.value
        for e in operands
    ]
    return matmul(*values, **attrs)


def _decompose_matmul(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    """Return a product of columns with rows as their elementwise product, which fuses with its readers; None for other
    products."""
    if not is_one(a.shape[-2 if transpose_a else -1]):
        return None
    column, row = (_without_transposition(x, flag) for x, flag in ((a, transpose_a), (b, transpose_b)))
    return one_product(column, row)


def _without_transposition(x: Any, transposed: bool) -> Any:
    return shape.reshape(x, shape=(*x.shape[:-2], x.shape[-1], x.shape[-2])) if transposed else x


def one_product(a: Any, b: Any) -> Any:
    """Return the elementwise product as a sum of one product: it starts at 0, which turns -0 into 0."""
    product = elementwise.mul(a, b)
    return elementwise.add(product, 0.0) if product.dtype.kind == "f" else product


matmul = define(
    "matmul",
    "Matrix product over the last two dimensions; the dimensions before them broadcast; either operand may be "
    "transposed.",
    "a b",
    _infer,
    attrs=[
        Attr("transpose_a", "bool", "a holds [..., k, m]", False, False),
        Attr("transpose_b", "bool", "b holds [..., n, k]", False, False),
    ],
    reference=_reference,
    vjp=(holomorphic(_vjp_a), holomorphic(_vjp_b)),
    lower=lower_matmul,
    decompose=_decompose_matmul,
    complex=OnParts.BILINEAR,
    traits=Trait.PURE | Trait.CONTRACTION,
    zero_sign=ZeroSign.KEPT,
    multiply_adds=matmul_multiply_adds,
    pairs=_pairs_of_matmul,
    batch=_batched_matmul,
    samples=_samples,
    error_samples=[
        ErrorSample((TensorType(float32, (4,)), TensorType(float32, (4, 2))), "at least 2 dimensions"),
        ErrorSample(
            (TensorType(float32, (32, 784)), TensorType(float32, (128, 768))),
            "inner dimensions differ: 784 (operand 0, dim 1) and 768 (operand 1, dim 1, transposed)",
            {"transpose_b": True},
        ),
        ErrorSample((TensorType(float32, (2, 3, 4)), TensorType(float32, (5, 4, 3))), "do not broadcast"),
        ErrorSample((TensorType(float32, (2, 2)), TensorType(float64, (2, 2))), "one numeric element type"),
        ErrorSample((TensorType(int32, (2, 2)), TensorType(int32, (3, 2))), "inner dimensions differ"),
    ],
    promotes=(0, 1),
)


# ---- pairs


def _infer_pairs(x: TensorType, axis: int) -> TensorType:
    check_kind("bf16_pairs", 0, x.dtype, "f")
    check_axis("bf16_pairs", axis, x.rank)
    if x.dtype is not float32 or x.shape[axis] % 2:
        what = f"bf16_pairs: {x} has no pairs of f32 along axis {axis}"
        raise ShapeError(what, remedy="pass an even number of f32 elements")
    return TensorType(bfloat16x2, (*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :]))


def _pairs_reference(x: np.ndarray, axis: int) -> np.ndarray:
    lead = (slice(None),) * axis
    return pair(x[(*lead, slice(0, None, 2))], x[(*lead, slice(1, None, 2))])


def _lower_pairs(c: LowerContext, index: tuple[Index, ...], x: OperandRef, axis: int) -> Scalar:
    first = index[axis] * 2
    low, high = (c.load(x, (*index[:axis], i, *index[axis + 1 :])) for i in (first, first + 1))
    return c.nest.op("pair", low, high)


bf16_pairs = define(
    "bf16_pairs",
    "Neighbours along an axis rounded to bf16 and paired, as products with weights stored in pairs take them.",
    "x",
    _infer_pairs,
    attrs=[Attr("axis", "int", "the dimension whose neighbours are paired")],
    reference=_pairs_reference,
    vjp=(None,),
    lower=_lower_pairs,
    samples=lambda: [
        plain(floats((3, 34), "float32"), axis=1),
        plain(floats((6, 5), "float32"), axis=0),
        plain(floats((2, 4, 3), "float32"), axis=1),
        plain(np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40, 3.4e38], np.float32), axis=0),
    ],
    error_samples=(
        ErrorSample((TensorType(float32, (2, 3)),), "no pairs of f32 along axis 1", {"axis": 1}, ShapeError),
        ErrorSample((TensorType(float32, (2, 4)),), "axis 2 is out of range", {"axis": 2}, IndexRangeError),
        ErrorSample((TensorType(int32, (4,)),), "signed integer (i32)", {"axis": 0}, DTypeError),
    ),
)
