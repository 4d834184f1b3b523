"""Arithmetic of f32 and f64 in integers, as LLVM text, for processors that have none, and division of 64-bit integers.

LLVM calls these functions by the names of the compiler's runtime library (libgcc, compiler-rt). Results are those of
IEEE 754: rounded to nearest, ties to even, with subnormal numbers, infinities and signed zeros. A NaN is quiet,
positive and without payload, as on RISC-V with floating point. Conversions to integers take the nearest limit of the
type.

Functions are weak, so that a program may also link those of its compiler, which stand in other groups.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphc.base.records import dataclass


@dataclass(frozen=True)
class _Format:
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
            **{"bias": self.bias, "top": top, "below_top": top - 1, "infinity": top << self.mantissa},
            **{"below_infinity": (top << self.mantissa) - 1, "normals": (top - 1) << self.mantissa},
            **{"below_bias": self.bias - 1},
            **{"nan": (2 * top + 1) << self.mantissa - 1, "guard": self.guard, "spare": self.guard + 1},
            **{"below_half": (1 << self.guard - 1) - 1, "leading": 1 << self.bits - 2, "second": self.bits - 2},
        }


_SINGLE, _DOUBLE = _Format("float", "s", "f", 32, 23), _Format("double", "d", "", 64, 52)

_END = 'attributes #0 = { nounwind "no-builtins" }\n'

_COUNT = "declare {t} @llvm.ctlz.{t}({t}, i1)\n"


def _shifted(result: str, value: str, by: str, t: str = "{t}", last: str = "{last}") -> str:
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


def _any(x: str) -> str:
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


_ROUND = (
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
    + _shifted("lowered", "%m", "%by_field")
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
_OPERANDS = """\
  %bx = bitcast {kind} %x to {t}
  %by = bitcast {kind} %y to {t}
  %ax = and {t} %bx, {magnitude}
  %ay = and {t} %by, {magnitude}
"""
_FACTORS = (
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
    + _any("x")
    + _any("y")
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
_WHOLE_PRODUCT = """\
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
_SPECIAL = """\
  %with_zero = select i1 %endless, {t} {infinity}, {t} 0
  %exact = or {t} %with_zero, %sign
  %special.bits = select i1 %invalid, {t} {nan}, {t} %exact
  %special.r = bitcast {t} %special.bits to {kind}
  ret {kind} %special.r
"""
_SUM = (
    """\
  %bx = bitcast {kind} %x to {t}
  %of_y = bitcast {kind} %y to {t}
  %by = xor {t} %of_y, {flip}
  %ax = and {t} %bx, {magnitude}
  %ay = and {t} %by, {magnitude}
  %swaps = icmp ugt {t} %ay, %ax
  %a = select i1 %swaps, {t} %ay, {t} %ax
  %b = select i1 %swaps, {t} %ax, {t} %ay
  %of_a = select i1 %swaps, {t} %by, {t} %bx
  %sign = and {t} %of_a, {sign_bit}
  %signs = xor {t} %bx, %by
  %differ = icmp slt {t} %signs, 0
  %endless = icmp uge {t} %a, {infinity}
  br i1 %endless, label %special, label %finite
special:
  %no_number = icmp ugt {t} %a, {infinity}
  %equal = icmp eq {t} %a, %b
  %opposite = and i1 %equal, %differ
  %invalid = or i1 %no_number, %opposite
"""
    + _SPECIAL
    + """\
finite:
  %fa = lshr {t} %a, {mantissa}
  %fb = lshr {t} %b, {mantissa}
  %la = and {t} %a, {fraction}
  %lb = and {t} %b, {fraction}
  %wa = or {t} %la, {implicit}
  %wb = or {t} %lb, {implicit}
  %smalla = icmp eq {t} %fa, 0
  %smallb = icmp eq {t} %fb, 0
  %ua = select i1 %smalla, {t} %la, {t} %wa
  %ub = select i1 %smallb, {t} %lb, {t} %wb
  %ea = select i1 %smalla, {t} 1, {t} %fa
  %eb = select i1 %smallb, {t} 1, {t} %fb
  %ma = shl {t} %ua, {guard}
  %mb0 = shl {t} %ub, {guard}
  %distance = sub {t} %ea, %eb
"""
    + _shifted("mb", "%mb0", "%distance")
    + """\
  br i1 %differ, label %subtract, label %add
add:
  ; A sum may take the highest bit, and is halved then.
  %sum = add {t} %ma, %mb
  %carries = lshr {t} %sum, {last}
  %out = and {t} %sum, %carries
  %half = lshr {t} %sum, %carries
  %m.sum = or {t} %half, %out
  %e.sum = add {t} %ea, %carries
  br label %check
subtract:
  %difference = sub {t} %ma, %mb
  br label %check
check:
  %m0 = phi {t} [ %m.sum, %add ], [ %difference, %subtract ]
  %e0 = phi {t} [ %e.sum, %add ], [ %ea, %subtract ]
  %in_place = icmp uge {t} %m0, {leading}
  br i1 %in_place, label %round, label %low
low:
  %zero = icmp eq {t} %m0, 0
  br i1 %zero, label %nothing, label %normalize
nothing:
  ; Equal numbers of other signs are +0, but -0 and -0 are -0.
  %of_zero = select i1 %differ, {t} 0, {t} %sign
  %zero.r = bitcast {t} %of_zero to {kind}
  ret {kind} %zero.r
normalize:
  %zeros = call {t} @llvm.ctlz.{t}({t} %m0, i1 true)
  %up = sub {t} %zeros, 1
  %moved = shl {t} %m0, %up
  %lower = sub {t} %e0, %up
  br label %round
round:
  %m = phi {t} [ %m0, %check ], [ %moved, %normalize ]
  %e = phi {t} [ %e0, %check ], [ %lower, %normalize ]
"""
    + _ROUND
)
_PRODUCT = (
    _OPERANDS
    + _FACTORS
    + _WHOLE_PRODUCT
    + """\
  %any = icmp ne {t} %pl, 0
  %sticky = zext i1 %any to {t}
  %short = icmp ult {t} %ph, {leading}
  %fewer = zext i1 %short to {t}
  %moved = shl {t} %ph, %fewer
  %e = sub {t} %ep, %fewer
  %m = or {t} %moved, %sticky
  br label %round
special:
  %swaps = icmp ugt {t} %ay, %ax
  %a = select i1 %swaps, {t} %ay, {t} %ax
  %b = select i1 %swaps, {t} %ax, {t} %ay
  %no_number = icmp ugt {t} %a, {infinity}
  %endless = icmp eq {t} %a, {infinity}
  %zero = icmp eq {t} %b, 0
  %of_zero = and i1 %endless, %zero
  %invalid = or i1 %no_number, %of_zero
"""
    + _SPECIAL
    + "round:\n"
    + _ROUND
)
_QUOTIENT = (
    _OPERANDS
    + _FACTORS
    + """\
  %distance = sub {t} %ex, %ey
  %less = icmp ult {t} %mx, %my
  %fewer = zext i1 %less to {t}
  %dividend = shl {t} %mx, %fewer
  %e0 = add {t} %distance, {bias}
  %e = sub {t} %e0, %fewer
  ; The quotient begins with 1. Each step divides as many further bits as fit beside the mantissa.
  %rest.0 = sub {t} %dividend, %my
{steps}
  %any = icmp ne {t} %rest.{count}, 0
  %sticky = zext i1 %any to {t}
  %placed = shl {t} %quotient.{count}, {unused}
  %m = or {t} %placed, %sticky
  br label %round
special:
  %nox = icmp ugt {t} %ax, {infinity}
  %noy = icmp ugt {t} %ay, {infinity}
  %alike = icmp eq {t} %ax, %ay
  %no_number = or i1 %nox, %noy
  %invalid = or i1 %no_number, %alike
  %endx = icmp eq {t} %ax, {infinity}
  %zeroy = icmp eq {t} %ay, 0
  %endless = or i1 %endx, %zeroy
"""
    + _SPECIAL
    + "round:\n"
    + _ROUND
)
_STEP = """\
  %shifted.{i} = shl {t} %rest.{i}, {spare}
  %digit.{i} = udiv {t} %shifted.{i}, %my
  %times.{i} = mul {t} %digit.{i}, %my
  %rest.{next} = sub {t} %shifted.{i}, %times.{i}
  %before.{i} = shl {t} {quotient}, {spare}
  %quotient.{next} = or {t} %before.{i}, %digit.{i}"""
_ROOT = (
    """\
  %b = bitcast {kind} %x to {t}
  %ax = and {t} %b, {magnitude}
  %below = sub {t} %b, 1
  %usual = icmp ult {t} %below, {below_infinity}
  br i1 %usual, label %finite, label %special
special:
  %zero = icmp eq {t} %ax, 0
  %infinite = icmp eq {t} %b, {infinity}
  %same = or i1 %zero, %infinite
  %special.bits = select i1 %same, {t} %b, {t} {nan}
  %special.r = bitcast {t} %special.bits to {kind}
  ret {kind} %special.r
finite:
"""
    + _any("x")
    + """\
  ; The exponent of x becomes even. Each step finds a bit of the root: twice the root so far and the bit is what the
  ; rest must hold, which is doubled after each step.
  %unbiased = sub {t} %gx, {bias}
  %odd = and {t} %unbiased, 1
  %radicand = shl {t} %nx, %odd
  %halved = ashr {t} %unbiased, 1
  %e = add {t} %halved, {bias}
  %first = shl {t} %radicand, 1
  br label %step
step:
  %bit = phi {t} [ {first_bit}, %finite ], [ %next_bit, %step ]
  %rest = phi {t} [ %first, %finite ], [ %doubled, %step ]
  %twice = phi {t} [ 0, %finite ], [ %twice.next, %step ]
  %root = phi {t} [ 0, %finite ], [ %root.next, %step ]
  %needed = add {t} %twice, %bit
  %fits = icmp ule {t} %needed, %rest
  %two_bits = shl {t} %bit, 1
  %twice.more = add {t} %twice, %two_bits
  %root.more = add {t} %root, %bit
  %rest.less = sub {t} %rest, %needed
  %twice.next = select i1 %fits, {t} %twice.more, {t} %twice
  %root.next = select i1 %fits, {t} %root.more, {t} %root
  %rest.next = select i1 %fits, {t} %rest.less, {t} %rest
  %doubled = shl {t} %rest.next, 1
  %next_bit = lshr {t} %bit, 1
  %done = icmp eq {t} %next_bit, 0
  br i1 %done, label %found, label %step
found:
  %any = icmp ne {t} %doubled, 0
  %sticky = zext i1 %any to {t}
  %placed = shl {t} %root.next, {root_place}
  %m = or {t} %placed, %sticky
  %sign = and {t} %b, {sign_bit}
  br label %round
round:
"""
    + _ROUND
)
_MULTIPLY_ADD = (
    _OPERANDS
    + """\
  %bz = bitcast {kind} %z to {t}
  %az = and {t} %bz, {magnitude}
"""
    + _FACTORS
    + _WHOLE_PRODUCT
    + """\
  %endz = icmp uge {t} %az, {infinity}
  br i1 %endz, label %term_alone, label %align
term_alone:
  %no_term = icmp ugt {t} %az, {infinity}
  %term.bits = select i1 %no_term, {t} {nan}, {t} %bz
  %term.r = bitcast {t} %term.bits to {kind}
  ret {kind} %term.r
align:
  ; The term has its leading bit at the second highest place of the upper of two words; above is room for a sum.
  %fz = lshr {t} %az, {mantissa}
  %lz = and {t} %az, {fraction}
  %withz = or {t} %lz, {implicit}
  %smallz = icmp eq {t} %fz, 0
  %mz = select i1 %smallz, {t} %lz, {t} %withz
  %ez = select i1 %smallz, {t} 1, {t} %fz
  %zh = shl {t} %mz, {guard}
  %d = sub {t} %ep, %ez
  %lower = icmp slt {t} %d, 0
  br i1 %lower, label %lower_product, label %lower_term
lower_term:
  %near = icmp ult {t} %d, {bits}
  br i1 %near, label %term_near, label %term_far
term_near:
  ; The guard bits of the term are 0, and go to the lower word with others: none is lost.
  %zh.n = lshr {t} %zh, %d
  %back = sub {t} {last}, %d
  %zh.2 = shl {t} %zh, 1
  %zl.n = shl {t} %zh.2, %back
  br label %combine
term_far:
  %word_d = sub {t} %d, {bits}
"""
    + _shifted("zl.f", "%zh", "%word_d")
    + """\
  br label %combine
lower_product:
  %by_p = sub {t} 0, %d
  %near_p = icmp ult {t} %by_p, {bits}
  br i1 %near_p, label %product_near, label %product_far
product_near:
  %back_p = sub {t} {last}, %by_p
  %ph.n = lshr {t} %ph, %by_p
  %ph.2 = shl {t} %ph, 1
  %into = shl {t} %ph.2, %back_p
  %pl.s = lshr {t} %pl, %by_p
  %pl.2 = shl {t} %pl, 1
  %gone_p = shl {t} %pl.2, %back_p
  %lost_p = icmp ne {t} %gone_p, 0
  %sticky_p = zext i1 %lost_p to {t}
  %both_p = or {t} %into, %pl.s
  %pl.n = or {t} %both_p, %sticky_p
  br label %combine
product_far:
  %word_p = sub {t} %by_p, {bits}
"""
    + _shifted("ph.f", "%ph", "%word_p")
    + """\
  %low_p = icmp ne {t} %pl, 0
  %sticky_f = zext i1 %low_p to {t}
  %pl.f = or {t} %ph.f, %sticky_f
  br label %combine
combine:
  %vh = phi {t} [ %ph, %term_near ], [ %ph, %term_far ], [ %ph.n, %product_near ], [ 0, %product_far ]
  %vl = phi {t} [ %pl, %term_near ], [ %pl, %term_far ], [ %pl.n, %product_near ], [ %pl.f, %product_far ]
  %th = phi {t} [ %zh.n, %term_near ], [ 0, %term_far ], [ %zh, %product_near ], [ %zh, %product_far ]
  %tl = phi {t} [ %zl.n, %term_near ], [ %zl.f, %term_far ], [ 0, %product_near ], [ 0, %product_far ]
  %e0 = phi {t} [ %ep, %term_near ], [ %ep, %term_far ], [ %ez, %product_near ], [ %ez, %product_far ]
  %with_z = xor {t} %sign, %bz
  %differ = icmp slt {t} %with_z, 0
  br i1 %differ, label %subtract, label %add
add:
  %sl = add {t} %vl, %tl
  %carry0 = icmp ult {t} %sl, %vl
  %carry = zext i1 %carry0 to {t}
  %sh0 = add {t} %vh, %th
  %sh = add {t} %sh0, %carry
  br label %check
subtract:
  %dl = sub {t} %vl, %tl
  %borrow0 = icmp ult {t} %vl, %tl
  %borrow = zext i1 %borrow0 to {t}
  %dh0 = sub {t} %vh, %th
  %dh = sub {t} %dh0, %borrow
  %negative = icmp slt {t} %dh, 0
  br i1 %negative, label %turn, label %check
turn:
  %nl = sub {t} 0, %dl
  %some = icmp ne {t} %dl, 0
  %less1 = sext i1 %some to {t}
  %nh0 = sub {t} 0, %dh
  %nh = add {t} %nh0, %less1
  %sign.z = and {t} %bz, {sign_bit}
  br label %check
check:
  %high = phi {t} [ %sh, %add ], [ %dh, %subtract ], [ %nh, %turn ]
  %low = phi {t} [ %sl, %add ], [ %dl, %subtract ], [ %nl, %turn ]
  %sign.0 = phi {t} [ %sign, %add ], [ %sign, %subtract ], [ %sign.z, %turn ]
  %in_place = icmp uge {t} %high, {leading}
  br i1 %in_place, label %halve, label %double
halve:
  ; A sum may take the highest bit.
  %carries = lshr {t} %high, {last}
  %out = and {t} %high, %carries
  %high.h = lshr {t} %high, %carries
  %low.h = or {t} %low, %out
  %e.h = add {t} %e0, %carries
  br label %finish
double:
  ; One place is missing most often.
  %low.top = lshr {t} %low, {last}
  %high.2 = shl {t} %high, 1
  %high.d = or {t} %high.2, %low.top
  %low.d = shl {t} %low, 1
  %e.d = sub {t} %e0, 1
  %now = icmp uge {t} %high.d, {leading}
  br i1 %now, label %finish, label %further
further:
  %upper_some = icmp ne {t} %high.d, 0
  br i1 %upper_some, label %some_places, label %word_up
word_up:
  %nothing = icmp eq {t} %low.d, 0
  br i1 %nothing, label %gone, label %lift_word
gone:
  ret {kind} 0.0
lift_word:
  %zeros.w = call {t} @llvm.ctlz.{t}({t} %low.d, i1 true)
  %high.w0 = shl {t} %low.d, %zeros.w
  %high.w = lshr {t} %high.w0, 1
  %low.w = and {t} %high.w0, 1
  %places.w = add {t} %zeros.w, {last}
  %e.w = sub {t} %e.d, %places.w
  br label %finish
some_places:
  %zeros.s = call {t} @llvm.ctlz.{t}({t} %high.d, i1 true)
  %places.s = sub {t} %zeros.s, 1
  %back.s = sub {t} {bits}, %places.s
  %high.s0 = shl {t} %high.d, %places.s
  %from_low = lshr {t} %low.d, %back.s
  %high.s = or {t} %high.s0, %from_low
  %low.s = shl {t} %low.d, %places.s
  %e.s = sub {t} %e.d, %places.s
  br label %finish
finish:
  %top = phi {t} [ %high.h, %halve ], [ %high.d, %double ], [ %high.w, %lift_word ], [ %high.s, %some_places ]
  %rest = phi {t} [ %low.h, %halve ], [ %low.d, %double ], [ %low.w, %lift_word ], [ %low.s, %some_places ]
  %e = phi {t} [ %e.h, %halve ], [ %e.d, %double ], [ %e.w, %lift_word ], [ %e.s, %some_places ]
  %any = icmp ne {t} %rest, 0
  %sticky = zext i1 %any to {t}
  %m = or {t} %top, %sticky
  br label %round
special:
  ; A product that is 0, infinite or no number, and a term of any kind.
  %swaps = icmp ugt {t} %ay, %ax
  %a = select i1 %swaps, {t} %ay, {t} %ax
  %b = select i1 %swaps, {t} %ax, {t} %ay
  %no_factor = icmp ugt {t} %a, {infinity}
  %no_z = icmp ugt {t} %az, {infinity}
  %endless = icmp eq {t} %a, {infinity}
  %endless_z = icmp eq {t} %az, {infinity}
  %zero = icmp eq {t} %b, 0
  %zero_z = icmp eq {t} %az, 0
  %signs_z = xor {t} %sign, %bz
  %opposite = icmp slt {t} %signs_z, 0
  %of_zero = and i1 %endless, %zero
  %ends = and i1 %endless, %endless_z
  %difference = and i1 %ends, %opposite
  %invalid0 = or i1 %no_factor, %no_z
  %invalid1 = or i1 %of_zero, %difference
  %invalid = or i1 %invalid0, %invalid1
  %infinite = or {t} %sign, {infinity}
  %zeros = and {t} %sign, %bz
  %of_term = select i1 %zero_z, {t} %zeros, {t} %bz
  %exact = select i1 %endless, {t} %infinite, {t} %of_term
  %special.bits = select i1 %invalid, {t} {nan}, {t} %exact
  %special.r = bitcast {t} %special.bits to {kind}
  ret {kind} %special.r
round:
"""
    + _ROUND.replace("%sign,", "%sign.0,").replace("%sign\n", "%sign.0\n")
)
_COMPARE = """\
  %bx = bitcast {kind} %x to {t}
  %by = bitcast {kind} %y to {t}
  %ax = and {t} %bx, {magnitude}
  %ay = and {t} %by, {magnitude}
  %nox = icmp ugt {t} %ax, {infinity}
  %noy = icmp ugt {t} %ay, {infinity}
  %unordered = or i1 %nox, %noy
  br i1 %unordered, label %none, label %compare
none:
  ret i32 {none}
compare:
  ; Integers in the order of the numbers: those of -0 and 0 are equal.
  %negx = ashr {t} %bx, {last}
  %negy = ashr {t} %by, {last}
  %flipx = xor {t} %ax, %negx
  %flipy = xor {t} %ay, %negy
  %kx = sub {t} %flipx, %negx
  %ky = sub {t} %flipy, %negy
  %more = icmp sgt {t} %kx, %ky
  %less = icmp slt {t} %kx, %ky
  %above = zext i1 %more to i32
  %below = sext i1 %less to i32
  %order = or i32 %above, %below
  ret i32 {ordered}
}}
"""
_TO_INTEGER = """\
  %b = bitcast {kind} %x to {t}
  %a = and {t} %b, {magnitude}
  %field = lshr {t} %a, {mantissa}
  %fraction = and {t} %a, {fraction}
  %with = or {t} %fraction, {implicit}
  %m = {widen} {t} %with to {work}
  %e0 = {widen} {t} %field to {work}
  %e = sub {work} %e0, {bias}
  %negative = icmp slt {t} %b, 0
  %below_1 = icmp slt {work} %e, 0
  br i1 %below_1, label %zero, label %some
zero:
  ret {integer} 0
some:
  %far = icmp sge {work} %e, {value_bits}
  br i1 %far, label %limit, label %near
limit:
  %none = icmp ugt {t} %a, {infinity}
  %number = xor i1 %none, true
  %low = and i1 %negative, %number
  %least = select i1 %low, {integer} {smallest}, {integer} {largest}
  ret {integer} %least
near:
  %places = sub {work} %e, {mantissa}
  %left = icmp sge {work} %places, 0
  %down = sub {work} 0, %places
  br i1 %left, label %grow, label %cut
grow:
  %grown = shl {work} %m, %places
  br label %give
cut:
  %short = lshr {work} %m, %down
  br label %give
give:
  %value = phi {work} [ %grown, %grow ], [ %short, %cut ]
  %integer = {narrow} {work} %value to {integer}
  %minus = sub {integer} 0, %integer
  %r = select i1 %negative, {integer} {of_negative}, {integer} %integer
  ret {integer} %r
}}
"""
_FROM_INTEGER = (
    """\
  %mask = {sign}
  %flipped = xor {integer} %x, %mask
  %magnitude = sub {integer} %flipped, %mask
  %a = {widen} {integer} %magnitude to {work}
  %zero = icmp eq {work} %a, 0
  br i1 %zero, label %nothing, label %some
nothing:
  ret {kind} 0.0
some:
  %zeros = call {work} @llvm.ctlz.{work}({work} %a, i1 true)
  %lifted = shl {work} %a, %zeros
  %e0 = sub {work} {first}, %zeros
"""
    + _shifted("placed", "%lifted", "{down}", "{work}", "{work_last}")
    + """\
  %m = {narrow} {work} %placed to {t}
  %e = {narrow} {work} %e0 to {t}
  %negative = icmp ne {integer} %mask, 0
  %sign = select i1 %negative, {t} {sign_bit}, {t} 0
  br label %round
round:
"""
    + _ROUND
)
_EXTEND = (
    """\
  %b = bitcast float %x to i32
  %ax = and i32 %b, 2147483647
  %wide = zext i32 %b to i64
  %upper = shl i64 %wide, 32
  %sign = and i64 %upper, -9223372036854775808
  %less = sub i32 %ax, 1
  %usual = icmp ult i32 %less, {below_infinity}
  br i1 %usual, label %finite, label %special
special:
  %endless = icmp eq i32 %ax, {infinity}
  %no_number = icmp ugt i32 %ax, {infinity}
  %zero_or_infinite = select i1 %endless, i64 9218868437227405312, i64 0
  %exact = or i64 %zero_or_infinite, %sign
  %special.r = select i1 %no_number, i64 9221120237041090560, i64 %exact
  %r0 = bitcast i64 %special.r to double
  ret double %r0
finite:
"""
    + _any("x")
    + """\
  ; The implicit bit adds one to the field.
  %e1 = add i32 %gx, 895
  %e = zext i32 %e1 to i64
  %m1 = zext i32 %nx to i64
  %m = shl i64 %m1, 29
  %place = shl i64 %e, 52
  %number = add i64 %place, %m
  %signed = or i64 %number, %sign
  %r = bitcast i64 %signed to double
  ret double %r
}}
"""
)
_TRUNCATE = (
    """\
  %b = bitcast double %x to i64
  %upper = lshr i64 %b, 32
  %word = trunc i64 %upper to i32
  %sign = and i32 %word, {sign_bit}
  %a = and i64 %b, 9223372036854775807
  %special = icmp uge i64 %a, 9218868437227405312
  br i1 %special, label %endless, label %finite
endless:
  %no_number = icmp ugt i64 %a, 9218868437227405312
  %infinite = or i32 %sign, {infinity}
  %endless.r = select i1 %no_number, i32 {nan}, i32 %infinite
  %r0 = bitcast i32 %endless.r to float
  ret float %r0
finite:
  ; Subnormal numbers are far below the smallest f32 with the implicit bit too.
  %fraction = and i64 %a, 4503599627370495
  %m0 = or i64 %fraction, 4503599627370496
"""
    + _shifted("m1", "%m0", "22", "i64", "63")
    + """\
  %m = trunc i64 %m1 to i32
  %field0 = lshr i64 %a, 52
  %field1 = trunc i64 %field0 to i32
  %e = sub i32 %field1, 896
  br label %round
round:
"""
    + _ROUND
)
_DIVIDE = """\
declare i64 @llvm.ctlz.i64(i64, i1)
; Quotient and rest, by one bit after the other where a number has more than 32 bits.
define internal { i64, i64 } @divided(i64 %n, i64 %d) alwaysinline #0 {
  %either = or i64 %n, %d
  %short = icmp ult i64 %either, 4294967296
  br i1 %short, label %words, label %compare
words:
  %n32 = trunc i64 %n to i32
  %d32 = trunc i64 %d to i32
  %q32 = udiv i32 %n32, %d32
  %r32 = urem i32 %n32, %d32
  %qw = zext i32 %q32 to i64
  %rw = zext i32 %r32 to i64
  br label %done
compare:
  %less = icmp ult i64 %n, %d
  br i1 %less, label %done, label %begin
begin:
  %zeros_n = call i64 @llvm.ctlz.i64(i64 %n, i1 false)
  %zeros_d = call i64 @llvm.ctlz.i64(i64 %d, i1 false)
  %by = sub i64 %zeros_d, %zeros_n
  %first = shl i64 %d, %by
  br label %step
step:
  %left = phi i64 [ %by, %begin ], [ %fewer, %step ]
  %part = phi i64 [ %first, %begin ], [ %halved, %step ]
  %r = phi i64 [ %n, %begin ], [ %r.next, %step ]
  %q = phi i64 [ 0, %begin ], [ %q.next, %step ]
  %fits = icmp uge i64 %r, %part
  %r.less = sub i64 %r, %part
  %r.next = select i1 %fits, i64 %r.less, i64 %r
  %twice = shl i64 %q, 1
  %bit = zext i1 %fits to i64
  %q.next = or i64 %twice, %bit
  %halved = lshr i64 %part, 1
  %fewer = sub i64 %left, 1
  %last = icmp eq i64 %left, 0
  br i1 %last, label %done, label %step
done:
  %quotient = phi i64 [ %qw, %words ], [ 0, %compare ], [ %q.next, %step ]
  %rest = phi i64 [ %rw, %words ], [ %n, %compare ], [ %r.next, %step ]
  %one = insertvalue { i64, i64 } poison, i64 %quotient, 0
  %both = insertvalue { i64, i64 } %one, i64 %rest, 1
  ret { i64, i64 } %both
}
"""
_UNSIGNED = """\
  %both = call {{ i64, i64 }} @divided(i64 %x, i64 %y)
  %r = extractvalue {{ i64, i64 }} %both, {which}
  ret i64 %r
}}
"""
_SIGNED = """\
  %negx = ashr i64 %x, 63
  %negy = ashr i64 %y, 63
  %flipx = xor i64 %x, %negx
  %flipy = xor i64 %y, %negy
  %n = sub i64 %flipx, %negx
  %d = sub i64 %flipy, %negy
  %both = call {{ i64, i64 }} @divided(i64 %n, i64 %d)
  %result = extractvalue {{ i64, i64 }} %both, {which}
  %negative = {sign}
  %flipped = xor i64 %result, %negative
  %r = sub i64 %flipped, %negative
  ret i64 %r
}}
"""


def _function(name: str, result: str, arguments: str, body: str, before: str = "") -> dict[str, str]:
    """Return the text of a function by its name, with what it needs before it."""
    head = f"define weak hidden {result} @{name}({arguments}) #0 {{\n"
    return {name: f"{before}{head}{body}{_END}"}


def _arithmetic(f: _Format) -> dict[str, str]:
    names = dict(f.names)
    kind, count = f.kind, _COUNT.format(**names)
    steps = -(-(f.mantissa + 1) // (f.guard + 1))
    division = [_STEP.format(i=i, next=i + 1, quotient=f"%quotient.{i}" if i else "1", **names) for i in range(steps)]
    names |= {"steps": "\n".join(division), "count": steps, "unused": f.bits - 2 - steps * (f.guard + 1)}
    names |= {"first_bit": 2 << f.mantissa, "root_place": f.guard - 1}
    two, three = f"{kind} %x, {kind} %y", f"{kind} %x, {kind} %y, {kind} %z"
    texts = dict[str, str]()
    for name, flip in (("add", 0), ("sub", names["sign_bit"])):
        texts |= _function(f"__{name}{f.letter}f3", kind, two, _SUM.format(flip=flip, **names), count)
    for name, arguments, body in (
        (f"__mul{f.letter}f3", two, _PRODUCT),
        (f"__div{f.letter}f3", two, _QUOTIENT),
        (f"sqrt{f.suffix}", f"{kind} %x", _ROOT),
        (f"fma{f.suffix}", three, _MULTIPLY_ADD),
    ):
        texts |= _function(name, kind, arguments, body.format(**names), count)
    for name, none, ordered in (
        *((name, 1, "%order") for name in ("eq", "ne", "lt", "le")),
        *((name, -1, "%order") for name in ("gt", "ge")),
        ("unord", 1, "0"),
    ):
        body = _COMPARE.format(none=none, ordered=ordered, **names)
        texts |= _function(f"__{name}{f.letter}f2", "i32", two, body)
    return texts


def _conversions(f: _Format, bits: int) -> dict[str, str]:
    """Return the conversions between a format and integers, signed and unsigned."""
    texts, integer, t, work = dict[str, str](), f"i{bits}", f"i{f.bits}", f"i{max(bits, f.bits)}"
    letters, count = "sd"[bits > 32] + "i", _COUNT.format(t=work)
    for unsigned in (False, True):
        limits = (0, -1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
        body = _TO_INTEGER.format(
            integer=integer,
            work=work,
            widen="bitcast" if work == t else "zext",
            narrow="bitcast" if work == integer else "trunc",
            value_bits=bits if unsigned else bits - 1,
            smallest=limits[0],
            largest=limits[1],
            of_negative="0" if unsigned else "%minus",
            **f.names,
        )
        un = "uns" if unsigned else ""
        texts |= _function(f"__fix{un}{f.letter}f{letters}", integer, f"{f.kind} %x", body)
        body = _FROM_INTEGER.format(
            integer=integer,
            work=work,
            widen="bitcast" if work == integer else "zext",
            narrow="bitcast" if work == t else "trunc",
            sign=f"and {integer} %x, 0" if unsigned else f"ashr {integer} %x, {bits - 1}",
            first=f.bias + max(bits, f.bits) - 1,
            down=max(bits, f.bits) - f.bits + 1,
            work_last=max(bits, f.bits) - 1,
            **f.names,
        )
        name = f"__float{'un' if unsigned else ''}{letters}{f.letter}f"
        texts |= _function(name, f.kind, f"{integer} %x", body, count)
    return texts


def _division() -> dict[str, str]:
    texts = dict[str, str]()
    for number, (name, sign) in enumerate({"div": "xor i64 %negx, %negy", "mod": "or i64 %negx, 0"}.items()):
        for prefix, body in (("", _SIGNED), ("u", _UNSIGNED)):
            text = body.format(which=number, sign=sign)
            texts |= _function(f"__{prefix}{name}di3", "i64", "i64 %x, i64 %y", text, _DIVIDE)
    return texts


def _between() -> dict[str, str]:
    names = _SINGLE.names
    texts = _function("__extendsfdf2", "double", "float %x", _EXTEND.format(**names), _COUNT.format(**names))
    return texts | _function("__truncdfsf2", "float", "double %x", _TRUNCATE.format(**names))


TEXTS: Mapping[str, str] = {
    **_arithmetic(_SINGLE),
    **_arithmetic(_DOUBLE),
    **{name: text for f in (_SINGLE, _DOUBLE) for bits in (32, 64) for name, text in _conversions(f, bits).items()},
    **_between(),
    **_division(),
}
"""Text of each function by its name, without the line of the target."""
