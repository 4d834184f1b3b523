"""Parts of functions that compute floats in integers: formats, operands, and the one rounding at the end."""

from __future__ import annotations

from collections.abc import Mapping

from graphc.base.records import dataclass


@dataclass(frozen=True)
class SoftFormat:
    """An IEEE format. Mantissas are computed in its integer type, with the leading bit at the second highest place:
    what follows the mantissa are guard bits, the last of which is set where any lower bit was lost."""

    kind: str
    letter: str
    """Letter of its functions: ``__addsf3``."""
    suffix: str
    """Suffix of its C functions."""
    bits: int
    mantissa: int
    """Stored bits of the mantissa."""

    @property
    def bias(self) -> int:
        """Exponent field of 1.0."""
        return (1 << self.bits - 2 - self.mantissa) - 1

    @property
    def guard(self) -> int:
        """Number of guard bits."""
        return self.bits - 2 - self.mantissa

    @property
    def names(self) -> Mapping[str, str | int]:
        """Values for the placeholders of the texts."""
        top = 2 * self.bias + 1
        return {
            **{"kind": self.kind, "t": f"i{self.bits}", "wide": f"i{2 * self.bits}", "bits": self.bits},
            **{"sign_bit": -(1 << self.bits - 1), "magnitude": (1 << self.bits - 1) - 1, "last": self.bits - 1},
            **{"mantissa": self.mantissa, "implicit": 1 << self.mantissa, "fraction": (1 << self.mantissa) - 1},
            **{"bias": self.bias, "below_top": top - 1, "infinity": top << self.mantissa},
            **{"below_infinity": (top << self.mantissa) - 1, "normals": (top - 1) << self.mantissa},
            **{"below_bias": self.bias - 1},
            **{"nan": (2 * top + 1) << self.mantissa - 1, "guard": self.guard, "spare": self.guard + 1},
            **{"below_half": (1 << self.guard - 1) - 1, "leading": 1 << self.bits - 2},
        }


SINGLE, DOUBLE = SoftFormat("float", "s", "f", 32, 23), SoftFormat("double", "d", "", 64, 52)

_END = 'attributes #0 = { nounwind "no-builtins" }\n'

COUNT = "declare {t} @llvm.ctlz.{t}({t}, i1)\n"


def shifted(result: str, value: str, by: str, t: str = "{t}", last: str = "{last}") -> str:
    """Return the lines of a value over a power of two; the last bit is set where any was lost. The value has a bit of
    0 at the top, which a shift beyond the type leaves."""
    r = f"%{result}"
    return f"""\
  {r}.near = icmp ult {t} {by}, {last}
  {r}.by = select i1 {r}.near, {t} {by}, {t} {last}
  {r}.high = lshr {t} {value}, {r}.by
  {r}.back = shl {t} {r}.high, {r}.by
  {r}.lost = icmp ne {t} {r}.back, {value}
  {r}.sticky = zext i1 {r}.lost to {t}
  {r} = or {t} {r}.high, {r}.sticky
"""


def _normal(x: str) -> str:
    """Return the lines of mantissa and exponent field of a normal number; ``%ax`` are the bits without the sign."""
    return f"""\
  %f{x} = lshr {{t}} %a{x}, {{mantissa}}
  %low{x} = and {{t}} %a{x}, {{fraction}}
  %w{x} = or {{t}} %low{x}, {{implicit}}
"""


def any_number(x: str) -> str:
    """Return the lines of mantissa and exponent field of a number that may be subnormal, whose field is below 1."""
    return f"""\
  %zeros{x} = call {{t}} @llvm.ctlz.{{t}}({{t}} %a{x}, i1 true)
  %up{x} = sub {{t}} %zeros{x}, {{spare}}
  %moved{x} = shl {{t}} %a{x}, %up{x}
  %below{x} = sub {{t}} 1, %up{x}
  %field{x} = lshr {{t}} %a{x}, {{mantissa}}
  %part{x} = and {{t}} %a{x}, {{fraction}}
  %with{x} = or {{t}} %part{x}, {{implicit}}
  %small{x} = icmp eq {{t}} %field{x}, 0
  %n{x} = select i1 %small{x}, {{t}} %moved{x}, {{t}} %with{x}
  %g{x} = select i1 %small{x}, {{t}} %below{x}, {{t}} %field{x}
"""


def _joined(x: str) -> str:
    """Return the lines of mantissa ``%mx`` and exponent field ``%ex`` after both kinds of numbers."""
    return f"""\
  %m{x} = phi {{t}} [ %w{x}, %normal ], [ %n{x}, %small ]
  %e{x} = phi {{t}} [ %f{x}, %normal ], [ %g{x}, %small ]
"""


ROUND = (
    """\
  ; A number with %sign, the exponent field %e before its range is known, and the mantissa %m in its place.
  %from_1 = sub {t} %e, 1
  %in_range = icmp ult {t} %from_1, {below_top}
  br i1 %in_range, label %pack, label %beyond
beyond:
  %large = icmp sgt {t} %e, 0
  br i1 %large, label %overflow, label %underflow
overflow:
  %infinite.bits = or {t} %sign, {infinity}
  %infinite.r = bitcast {t} %infinite.bits to {kind}
  ret {kind} %infinite.r
underflow:
  %by_field = sub {t} 1, %e
"""
    + shifted("lowered", "%m", "%by_field")
    + """\
  br label %pack
pack:
  ; The implicit bit of a normal number adds one to the field.
  %field = phi {t} [ %from_1, %round ], [ 0, %underflow ]
  %all = phi {t} [ %m, %round ], [ %lowered, %underflow ]
  %kept = lshr {t} %all, {guard}
  %even = and {t} %kept, 1
  %bias = add {t} %even, {below_half}
  %rounded = add {t} %all, %bias
  %mantissa = lshr {t} %rounded, {guard}
  %place = shl {t} %field, {mantissa}
  %number = add {t} %place, %mantissa
  %signed = or {t} %number, %sign
  %r = bitcast {t} %signed to {kind}
  ret {kind} %r
}}
"""
)
"""End of a function, from its block ``round`` on."""
OPERANDS = """\
  %bx = bitcast {kind} %x to {t}
  %by = bitcast {kind} %y to {t}
  %ax = and {t} %bx, {magnitude}
  %ay = and {t} %by, {magnitude}
"""
FACTORS = (
    """\
  %signs = xor {t} %bx, %by
  %sign = and {t} %signs, {sign_bit}
  %from_x = sub {t} %ax, {implicit}
  %from_y = sub {t} %ay, {implicit}
  %normal_x = icmp ult {t} %from_x, {normals}
  %normal_y = icmp ult {t} %from_y, {normals}
  %usual = and i1 %normal_x, %normal_y
  br i1 %usual, label %normal, label %unusual
unusual:
  ; Each operand may be 0, infinite or no number; others are subnormal or normal.
  %less_x = sub {t} %ax, 1
  %less_y = sub {t} %ay, 1
  %number_x = icmp ult {t} %less_x, {below_infinity}
  %number_y = icmp ult {t} %less_y, {below_infinity}
  %numbers = and i1 %number_x, %number_y
  br i1 %numbers, label %small, label %special
small:
"""
    + any_number("x")
    + any_number("y")
    + """\
  br label %join
normal:
"""
    + _normal("x")
    + _normal("y")
    + """\
  br label %join
join:
"""
    + _joined("x")
    + _joined("y")
)
"""Signs, mantissas and exponents of two operands that are multiplied or divided; others go to the block ``special``."""
WHOLE_PRODUCT = """\
  ; The leading bit of the upper half is the second or third highest.
  %highx = shl {t} %mx, {spare}
  %highy = shl {t} %my, {guard}
  %widex = zext {t} %highx to {wide}
  %widey = zext {t} %highy to {wide}
  %product = mul {wide} %widex, %widey
  %upper = lshr {wide} %product, {bits}
  %ph = trunc {wide} %upper to {t}
  %pl = trunc {wide} %product to {t}
  %exponents = add {t} %ex, %ey
  %ep = sub {t} %exponents, {below_bias}
"""
BY_MAGNITUDE = """\
  %swaps = icmp ugt {t} %ay, %ax
  %a = select i1 %swaps, {t} %ay, {t} %ax
  %b = select i1 %swaps, {t} %ax, {t} %ay
"""
"""The larger and the smaller operand, without their signs."""
EXACT_OR_NAN = """\
  %special.bits = select i1 %invalid, {t} {nan}, {t} %exact
  %special.r = bitcast {t} %special.bits to {kind}
  ret {kind} %special.r
"""
"""End of a block: NaN where the operation is ``%invalid``, else the bits ``%exact``."""
SPECIAL = (
    """\
  %with_zero = select i1 %endless, {t} {infinity}, {t} 0
  %exact = or {t} %with_zero, %sign
"""
    + EXACT_OR_NAN
)
"""The same for results that are infinite where ``%endless``, else 0."""


def function(name: str, result: str, arguments: str, body: str, before: str = "") -> dict[str, str]:
    """Return the text of a function by its name, with what it needs before it."""
    head = f"define weak hidden {result} @{name}({arguments}) #0 {{\n"
    return {name: f"{before}{head}{body}{_END}"}
