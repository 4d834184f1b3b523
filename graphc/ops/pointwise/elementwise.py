"""Arithmetic, comparisons, logic, bits, selection and conversion, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.dtypes import STORED, DType, bfloat16x2, bool_, dtype_of, float32, float64, int32, int64
from graphc.base.errors import DTypeError, ShapeError
from graphc.ir.kernel import scalar
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.op import Attr, ErrorSample, OnParts, Sample, Trait, ZeroSign
from graphc.ir.types import TensorType
from graphc.ops import bounds
from graphc.ops.define import EVERY, define
from graphc.ops.movement.shape import filled, zeros_like
from graphc.ops.pointwise import complex_functions as rules
from graphc.ops.pointwise.parts_of_complex import Complex, apply_named, conjugate, holomorphic, named
from graphc.ops.rules import broadcast, check_kind, check_one_dtype, elementwise
from graphc.ops.samples import (
    FLOATS,
    INTEGERS,
    SPECIAL,
    array,
    binary,
    booleans,
    extremes,
    floats,
    integers,
    pairs,
    plain,
    unary,
)

ELEMENTWISE = Trait.PURE | Trait.ELEMENTWISE
COMMUTATIVE = ELEMENTWISE | Trait.COMMUTATIVE
Indices = tuple[Index, ...]

F = TensorType(float32, (2, 3))
F_WIDE = TensorType(float32, (2, 4))
I = TensorType(int32, (2, 3))  # noqa: E741
B = TensorType(bool_, (2, 3))
MISMATCH = (
    ErrorSample(
        (F, F_WIDE), "shapes [2,3] (operand 0) and [2,4] (operand 1) do not broadcast: 3 and 4", {}, ShapeError
    ),
    ErrorSample((F, TensorType(float64)), "f32 (operand 0) and f64 (operand 1)", {}, DTypeError),
)


def lowered(rule: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """Build a kernel rule from a function of the builder and the operands' elements: ``rule(nest, *elements)``."""

    def lower(c: LowerContext, index: Indices, *operands: OperandRef) -> Scalar:
        return rule(c.nest, *(c.broadcast(x, index) for x in operands))

    return lower


def scalar_op(name: str) -> Callable[..., Scalar]:
    """Build a kernel rule of one scalar operation of ir.kernel.scalar."""
    return lowered(lambda nest, *elements: nest.op(name, *elements))


def _bad_kind(dtype: DType, message: str, count: int = 2) -> ErrorSample:
    return ErrorSample((TensorType(dtype, (2, 3)),) * count, message, {}, DTypeError)


# ---- arithmetic

add = define(
    "add",
    "x + y; for bool, x or y.",
    "x y",
    elementwise("add", "fiubc"),
    reference=np.add,
    vjp=(lambda g, result, x, y: g, lambda g, result, x, y: g),
    complex=OnParts.EACH,
    lower=lowered(lambda nest, x, y: nest.op("or" if x.dtype is bool_ else "add", x, y)),
    traits=COMMUTATIVE,
    zero_sign=ZeroSign.KEPT,
    bounds=bounds.total,
    samples=binary(kinds="fiubc"),
    error_samples=MISMATCH,
    promotes=EVERY,
)
sub = define(
    "sub",
    "x - y.",
    "x y",
    elementwise("sub", "fiuc"),
    reference=np.subtract,
    vjp=(lambda g, result, x, y: g, lambda g, result, x, y: neg(g)),
    complex=OnParts.EACH,
    lower=scalar_op("sub"),
    traits=ELEMENTWISE,
    zero_sign=ZeroSign.KEPT,
    bounds=bounds.difference,
    samples=binary(kinds="fiuc"),
    error_samples=(*MISMATCH, _bad_kind(bool_, "operand 0 is boolean (bool), which sub does not take")),
    promotes=EVERY,
)
mul = define(
    "mul",
    "x * y; for bool, x and y.",
    "x y",
    elementwise("mul", "fiubc"),
    reference=np.multiply,
    vjp=(lambda g, result, x, y: mul(g, conjugate(y)), lambda g, result, x, y: mul(g, conjugate(x))),
    complex=OnParts.BILINEAR,
    lower=lowered(lambda nest, x, y: nest.op("and" if x.dtype is bool_ else "mul", x, y)),
    traits=COMMUTATIVE,
    zero_sign=ZeroSign.KEPT,
    bounds=bounds.product,
    samples=binary(kinds="fiubc"),
    error_samples=MISMATCH,
    promotes=EVERY,
)
div = define(
    "div",
    "x / y, always in floating point: integers become f32 first.",
    "x y",
    elementwise("div", "fc"),
    reference=np.true_divide,
    vjp=(
        lambda g, result, x, y: div(g, conjugate(y)),
        holomorphic(lambda g, result, x, y: neg(div(mul(g, result), y))),
    ),
    complex=rules.quotient,
    lower=scalar_op("div"),
    traits=ELEMENTWISE | Trait.RECOMPUTED,
    zero_sign=(ZeroSign.KEPT, ZeroSign.SEEN),
    samples=lambda: [
        *binary(kinds="fc")(),
        Sample((floats((3, 4), low=-3, high=3), floats((4,), low=0.5, high=2, seed=1))),
    ],
    error_samples=(*MISMATCH, _bad_kind(int64, "signed integer (i64)")),
    promotes=EVERY,
    to_float=True,
)


def _float_mod(nest: Any, x: Scalar, y: Scalar) -> Scalar:
    rest = nest.op("rem", x, y)
    return nest.select(rest.ne(0) & ((y < 0) ^ (rest < 0)), rest + y, rest)


def _integer_mod(nest: Any, x: Scalar, y: Scalar) -> Scalar:
    rest = nest.op("rem", x, y)
    return rest if x.dtype.kind == "u" else nest.select(rest.ne(0) & ((y < 0) ^ (rest < 0)), rest + y, rest)


def _float_floor_div(nest: Any, x: Scalar, y: Scalar) -> Scalar:
    """Round the quotient by the exact remainder: x == floor_div(x, y) * y + mod(x, y), up to rounding."""
    rest = nest.op("rem", x, y)
    ratio = (x - rest) / y
    ratio = nest.select(rest.ne(0) & ((y < 0) ^ (rest < 0)), ratio - 1.0, ratio)
    floored = nest.op("floor", ratio)
    floored = nest.select(ratio - floored > 0.5, floored + 1.0, floored)
    floored = nest.op("copysign", floored, x / y)  # keep the sign of a zero
    return nest.select(y.eq(0), x / y, floored)


def _integer_floor_div(nest: Any, x: Scalar, y: Scalar) -> Scalar:
    ratio = x / y
    if x.dtype.kind == "u":
        return ratio
    rest = nest.op("rem", x, y)
    return nest.select(rest.ne(0) & ((y < 0) ^ (rest < 0)), ratio - 1, ratio)


floor_div = define(
    "floor_div",
    "The largest integer not above x / y. A zero divisor gives 0 for integers.",
    "x y",
    elementwise("floor_div", "fiu"),
    reference=np.floor_divide,
    vjp=(lambda g, result, x, y: zeros_like(result), lambda g, result, x, y: zeros_like(result)),
    lower=lowered(lambda nest, x, y: (_float_floor_div if x.dtype.kind == "f" else _integer_floor_div)(nest, x, y)),
    traits=ELEMENTWISE,
    samples=lambda: [
        *binary(-7, 7)(),
        plain(floats((4, 9), "float32", -40, 40), floats((9,), "float32", -3, 3, 1)),
    ],
    error_samples=(*MISMATCH, _bad_kind(bool_, "boolean (bool)")),
    promotes=EVERY,
)


def _mod_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Give a floating-point zero the sign of x, as PyTorch does; numpy gives it the sign of y."""
    if x.dtype.kind != "f":
        return np.remainder(x, y)
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


mod = define(
    "mod",
    "x - y * floor_div(x, y): has the sign of y. A zero divisor gives 0 for integers and NaN for floats.",
    "x y",
    elementwise("mod", "fiu"),
    reference=_mod_reference,
    vjp=(lambda g, result, x, y: g, lambda g, result, x, y: neg(mul(g, floor_div(x, y)))),
    lower=lowered(lambda nest, x, y: (_float_mod if x.dtype.kind == "f" else _integer_mod)(nest, x, y)),
    traits=ELEMENTWISE,
    bounds=bounds.remainder,
    samples=lambda: [
        *binary(-7, 7, special=False)(),
        plain(floats((4, 9), "float32", -40, 40), floats((9,), "float32", -3, 3, 1)),
        plain(*pairs(array([np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 2.5, -6.0, 3.0], "float64"))),
    ],
    error_samples=(*MISMATCH, _bad_kind(bool_, "boolean (bool)")),
    promotes=EVERY,
)
neg = define(
    "neg",
    "-x.",
    "x",
    elementwise("neg", "fiuc"),
    reference=np.negative,
    vjp=(lambda g, result, x: neg(g),),
    complex=OnParts.EACH,
    lower=scalar_op("neg"),
    traits=ELEMENTWISE,
    zero_sign=ZeroSign.KEPT,
    bounds=bounds.opposite,
    samples=unary(kinds="fiuc"),
    error_samples=(_bad_kind(bool_, "operand 0 is boolean (bool)", 1),),
)


def _infer_abs(x: TensorType) -> TensorType:
    type = elementwise("abs", "fiuc")(x)
    return TensorType(type.dtype.real, type.shape)


abs = define(
    "abs",
    "The absolute value, or the magnitude of complex numbers; its slope at 0 is 0. The smallest integer of a signed "
    "type stays unchanged.",
    "x",
    _infer_abs,
    reference=np.abs,
    vjp=(lambda g, result, x: mul(g, sign(x)),),
    complex=rules.size,
    lower=scalar_op("abs"),
    traits=ELEMENTWISE,
    zero_sign=ZeroSign.HIDDEN,
    samples=unary(kinds="fiuc"),
    error_samples=(_bad_kind(bool_, "operand 0 is boolean (bool)", 1),),
)


def _sign_reference(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        return np.where(x == 0, x.dtype.type(0), x / np.abs(x))
    return np.subtract(x > 0, x < 0, dtype=np.int8).astype(x.dtype)


def _sign_gradient(g: Any, result: Any, x: Any) -> Any:
    """Return the component of a complex gradient at a right angle to x, divided by |x|."""
    if x.dtype.kind != "c":
        return zeros_like(result)
    along = mul(result, named.real(mul(g, conjugate(result))))
    return where(eq(x, 0), 0, div(sub(g, along), abs(x)))


sign = define(
    "sign",
    "-1, 0 or 1 by the sign of x; 0 for NaN. For complex x, x / |x|, and 0 for 0.",
    "x",
    elementwise("sign", "fiuc"),
    reference=_sign_reference,
    vjp=(_sign_gradient,),
    complex=rules.direction,
    lower=lowered(
        lambda nest, x: (
            nest.select(x > 0, nest.const(1, x.dtype), 0)
            if x.dtype.kind == "u"
            else nest.select(x > 0, nest.const(1, x.dtype), nest.select(x < 0, nest.const(-1, x.dtype), 0))
        )
    ),
    traits=ELEMENTWISE,
    samples=unary(kinds="fiuc"),
    error_samples=(_bad_kind(bool_, "operand 0 is boolean (bool)", 1),),
)
reciprocal = define(
    "reciprocal",
    "1 / x, always in floating point.",
    "x",
    elementwise("reciprocal", "fc"),
    reference=lambda x: np.divide(x.dtype.type(1), x),
    vjp=(holomorphic(lambda g, result, x: neg(mul(g, mul(result, result)))),),
    complex=lambda x: div(1, x),
    lower=lowered(lambda nest, x: 1 / x),
    traits=ELEMENTWISE,
    samples=unary(0.3, 3.0, "fc"),
    error_samples=(_bad_kind(int32, "operand 0 is signed integer (i32)", 1),),
    promotes=EVERY,
    to_float=True,
)


# ---- extremes


def _extreme_gradient(loses: Any) -> tuple[Any, Any]:
    """Build the gradients of maximum or minimum: to the chosen operand, halved at ties, and to both where one is
    NaN."""

    def first(g: Any, result: Any, x: Any, y: Any) -> Any:
        return where(loses(x, y), 0, where(eq(x, y), mul(g, 0.5), g))

    def second(g: Any, result: Any, x: Any, y: Any) -> Any:
        return where(loses(y, x), 0, where(eq(x, y), mul(g, 0.5), g))

    return first, second


maximum = define(
    "maximum",
    "The larger of x and y; NaN if one of them is NaN. At ties each side gets half of the gradient.",
    "x y",
    elementwise("maximum", "fiub"),
    reference=np.maximum,
    vjp=_extreme_gradient(lambda x, y: lt(x, y)),
    lower=scalar_op("max"),
    traits=COMMUTATIVE,
    zero_sign=ZeroSign.KEPT,
    bounds=bounds.larger,
    samples=binary(kinds="fiub"),
    error_samples=MISMATCH,
    promotes=EVERY,
)
minimum = define(
    "minimum",
    "The smaller of x and y; NaN if one of them is NaN. At ties each side gets half of the gradient.",
    "x y",
    elementwise("minimum", "fiub"),
    reference=np.minimum,
    vjp=_extreme_gradient(lambda x, y: gt(x, y)),
    lower=scalar_op("min"),
    traits=COMMUTATIVE,
    zero_sign=ZeroSign.KEPT,
    bounds=bounds.smaller,
    samples=binary(kinds="fiub"),
    error_samples=MISMATCH,
    promotes=EVERY,
)


# ---- comparisons


def _comparison(name: str, symbol: str, reference: Any, traits: Trait, on_complex: Any = None) -> Any:
    return define(
        name,
        f"x {symbol} y, as bool.",
        "x y",
        elementwise(name, "fiubc" if on_complex else "fiub", bool_),
        reference=reference,
        lower=scalar_op(name),
        complex=on_complex,
        traits=traits,
        zero_sign=ZeroSign.HIDDEN,
        samples=binary(kinds="fiubc" if on_complex else "fiub", differentiable=False),
        error_samples=MISMATCH,
        promotes=EVERY,
    )


eq = _comparison("eq", "==", np.equal, COMMUTATIVE, lambda x, y: logical_and(eq(x.real, y.real), eq(x.imag, y.imag)))
ne = _comparison("ne", "!=", np.not_equal, COMMUTATIVE, lambda x, y: logical_or(ne(x.real, y.real), ne(x.imag, y.imag)))
lt = _comparison("lt", "<", np.less, ELEMENTWISE)
le = _comparison("le", "<=", np.less_equal, ELEMENTWISE)
gt = _comparison("gt", ">", np.greater, ELEMENTWISE)
ge = _comparison("ge", ">=", np.greater_equal, ELEMENTWISE)


# ---- logic and bits


def _logical(name: str, word: str, reference: Any, operation: str) -> Any:
    return define(
        name,
        f"Whether x is not zero {word} y is not zero.",
        "x y",
        elementwise(name, "fiubc", bool_),
        reference=reference,
        lower=lowered(lambda nest, x, y: nest.op(operation, x.cast(bool_), y.cast(bool_))),
        complex=lambda x, y: apply_named(name, ne(x, 0), ne(y, 0)),
        traits=COMMUTATIVE,
        samples=binary(kinds="fiub", differentiable=False),
        error_samples=MISMATCH,
        promotes=EVERY,
    )


logical_and = _logical("logical_and", "and", np.logical_and, "and")
logical_or = _logical("logical_or", "or", np.logical_or, "or")
logical_xor = _logical("logical_xor", "or", np.logical_xor, "xor")
logical_not = define(
    "logical_not",
    "Whether x is zero.",
    "x",
    elementwise("logical_not", "fiubc", bool_),
    reference=np.logical_not,
    complex=lambda x: eq(x, 0),
    lower=lowered(lambda nest, x: nest.op("not", x.cast(bool_))),
    traits=ELEMENTWISE,
    zero_sign=ZeroSign.HIDDEN,
    samples=lambda: [plain(*s.operands) for s in unary(kinds="fiub")()],
    error_samples=(ErrorSample((F, F), "takes 1 operands, got 2"),),
)


def _bitwise(name: str, word: str, reference: Any, operation: str) -> Any:
    return define(
        name,
        f"Bitwise {word} of integers or bools.",
        "x y",
        elementwise(name, "iub"),
        reference=reference,
        lower=scalar_op(operation),
        traits=COMMUTATIVE,
        samples=binary(kinds="iub"),
        error_samples=(_bad_kind(float32, "operand 0 is floating-point (f32)"),),
        promotes=EVERY,
    )


bit_and = _bitwise("bit_and", "and", np.bitwise_and, "and")
bit_or = _bitwise("bit_or", "or", np.bitwise_or, "or")
bit_xor = _bitwise("bit_xor", "exclusive or", np.bitwise_xor, "xor")
bit_not = define(
    "bit_not",
    "Every bit inverted; for bool, not x.",
    "x",
    elementwise("bit_not", "iub"),
    reference=np.invert,
    lower=scalar_op("not"),
    traits=ELEMENTWISE,
    samples=lambda: [plain(extremes(d)) for d in INTEGERS] + [plain(booleans((3, 4))), plain(integers((0, 2)))],
    error_samples=(_bad_kind(float32, "operand 0 is floating-point (f32)", 1),),
)


def _shift_reference(shift: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        bits = x.dtype.itemsize * 8
        inside = (y >= 0) & (y < bits)
        signs = np.where(x < 0, -1, 0).astype(x.dtype) if shift is np.right_shift else np.zeros((), x.dtype)
        return np.where(inside, shift(x, np.where(inside, y, 0)), signs).astype(x.dtype)

    return reference


def _lower_shift(operation: str) -> Callable[..., Scalar]:
    """Emit a shift, with shift amounts outside of the width handled first: hardware takes them modulo the width."""

    def rule(nest: Any, x: Scalar, y: Scalar) -> Scalar:
        bits = x.dtype.bits
        inside = y < bits if x.dtype.kind == "u" else (y >= 0) & (y < bits)
        if operation == "shr" and x.dtype.kind == "i":
            return nest.op("shr", x, nest.select(inside, y, bits - 1))
        return nest.select(inside, nest.op(operation, x, y & (bits - 1)), 0)

    return lowered(rule)


shift_left = define(
    "shift_left",
    "x shifted left by y bits; 0 when y is negative or not below the width.",
    "x y",
    elementwise("shift_left", "iu"),
    reference=_shift_reference(np.left_shift),
    lower=_lower_shift("shl"),
    traits=ELEMENTWISE,
    samples=binary(kinds="iu"),
    error_samples=(_bad_kind(float32, "operand 0 is floating-point (f32)"),),
    promotes=EVERY,
)
shift_right = define(
    "shift_right",
    "x shifted right by y bits, keeping the sign; 0 or -1 by the sign when y is negative or not below the width.",
    "x y",
    elementwise("shift_right", "iu"),
    reference=_shift_reference(np.right_shift),
    lower=_lower_shift("shr"),
    traits=ELEMENTWISE,
    samples=binary(kinds="iu"),
    error_samples=(_bad_kind(float32, "operand 0 is floating-point (f32)"),),
    promotes=EVERY,
)


# ---- selection and conversion


def _infer_where(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    check_kind("where", 0, condition.dtype, "b")
    check_one_dtype("where", (x, y), first=1)
    return TensorType(x.dtype, broadcast("where", (condition, x, y)))


where = define(
    "where",
    "x where the condition holds, else y.",
    "condition x y",
    _infer_where,
    reference=np.where,
    vjp=(
        None,
        lambda g, result, condition, x, y: where(condition, g, 0),
        lambda g, result, condition, x, y: where(condition, 0, g),
    ),
    lower=scalar_op("select"),
    complex=OnParts.EACH,
    traits=ELEMENTWISE,
    zero_sign=ZeroSign.KEPT,
    bounds=bounds.union(1, 2),
    samples=lambda: [
        Sample((booleans((2, 3)), floats((2, 3)), floats((2, 3), seed=1))),
        Sample((booleans((4, 1)), floats((3,), "float32"), floats((), "float32", seed=1))),
        Sample((booleans(()), floats((0, 3)), floats((1, 3), seed=1))),
        plain(booleans((5,)), integers((5,), "int8"), integers((1,), "int8", seed=1)),
        plain(booleans((5,)), booleans((5,), 1), booleans((5,), 2)),
    ],
    error_samples=(
        ErrorSample((F, F, F), "operand 0 is floating-point (f32), which where does not take", {}, DTypeError),
        ErrorSample((B, F, I), "f32 (operand 1) and i32 (operand 2)", {}, DTypeError),
        ErrorSample((B, F, F_WIDE), "do not broadcast: 3 and 4 at dim -1", {}, ShapeError),
    ),
    promotes=(1, 2),
)


def _complex_cast(x: Any, dtype: DType) -> Any:
    """Cast a complex number: to real by its real part, to bool by comparison with 0, from real with imaginary part
    0."""
    if dtype.kind == "b":
        return ne(x, 0)
    if not dtype.is_complex:
        return cast(x.real, dtype=dtype)
    if not isinstance(x, Complex):
        return Complex(cast(x, dtype=dtype.real), filled(0, dtype.real, x.shape))
    return Complex(*(cast(component, dtype=dtype.real) for component in (x.real, x.imag)))


def _infer_cast(x: TensorType, dtype: DType) -> TensorType:
    if dtype in STORED or x.dtype.kind == "p":
        raise DTypeError(
            f"cast: {(dtype if dtype in STORED else x.dtype).name} is a storage type of weights, not one for computing",
            remedy="cast to another type",
        )
    return TensorType(dtype, x.shape)


def _cast_samples() -> list[Sample]:
    samples = [
        Sample((floats((2, 3)),), {"dtype": float64}),
        Sample((floats((3,), "float32"),), {"dtype": float64}),
        plain(floats((0, 3), "float32"), dtype=dtype_of("int8")),
        plain(floats(()), dtype=float32),
    ]
    big = [127.9, 128.5, -128.9, -129.5, 255.9, 256.5, 2147483648.0, -2147483649.0, 1e19, -1e19, 9.3e18]
    for dtype in FLOATS:
        values = array([*SPECIAL[:-3], *big], dtype)
        samples += [plain(values, dtype=dtype_of(name)) for name in (*FLOATS, *INTEGERS, "bool")]
    for name in INTEGERS:
        samples += [plain(extremes(name), dtype=dtype_of(other)) for other in (*FLOATS, *INTEGERS, "bool")]
    return samples + [plain(booleans((2, 3)), dtype=dtype_of(name)) for name in (*FLOATS, *INTEGERS, "bool")]


cast = define(
    "cast",
    "x as another element type. Floats are truncated toward zero and saturate, NaN becomes 0; integers wrap around; "
    "bool tests for nonzero; complex numbers become real by their real part.",
    "x",
    _infer_cast,
    attrs=[Attr("dtype", "dtype", "the new element type")],
    reference=scalar.cast,
    vjp=(lambda g, result, x, dtype: cast(g, dtype=x.dtype),),
    lower=lambda c, index, x, dtype: c.broadcast(x, index).cast(dtype),
    complex=_complex_cast,
    traits=ELEMENTWISE | Trait.CONVERSION,
    bounds=bounds.of_first,
    samples=_cast_samples,
    error_samples=(
        ErrorSample((F,), "attribute 'dtype' is missing"),
        ErrorSample((F,), "bf16x2 is a storage type", {"dtype": bfloat16x2}, DTypeError),
    ),
)
