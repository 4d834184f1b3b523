"""LLVM text of the range reduction of large f64 angles; it works on single lanes only if one is large.

The 53 bits of an angle are multiplied by those 192 bits of 2/pi that leave out whole turns (Payne and Hanek, 1983). The
fraction, as a sum of two numbers, times pi/2 is the reduced angle.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import pairwise

from graphc.codegen.llvm.module import Function, Item
from graphc.codegen.schedule.expansion.steps import hexes
from graphc.ir.kernel.large_angle import FROM, PARTS, QUADRANT_BITS, WORDS, two_over_pi

_HALF_PI = hexes("0x1.921fb54442d18p+0 0x1.1a62633145c07p-54")
_TABLE = "reduce_large.two_over_pi"
_ATTRIBUTES = 'nounwind noinline "frame-pointer"="none"'


def declare_reduction(name: str, lanes: int, declare: Callable[[str, Item], None]) -> str:
    """Add the function of one part for ``lanes`` lanes (0: a scalar) to the module; return its name."""
    words = ", ".join(f"i64 {word - (1 << 64) if word >> 63 else word}" for word in two_over_pi())
    declare(_TABLE, f"@{_TABLE} = internal constant [{WORDS} x i64] [{words}]")
    declare("llvm.fma.f64", "declare double @llvm.fma.f64(double, double, double)")
    declare("llvm.fshl.i64", "declare i64 @llvm.fshl.i64(i64, i64, i64)")
    declare("llvm.fabs.f64", "declare double @llvm.fabs.f64(double)")
    scalar = f"{name}.f64"
    declare(scalar, _scalar_function(scalar, PARTS.index(name)))
    if not lanes:
        return scalar
    declare(f"llvm.fabs.v{lanes}f64", f"declare <{lanes} x double> @llvm.fabs.v{lanes}f64(<{lanes} x double>)")
    vector = f"{name}.v{lanes}f64"
    declare(vector, _vector_function(vector, scalar, lanes))
    return vector


def _vector_function(name: str, scalar: str, lanes: int) -> Function:
    """Return the vector function: zeros, unless some lane is large."""
    kind = f"<{lanes} x double>"
    lines = [
        f"  %size = call {kind} @llvm.fabs.v{lanes}f64({kind} %x)",
        f"  %large = fcmp ogt {kind} %size, splat (double {_double(FROM)})",
        f"  %bits = bitcast <{lanes} x i1> %large to i{lanes}",
        f"  %any = icmp ne i{lanes} %bits, 0",
        "  br i1 %any, label %some, label %none",
        "none:",
        f"  ret {kind} zeroinitializer",
        "some:",
    ]
    result = "zeroinitializer"
    for i in range(lanes):
        lines += [
            f"  %x{i} = extractelement {kind} %x, i32 {i}",
            f"  %y{i} = call double @{scalar}(double %x{i})",
            f"  %r{i} = insertelement {kind} {result}, double %y{i}, i32 {i}",
        ]
        result = f"%r{i}"
    body = "\n".join([*lines, f"  ret {kind} {result}"])
    return Function(name, ((kind, "%x"),), body, kind, _ATTRIBUTES, calls=True)


def _double(value: float) -> str:
    return "0x" + struct.pack(">d", value).hex().upper()


class _Writer:
    """Lines of one function, each with a result."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, expression: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {expression}")
        return name

    def float(self, op: str, a: str, b: str | float) -> str:
        """Append a sum, difference or product of doubles."""
        return self(f"{op} double {a}, {_double(b) if isinstance(b, float) else b}")

    def sum(self, a: str, b: str) -> tuple[str, str]:
        """Append a sum; return it rounded, and its rounding error. ``a`` is the larger operand, or 0."""
        total = self.float("fadd", a, b)
        return total, self.float("fsub", b, self.float("fsub", total, a))


def _scalar_function(name: str, index: int) -> Function:
    """Return the scalar function: the encoded angle, or its rest, of a large number; 0 for others."""
    w = _Writer()
    w.lines = [
        "  %size = call double @llvm.fabs.f64(double %x)",
        f"  %large = fcmp ogt double %size, {_double(FROM)}",
        "  br i1 %large, label %some, label %none",
        "none:",
        "  ret double 0.0",
        "some:",
    ]
    turns, high, low = _behind_the_point(w, *_product(w))
    r, rest = _times_half_pi(w, high, low)
    negative = w("fcmp olt double %x, 0.0")
    result = w(f"select i1 {negative}, double {w(f'fneg double {(r, rest)[index]}')}, double {(r, rest)[index]}")
    if index == 0:
        signed = w(f"select i1 {negative}, i64 {w(f'sub i64 0, {turns}')}, i64 {turns}")
        exponent = w(f"shl i64 {w(f'and i64 {signed}, 3')}, {52 + QUADRANT_BITS}")
        bits = w(f"add i64 {w(f'bitcast double {result} to i64')}, {exponent}")
        result = w(f"bitcast i64 {bits} to double")
    result = w.float("fadd", result, w.float("fsub", "%x", "%x"))  # NaN of infinities
    body = "\n".join([*w.lines, f"  ret double {result}"])
    return Function(name, (("double", "%x"),), body, "double", _ATTRIBUTES)


def _product(w: _Writer) -> tuple[str, str, str]:
    """Return three words of the angle in quarter turns modulo 4: the binary point is after the first two bits."""
    bits = w("bitcast double %size to i64")
    exponent = w(f"lshr i64 {bits}, 52")
    mantissa = w(f"or i64 {w(f'and i64 {bits}, {2**52 - 1}')}, {2**52}")
    start = w(f"sub i64 {exponent}, {1075 + 2 - 64}")
    first, shift = w(f"lshr i64 {start}, 6"), w(f"and i64 {start}, 63")
    words = []
    for k in range(4):
        at = w(f"add i64 {first}, {k}")
        address = w(f"getelementptr [{WORDS} x i64], ptr @{_TABLE}, i64 0, i64 {at}")
        words.append(w(f"load i64, ptr {address}"))
    q = [w(f"call i64 @llvm.fshl.i64(i64 {a}, i64 {b}, i64 {shift})") for a, b in pairwise(words)]
    wide = w(f"zext i64 {mantissa} to i128")
    low = w(f"mul i128 {w(f'zext i64 {q[2]} to i128')}, {wide}")
    middle = w(f"mul i128 {w(f'zext i64 {q[1]} to i128')}, {wide}")
    middle = w(f"add i128 {middle}, {w(f'lshr i128 {low}, 64')}")
    carry = w(f"trunc i128 {w(f'lshr i128 {middle}, 64')} to i64")
    high = w(f"add i64 {w(f'mul i64 {q[0]}, {mantissa}')}, {carry}")
    return high, w(f"trunc i128 {middle} to i64"), w(f"trunc i128 {low} to i64")


def _behind_the_point(w: _Writer, f0: str, f1: str, f2: str) -> tuple[str, str, str]:
    """Return the nearest whole number of quarter turns, and the remainder from -1/2 to 1/2 as a sum of two numbers."""
    turns = w(f"lshr i64 {w(f'add i64 {f0}, {1 << 61}')}, 62")
    g0 = w(f"call i64 @llvm.fshl.i64(i64 {f0}, i64 {f1}, i64 2)")
    g1 = w(f"call i64 @llvm.fshl.i64(i64 {f1}, i64 {f2}, i64 2)")
    pieces = [w(f"sitofp i64 {w(f'ashr i64 {g0}, 32')} to double")]
    for word, which in ((g0, "and"), (g1, "lshr"), (g1, "and")):
        half = w(f"{which} i64 {word}, {2**32 - 1 if which == 'and' else 32}")
        pieces.append(w(f"sitofp i64 {half} to double"))
    scaled = [w.float("fmul", piece, 2.0 ** (-32 * (k + 1))) for k, piece in enumerate(pieces)]
    total, lost = scaled[0], []
    for piece in scaled[1:]:
        total, rest = w.sum(total, piece)
        lost.append(rest)
    rest = w.float("fadd", lost[0], w.float("fadd", lost[1], lost[2]))
    return turns, *w.sum(total, rest)


def _times_half_pi(w: _Writer, high: str, low: str) -> tuple[str, str]:
    """Return the product of a sum of two numbers and pi/2, as such a sum."""
    first = w.float("fmul", high, _HALF_PI[0])
    factor, negated = _double(_HALF_PI[0]), w(f"fneg double {first}")
    exact = w(f"call double @llvm.fma.f64(double {high}, double {factor}, double {negated})")
    cross = w.float("fadd", w.float("fmul", high, _HALF_PI[1]), w.float("fmul", low, _HALF_PI[0]))
    return w.sum(first, w.float("fadd", exact, cross))
