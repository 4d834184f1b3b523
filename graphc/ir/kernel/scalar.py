"""Scalar operations of kernels: arity, result type and meaning in numpy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bfloat16, bfloat16x2, bool_, float16, float32, halves, int32, narrow, pair, widen
from graphc.base.errors import VerifyError
from graphc.base.records import dataclass
from graphc.ir.kernel import large_angle


@dataclass(frozen=True)
class ScalarOp:
    """A scalar operation. All operands have one type unless ``rule`` says otherwise."""

    name: str
    arity: int
    rule: str
    """``same``: result type of the operands; ``compare``: bool; ``select``: type of operand 1, operand 0 is bool;
    ``cast``: any type to the type that the statement states; ``ldexp``: type of operand 0, operand 1 is i32 (f32) or
    i64 (f64), or a float of that type with an integer value of at most twice the largest exponent; ``fixed``: see
    FIXED."""
    kinds: str
    """Kinds of element type allowed: ``f`` float, ``i`` signed, ``u`` unsigned, ``b`` bool, ``h`` half-width float."""
    reference: Callable[..., Any]
    cost: int = 0
    """Approximate number of vector operations of its expansion (codegen.schedule.expansion.expand); 0 for one
    instruction."""
    slow: bool = False
    """Whether it is one instruction slower than writing an element to a near cache and reading it again."""
    bits: tuple[int, ...] = (8, 16, 32, 64)
    """Widths of element type allowed."""

    @property
    def transcendental(self) -> bool:
        """Whether codegen expands it into other operations."""
        return self.cost > 0


def _int_div(a: Any, b: Any) -> Any:
    """Divide as in C: truncate toward zero; 0 for a zero divisor (kernels never trap)."""
    if np.asarray(a).dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, 1, b).astype(np.asarray(b).dtype)
    floor = np.floor_divide(a, safe)
    fix = (np.remainder(a, safe) != 0) & ((np.asarray(a) < 0) != (safe < 0))
    return np.where(b == 0, 0, floor + fix).astype(np.asarray(a).dtype)


def _int_rem(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.kind == "f":
        return np.fmod(a, b)
    return np.where(b == 0, 0, a - _int_div(a, b) * b).astype(np.asarray(a).dtype)


def _unsigned(a: Any) -> Any:
    array = np.asarray(a)
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def _fma(a: Any, b: Any, c: Any) -> Any:
    """Round once for f32, since the product of two f32 fits f64, whose sum with ``c`` is rounded to odd (see
    codegen.llvm.scalar); round twice for f64, as numpy has no fused operation."""
    if np.asarray(a).dtype != np.float32:
        return a * b + c
    product, c = np.float64(a) * np.float64(b), np.float64(c)
    total = np.asarray(product + c)
    added = total - product
    error = (product - (total - added)) + (c - added)
    bits, away = total.view(np.int64), np.signbit(error) != np.signbit(total)
    moves = (np.abs(error) > 0) & (bits & 1 == 0)
    return (bits + np.where(moves, np.where(away, -1, 1), 0)).view(np.float64).astype(np.float32)


def _shift_left(a: Any, b: Any) -> Any:
    return np.left_shift(a, b).astype(np.asarray(a).dtype)


def _shift_right_logical(a: Any, b: Any) -> Any:
    return np.right_shift(_unsigned(a), _unsigned(b)).view(np.asarray(a).dtype)


def _mulhi(a: Any, b: Any) -> Any:
    """Return the high half of the unsigned product of two i32."""
    wide = _unsigned(a).astype(np.uint64) * _unsigned(b).astype(np.uint64)
    return (wide >> np.uint64(32)).astype(np.uint32).view(np.int32)


def cast(value: Any, dtype: DType) -> Any:
    """Convert as kernels do: float to integer truncates, saturates, and maps NaN to 0; to bool tests for nonzero.
    Conversions to or from f16 and bf16 go through f32; complex numbers become real by their real part."""
    array = np.asarray(value)
    if array.dtype in _HALVES:
        array = widen(array)
    if array.dtype.kind == "c" and not (dtype.is_complex or dtype.kind == "b"):
        array = np.real(array)
    if dtype.kind == "h":
        with np.errstate(over="ignore"):
            return narrow(array.astype(np.float32), dtype)
    if dtype.kind == "b":
        return array != 0
    if array.dtype.kind == "f" and dtype.kind in "iu":
        info = np.iinfo(dtype.numpy)
        inside = (array > float(info.min) - 1) & (array < float(info.max) + 1)
        safe = np.where(inside, array, 0).astype(dtype.numpy)
        return np.where(
            inside, safe, np.where(array >= float(info.max), info.max, np.where(array < 0, info.min, 0))
        ).astype(dtype.numpy)
    return array.astype(dtype.numpy)


def bitcast(value: Any, dtype: DType) -> Any:
    """Reinterpret the bits as another type of equal width."""
    return np.asarray(value).view(dtype.numpy)


_ERF_STEPS, _ERF_LIMIT, _ERF_BLOCK = 512, 6, 16384
"""Nodes per unit of the table of ``_erf``, its end, where the function is 1, and the elements of one block."""


@functools.cache
def _erf_table() -> tuple[np.ndarray, np.ndarray]:
    """Return the error function and its slope at the nodes."""
    nodes = np.arange(_ERF_LIMIT * _ERF_STEPS + 1) / _ERF_STEPS
    return _ERF(nodes), 2 / math.sqrt(math.pi) * np.exp(-nodes * nodes)


def _erf(x: Any) -> Any:
    """Compute the error function; of f32 by a Taylor series of third order around the nearest node of a table.

    NOTE: the series differs by less than 3e-13. It takes a tenth of the time of ``math.erf`` for each element. Blocks
    stay in the cache, and touch no new pages of memory: whole arrays of f64 take three times as long in a new process.
    """
    x = np.asarray(x)
    if x.dtype != np.float32:
        return _ERF(x).astype(x.dtype)
    flat = x.reshape(-1)
    result = np.empty_like(flat)
    buffers = [np.empty(min(flat.size, _ERF_BLOCK)) for _ in range(4)]
    for start in range(0, flat.size, _ERF_BLOCK):
        block = flat[start : start + _ERF_BLOCK]
        _erf_block(block, result[start : start + _ERF_BLOCK], *[buffer[: block.size] for buffer in buffers])
    return result.reshape(x.shape)


def _erf_block(x: np.ndarray, result: np.ndarray, size: Any, node: Any, series: Any, d: Any) -> None:
    """Write the error function of ``x`` to ``result``; the other arrays are overwritten. With ``d`` from the node to
    the size of ``x``, the series is value + slope * d * (1 - d * (node - d * (2 * node * node - 1) / 3))."""
    values, slopes = _erf_table()
    np.fmin(np.abs(x), np.float32(_ERF_LIMIT), out=size)  # NaN becomes the end of the table, until the last line
    np.rint(np.multiply(size, _ERF_STEPS, out=node), out=node)
    index = node.astype(np.intp)
    node /= _ERF_STEPS
    np.subtract(size, node, out=d)
    np.multiply(node, node, out=series)
    series *= 2 / 3
    series -= 1 / 3
    series *= d
    np.subtract(node, series, out=series)
    series *= d
    np.subtract(1, series, out=series)
    series *= d
    series *= slopes.take(index, out=size, mode="clip")
    series += values.take(index, out=size, mode="clip")
    np.copysign(series, x, out=series)
    result[...] = series
    result[np.isnan(x)] = np.nan


def _erfc(x: Any) -> Any:
    return _ERFC(x).astype(np.asarray(x).dtype)


def _ldexp(x: Any, n: Any) -> Any:
    return np.ldexp(x, np.asarray(n).astype(np.int32)).astype(np.asarray(x).dtype)


def _pow(a: Any, b: Any) -> Any:
    """Compute the power as in C. numpy takes a square root for a scalar exponent 0.5, which differs only at minus
    infinity."""
    infinity = np.asarray(a).dtype.type(np.inf)
    return np.where(np.equal(a, -infinity) & np.equal(b, 0.5), infinity, np.power(a, b))


def _select(c: Any, a: Any, b: Any) -> Any:
    return np.where(c, a, b)


_HALVES = (float16.numpy, bfloat16.numpy)
_ERF = np.vectorize(math.erf, otypes=[np.float64])
_ERFC = np.vectorize(math.erfc, otypes=[np.float64])


def _dot2(a: Any, b: Any) -> Any:
    """Return the sum of two products of bf16, in f32."""
    (a0, a1), (b0, b1) = halves(np.asarray(a)), halves(np.asarray(b))
    return a0 * b0 + a1 * b1


def _dot4(a: Any, b: Any) -> Any:
    """Return the sum of four products of bytes, unsigned in ``a`` and signed in ``b``."""
    bytes_of_a = np.asarray(a, np.int32)[..., None].view(np.uint8).astype(np.int32)
    return (bytes_of_a * np.asarray(b, np.int32)[..., None].view(np.int8)).sum(-1, dtype=np.int32)


def _dot2i(a: Any, b: Any) -> Any:
    """Return the sum of two products of 16 bits, signed."""
    left, right = (np.asarray(x, np.int32)[..., None].view(np.int16).astype(np.int32) for x in (a, b))
    return (left * right).sum(-1, dtype=np.int32)


def _nibble(a: Any) -> Any:
    """Return the number from -8 to 7 in the lowest four bits, in f32."""
    return ((np.asarray(a, np.int32) << 28) >> 28).astype(np.float32)


_ALL = "fiu"
# NOTE: "weigh" is a product whose second factor need not be read where the first one is 0: it counts as finite.
_OPS = [
    ScalarOp("add", 2, "same", _ALL, np.add),
    ScalarOp("sub", 2, "same", _ALL, np.subtract),
    ScalarOp("mul", 2, "same", _ALL, np.multiply),
    ScalarOp("weigh", 2, "same", "f", np.multiply),
    ScalarOp("div", 2, "same", _ALL, _int_div, slow=True),
    ScalarOp("rem", 2, "same", _ALL, _int_rem),
    ScalarOp("neg", 1, "same", _ALL, np.negative),
    ScalarOp("abs", 1, "same", _ALL, np.abs),
    ScalarOp("min", 2, "same", "fiub", np.minimum),
    ScalarOp("max", 2, "same", "fiub", np.maximum),
    ScalarOp("fma", 3, "same", "f", _fma),
    ScalarOp("sqrt", 1, "same", "f", np.sqrt, slow=True),
    ScalarOp("floor", 1, "same", "f", np.floor),
    ScalarOp("ceil", 1, "same", "f", np.ceil),
    ScalarOp("trunc", 1, "same", "f", np.trunc),
    ScalarOp("roundeven", 1, "same", "f", np.rint),
    ScalarOp("copysign", 2, "same", "f", np.copysign),
    ScalarOp("ldexp", 2, "ldexp", "f", _ldexp),
    ScalarOp("eq", 2, "compare", "fiub", np.equal),
    ScalarOp("ne", 2, "compare", "fiub", np.not_equal),
    ScalarOp("lt", 2, "compare", "fiub", np.less),
    ScalarOp("le", 2, "compare", "fiub", np.less_equal),
    ScalarOp("gt", 2, "compare", "fiub", np.greater),
    ScalarOp("ge", 2, "compare", "fiub", np.greater_equal),
    ScalarOp("and", 2, "same", "iub", np.bitwise_and),
    ScalarOp("or", 2, "same", "iub", np.bitwise_or),
    ScalarOp("xor", 2, "same", "iub", np.bitwise_xor),
    ScalarOp("not", 1, "same", "iub", np.invert),
    ScalarOp("shl", 2, "same", "iu", _shift_left),
    ScalarOp("shr", 2, "same", "iu", np.right_shift),
    ScalarOp("shr_unsigned", 2, "same", "iu", _shift_right_logical),
    ScalarOp("mulhi_unsigned", 2, "same", "i", _mulhi, bits=(32,)),
    ScalarOp("select", 3, "select", "fiubh", _select),
    ScalarOp("cast", 1, "cast", "fiubh", cast),
    ScalarOp("bitcast", 1, "cast", "fiuh", bitcast),
    ScalarOp("pair", 2, "fixed", "f", pair),
    ScalarOp("dot2", 2, "fixed", "p", _dot2),
    ScalarOp("dot4", 2, "same", "i", _dot4, bits=(32,)),
    ScalarOp("dot2i", 2, "same", "i", _dot2i, bits=(32,)),
    ScalarOp("nibble", 1, "fixed", "i", _nibble),
    ScalarOp("exp", 1, "same", "f", np.exp, 12),
    ScalarOp("expm1", 1, "same", "f", np.expm1, 20),
    ScalarOp("log", 1, "same", "f", np.log, 20),
    ScalarOp("log1p", 1, "same", "f", np.log1p, 24),
    ScalarOp("exp2", 1, "same", "f", np.exp2, 12),
    ScalarOp("log2", 1, "same", "f", np.log2, 25),
    ScalarOp("log10", 1, "same", "f", np.log10, 25),
    ScalarOp("sinh", 1, "same", "f", np.sinh, 25),
    ScalarOp("cosh", 1, "same", "f", np.cosh, 15),
    ScalarOp("sin", 1, "same", "f", np.sin, 30),
    ScalarOp("cos", 1, "same", "f", np.cos, 30),
    ScalarOp("tan", 1, "same", "f", np.tan, 50),
    ScalarOp("tanh", 1, "same", "f", np.tanh, 20),
    ScalarOp("reduce_large", 1, "same", "f", large_angle.reference(0), bits=(64,)),
    ScalarOp("reduce_large_rest", 1, "same", "f", large_angle.reference(1), bits=(64,)),
    ScalarOp("erf", 1, "same", "f", _erf, 30),
    ScalarOp("erfc", 1, "same", "f", _erfc, 35),
    ScalarOp("atan2", 2, "same", "f", np.arctan2, 35),
    ScalarOp("pow", 2, "same", "f", _pow, 80),
]
SCALAR_OPS = {op.name: op for op in _OPS}
FIXED = {
    "pair": ((float32, float32), bfloat16x2),
    "dot2": ((bfloat16x2, bfloat16x2), float32),
    "nibble": ((int32,), float32),
}
"""Types of operands and result for operations with fixed types."""


def result_type(name: str, types: tuple[DType, ...], stated: DType | None = None) -> DType:
    """Return the type of ``name(types)``; raise VerifyError for a wrong application. Casts need ``stated``."""
    op = SCALAR_OPS.get(name)
    if op is None:
        raise VerifyError(f"unknown scalar operation {name}")
    if len(types) != op.arity:
        raise VerifyError(f"{name} takes {op.arity} operands, got {len(types)}")
    if op.rule == "cast":
        kinds = (types[0].kind, stated.kind) if stated is not None else "?"
        same_width = stated is not None and stated.bits == types[0].bits
        impossible = any(k not in op.kinds for k in kinds)
        if impossible or (name == "bitcast" and not same_width):
            raise VerifyError(f"{name} of {types[0]} to {stated} is not possible")
        assert stated is not None
        return stated
    if op.rule == "fixed":
        return _fixed_type(name, types)
    main = types[1] if op.rule == "select" else types[0]
    power = types[-1] if types[-1].is_integer and types[-1].bits == main.bits else main
    expected = {"select": (bool_, main, main), "ldexp": (main, power)}.get(op.rule, (main,) * op.arity)
    if types != expected or main.kind not in op.kinds or main.bits not in op.bits:
        raise VerifyError(f"{name} cannot take ({', '.join(t.name for t in types)})")
    return bool_ if op.rule == "compare" else main


def _fixed_type(name: str, types: tuple[DType, ...]) -> DType:
    expected, result = FIXED[name]
    if types != expected:
        raise VerifyError(f"{name} cannot take ({', '.join(t.name for t in types)})")
    return result
