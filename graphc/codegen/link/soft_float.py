"""Arithmetic of f32 and f64 in integers, as LLVM text, for processors that have none, and division of 64-bit integers.

LLVM calls these functions by the names of the compiler's runtime library (libgcc, compiler-rt). Results are those of
IEEE 754: rounded to nearest, ties to even, with subnormal numbers, infinities and signed zeros. A NaN is quiet, positive
and without payload, as on RISC-V with floating point. Conversions to integers take the nearest limit of the type.

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
            **{"below_infinity": (top << self.mantissa) - 1, "below_bias": self.bias - 1},
            **{"nan": (2 * top + 1) << self.mantissa - 1, "guard": self.guard, "spare": self.guard + 1},
            **{"below_half": (1 << self.guard - 1) - 1, "leading": 1 << self.bits - 2, "second": self.bits - 2},
        }


_SINGLE, _DOUBLE = _Format("float", "s", "f", 32, 23), _Format("double", "d", "", 64, 52)

_END = 'attributes #0 = { nounwind "no-builtins" }\n'

_COUNT = "declare {t} @llvm.ctlz.{t}({t}, i1)\n"
_SHIFT = """\
; A value over a power of two, of any size; the last bit is set where any was lost.
define internal {u} @shifted.{u}({u} %value, {u} %by) alwaysinline #0 {{
  %some = icmp ult {u} %by, {places}
  br i1 %some, label %shift, label %far
far:
  %any = icmp ne {u} %value, 0
  %little = zext i1 %any to {u}
  ret {u} %little
shift:
  %high = lshr {u} %value, %by
  %back = shl {u} %high, %by
  %lost = icmp ne {u} %back, %value
  %sticky = zext i1 %lost to {u}
  %all = or {u} %high, %sticky
  ret {u} %all
}}
"""
_ROUND = """\
; The number with a sign, an exponent field before its range is known, and a mantissa with its leading bit in place.
define internal {kind} @rounded({t} %sign, {t} %e, {t} %m) alwaysinline #0 {{
  %from_1 = sub {t} %e, 1
  %ordinary = icmp ult {t} %from_1, {below_top}
  br i1 %ordinary, label %pack, label %beyond
beyond:
  %large = icmp sgt {t} %e, 0
  br i1 %large, label %endless, label %small
endless:
  %infinite = or {t} %sign, {infinity}
  %r0 = bitcast {t} %infinite to {kind}
  ret {kind} %r0
small:
  %by = sub {t} 1, %e
  %shifted = call {t} @shifted.{t}({t} %m, {t} %by)
  br label %pack
pack:
  ; The implicit bit of a normal number adds one to the field.
  %field = phi {t} [ %from_1, %0 ], [ 0, %small ]
  %all = phi {t} [ %m, %0 ], [ %shifted, %small ]
  %kept = lshr {t} %all, {guard}
  %odd = and {t} %kept, 1
  %bias = add {t} %odd, {below_half}
  %up = add {t} %all, %bias
  %mantissa = lshr {t} %up, {guard}
  %place = shl {t} %field, {mantissa}
  %number = add {t} %place, %mantissa
  %signed = or {t} %number, %sign
  %r = bitcast {t} %signed to {kind}
  ret {kind} %r
}}
"""
_PARTS = """\
; A magnitude that is neither 0 nor infinite: the mantissa with the implicit bit, and the exponent field, below 1 for
; subnormal numbers.
define internal {{ {t}, {t} }} @parts({t} %a) alwaysinline #0 {{
  %field = lshr {t} %a, {mantissa}
  %low = and {t} %a, {fraction}
  %with = or {t} %low, {implicit}
  %normal = icmp ne {t} %field, 0
  br i1 %normal, label %done, label %subnormal
subnormal:
  %zeros = call {t} @llvm.ctlz.{t}({t} %a, i1 true)
  %by = sub {t} %zeros, {spare}
  %moved = shl {t} %a, %by
  %below = sub {t} 1, %by
  br label %done
done:
  %m = phi {t} [ %with, %0 ], [ %moved, %subnormal ]
  %e = phi {t} [ %field, %0 ], [ %below, %subnormal ]
  %one = insertvalue {{ {t}, {t} }} poison, {t} %m, 0
  %both = insertvalue {{ {t}, {t} }} %one, {t} %e, 1
  ret {{ {t}, {t} }} %both
}}
"""
_OPERANDS = """\
  %bx = bitcast {kind} %x to {t}
  %by = bitcast {kind} %y to {t}
  %ax = and {t} %bx, {magnitude}
  %ay = and {t} %by, {magnitude}
  %signs = xor {t} %bx, %by
  %sign = and {t} %signs, {sign_bit}
"""
_EXCEPT = """\
  ; Neither operand may be 0, infinite or no number.
  %lx = sub {t} %ax, 1
  %ly = sub {t} %ay, 1
  %inx = icmp ult {t} %lx, {below_infinity}
  %iny = icmp ult {t} %ly, {below_infinity}
  %usual = and i1 %inx, %iny
  br i1 %usual, label %finite, label %special
"""
_FACTORS = """\
finite:
  %px = call {{ {t}, {t} }} @parts({t} %ax)
  %py = call {{ {t}, {t} }} @parts({t} %ay)
  %mx = extractvalue {{ {t}, {t} }} %px, 0
  %ex = extractvalue {{ {t}, {t} }} %px, 1
  %my = extractvalue {{ {t}, {t} }} %py, 0
  %ey = extractvalue {{ {t}, {t} }} %py, 1
"""
_SPECIAL = """\
  %with_zero = select i1 %endless, {t} {infinity}, {t} 0
  %exact = or {t} %with_zero, %sign
  %special.r = select i1 %invalid, {t} {nan}, {t} %exact
  %r0 = bitcast {t} %special.r to {kind}
  ret {kind} %r0
"""
_SUM = """\
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
  %infinite = or {t} %a, %sign
  %none = select i1 %invalid, {t} {nan}, {t} %infinite
  %r0 = bitcast {t} %none to {kind}
  ret {kind} %r0
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
  %mb = call {t} @shifted.{t}({t} %mb0, {t} %distance)
  br i1 %differ, label %subtract, label %add
add:
  %sum = add {t} %ma, %mb
  %carries = icmp slt {t} %sum, 0
  br i1 %carries, label %halve, label %check
halve:
  %half = call {t} @shifted.{t}({t} %sum, {t} 1)
  %next = add {t} %ea, 1
  br label %round
subtract:
  %difference = sub {t} %ma, %mb
  br label %check
check:
  %m0 = phi {t} [ %sum, %add ], [ %difference, %subtract ]
  %in_place = icmp uge {t} %m0, {leading}
  br i1 %in_place, label %round, label %low
low:
  %zero = icmp eq {t} %m0, 0
  br i1 %zero, label %nothing, label %normalize
nothing:
  ; Equal numbers of other signs are +0, but -0 and -0 are -0.
  %of_zero = select i1 %differ, {t} 0, {t} %sign
  %r1 = bitcast {t} %of_zero to {kind}
  ret {kind} %r1
normalize:
  %zeros = call {t} @llvm.ctlz.{t}({t} %m0, i1 true)
  %up = sub {t} %zeros, 1
  %moved = shl {t} %m0, %up
  %lower = sub {t} %ea, %up
  br label %round
round:
  %m = phi {t} [ %half, %halve ], [ %m0, %check ], [ %moved, %normalize ]
  %e = phi {t} [ %next, %halve ], [ %ea, %check ], [ %lower, %normalize ]
  %r = call {kind} @rounded({t} %sign, {t} %e, {t} %m)
  ret {kind} %r
}}
"""
_PRODUCT = (
    _OPERANDS
    + _EXCEPT
    + """\
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
    + _FACTORS
    + """\
  ; The leading bit of the upper half is the second or third highest.
  %nx = shl {t} %mx, {spare}
  %ny = shl {t} %my, {guard}
  %wx = zext {t} %nx to {wide}
  %wy = zext {t} %ny to {wide}
  %product = mul {wide} %wx, %wy
  %upper = lshr {wide} %product, {bits}
  %high = trunc {wide} %upper to {t}
  %low = trunc {wide} %product to {t}
  %any = icmp ne {t} %low, 0
  %sticky = zext i1 %any to {t}
  %sum = add {t} %ex, %ey
  %e0 = sub {t} %sum, {below_bias}
  %below = icmp ult {t} %high, {leading}
  %fewer = zext i1 %below to {t}
  %moved = shl {t} %high, %fewer
  %e = sub {t} %e0, %fewer
  %m = or {t} %moved, %sticky
  %r = call {kind} @rounded({t} %sign, {t} %e, {t} %m)
  ret {kind} %r
}}
"""
)
_QUOTIENT = (
    _OPERANDS
    + _EXCEPT
    + """\
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
  %r = call {kind} @rounded({t} %sign, {t} %e, {t} %m)
  ret {kind} %r
}}
"""
)
_STEP = """\
  %shifted.{i} = shl {t} %rest.{i}, {spare}
  %digit.{i} = udiv {t} %shifted.{i}, %my
  %times.{i} = mul {t} %digit.{i}, %my
  %rest.{next} = sub {t} %shifted.{i}, %times.{i}
  %before.{i} = shl {t} {quotient}, {spare}
  %quotient.{next} = or {t} %before.{i}, %digit.{i}"""
_ROOT = """\
  %b = bitcast {kind} %x to {t}
  %a = and {t} %b, {magnitude}
  %below = sub {t} %b, 1
  %usual = icmp ult {t} %below, {below_infinity}
  br i1 %usual, label %finite, label %special
special:
  %zero = icmp eq {t} %a, 0
  %infinite = icmp eq {t} %b, {infinity}
  %same = or i1 %zero, %infinite
  %special.r = select i1 %same, {t} %b, {t} {nan}
  %r0 = bitcast {t} %special.r to {kind}
  ret {kind} %r0
finite:
  %p = call {{ {t}, {t} }} @parts({t} %a)
  %m0 = extractvalue {{ {t}, {t} }} %p, 0
  %e0 = extractvalue {{ {t}, {t} }} %p, 1
  ; The exponent of x becomes even. Each step finds a bit of the root: twice the root so far and the bit is what the
  ; rest must hold, which is doubled after each step.
  %unbiased = sub {t} %e0, {bias}
  %odd = and {t} %unbiased, 1
  %number = shl {t} %m0, %odd
  %halved = ashr {t} %unbiased, 1
  %e = add {t} %halved, {bias}
  %first = shl {t} %number, 1
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
  br i1 %done, label %round, label %step
round:
  %any = icmp ne {t} %doubled, 0
  %sticky = zext i1 %any to {t}
  %placed = shl {t} %root.next, {root_place}
  %m = or {t} %placed, %sticky
  %r = call {kind} @rounded({t} 0, {t} %e, {t} %m)
  ret {kind} %r
}}
"""
_MULTIPLY_ADD = (
    _OPERANDS
    + """\
  %bz = bitcast {kind} %z to {t}
  %az = and {t} %bz, {magnitude}
"""
    + _EXCEPT
    + """\
special:
  %p = fmul {kind} %x, %y
  %s = fadd {kind} %p, %z
  ret {kind} %s
endless:
  %same = fadd {kind} %z, %z
  ret {kind} %same
"""
    + _FACTORS
    + """\
  %endz = icmp uge {t} %az, {infinity}
  br i1 %endz, label %endless, label %exact
exact:
  ; The product has its leading bit at one of two places, the term at the upper one; above is room for a sum.
  %nx = shl {t} %mx, {guard}
  %ny = shl {t} %my, {guard}
  %wx = zext {t} %nx to {wide}
  %wy = zext {t} %ny to {wide}
  %half = mul {wide} %wx, %wy
  %product = shl {wide} %half, 1
  %sum_e = add {t} %ex, %ey
  %ep = sub {t} %sum_e, {below_bias}
  %fz = lshr {t} %az, {mantissa}
  %lz = and {t} %az, {fraction}
  %withz = or {t} %lz, {implicit}
  %smallz = icmp eq {t} %fz, 0
  %mz = select i1 %smallz, {t} %lz, {t} %withz
  %ez = select i1 %smallz, {t} 1, {t} %fz
  %nz = shl {t} %mz, {guard}
  %wz = zext {t} %nz to {wide}
  %term = shl {wide} %wz, {bits}
  %d = sub {t} %ep, %ez
  %less = icmp slt {t} %d, 0
  br i1 %less, label %lower_product, label %lower_term
lower_product:
  %minus = sub {t} 0, %d
  %by_p = zext {t} %minus to {wide}
  %less_p = call {wide} @shifted.{wide}({wide} %product, {wide} %by_p)
  br label %join
lower_term:
  %by_z = zext {t} %d to {wide}
  %less_z = call {wide} @shifted.{wide}({wide} %term, {wide} %by_z)
  br label %join
join:
  %vp = phi {wide} [ %less_p, %lower_product ], [ %product, %lower_term ]
  %vz = phi {wide} [ %term, %lower_product ], [ %less_z, %lower_term ]
  %e0 = phi {t} [ %ez, %lower_product ], [ %ep, %lower_term ]
  %with_z = xor {t} %sign, %bz
  %differ = icmp slt {t} %with_z, 0
  br i1 %differ, label %subtract, label %add
add:
  %added = add {wide} %vp, %vz
  br label %normalize
subtract:
  %difference = sub {wide} %vp, %vz
  %negative = icmp slt {wide} %difference, 0
  %opposite = sub {wide} 0, %difference
  %absolute = select i1 %negative, {wide} %opposite, {wide} %difference
  %signz = and {t} %bz, {sign_bit}
  %larger = select i1 %negative, {t} %signz, {t} %sign
  %gone = icmp eq {wide} %difference, 0
  br i1 %gone, label %nothing, label %normalize
nothing:
  ret {kind} 0.0
normalize:
  %total = phi {wide} [ %added, %add ], [ %absolute, %subtract ]
  %sign.r = phi {t} [ %sign, %add ], [ %larger, %subtract ]
  %top0 = lshr {wide} %total, {bits}
  %top = trunc {wide} %top0 to {t}
  %low0 = trunc {wide} %total to {t}
  %in_place = icmp uge {t} %top, {leading}
  br i1 %in_place, label %carry, label %lift
carry:
  ; A sum may take the highest bit.
  %carries = lshr {t} %top, {last}
  %out = and {t} %top, %carries
  %top.c = lshr {t} %top, %carries
  %low.c = or {t} %low0, %out
  %e.c = add {t} %e0, %carries
  br label %round
lift:
  %zeros0 = call {wide} @llvm.ctlz.{wide}({wide} %total, i1 true)
  %up0 = sub {wide} %zeros0, 1
  %lifted = shl {wide} %total, %up0
  %up = trunc {wide} %up0 to {t}
  %e.l = sub {t} %e0, %up
  %top1 = lshr {wide} %lifted, {bits}
  %top.l = trunc {wide} %top1 to {t}
  %low.l = trunc {wide} %lifted to {t}
  br label %round
round:
  %high = phi {t} [ %top.c, %carry ], [ %top.l, %lift ]
  %low = phi {t} [ %low.c, %carry ], [ %low.l, %lift ]
  %e = phi {t} [ %e.c, %carry ], [ %e.l, %lift ]
  %any = icmp ne {t} %low, 0
  %sticky = zext i1 %any to {t}
  %m = or {t} %high, %sticky
  %r = call {kind} @rounded({t} %sign.r, {t} %e, {t} %m)
  ret {kind} %r
}}
"""
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
_FROM_INTEGER = """\
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
  %placed = call {work} @shifted.{work}({work} %lifted, {work} {down})
  %m = {narrow} {work} %placed to {t}
  %e = {narrow} {work} %e0 to {t}
  %negative = icmp ne {integer} %mask, 0
  %sign = select i1 %negative, {t} {sign_bit}, {t} 0
  %r = call {kind} @rounded({t} %sign, {t} %e, {t} %m)
  ret {kind} %r
}}
"""
_EXTEND = """\
  %b = bitcast float %x to i32
  %a = and i32 %b, 2147483647
  %wide = zext i32 %b to i64
  %upper = shl i64 %wide, 32
  %sign = and i64 %upper, -9223372036854775808
  %less = sub i32 %a, 1
  %usual = icmp ult i32 %less, {below_infinity}
  br i1 %usual, label %finite, label %special
special:
  %endless = icmp eq i32 %a, {infinity}
  %no_number = icmp ugt i32 %a, {infinity}
  %zero_or_infinite = select i1 %endless, i64 9218868437227405312, i64 0
  %exact = or i64 %zero_or_infinite, %sign
  %special.r = select i1 %no_number, i64 9221120237041090560, i64 %exact
  %r0 = bitcast i64 %special.r to double
  ret double %r0
finite:
  %p = call {{ i32, i32 }} @parts(i32 %a)
  %m0 = extractvalue {{ i32, i32 }} %p, 0
  %e0 = extractvalue {{ i32, i32 }} %p, 1
  ; The implicit bit adds one to the field.
  %e1 = add i32 %e0, 895
  %e = zext i32 %e1 to i64
  %m1 = zext i32 %m0 to i64
  %m = shl i64 %m1, 29
  %place = shl i64 %e, 52
  %number = add i64 %place, %m
  %signed = or i64 %number, %sign
  %r = bitcast i64 %signed to double
  ret double %r
}}
"""
_TRUNCATE = """\
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
  %m1 = call i64 @shifted.i64(i64 %m0, i64 22)
  %m = trunc i64 %m1 to i32
  %field0 = lshr i64 %a, 52
  %field = trunc i64 %field0 to i32
  %e = sub i32 %field, 896
  %r = call float @rounded(i32 %sign, i32 %e, i32 %m)
  ret float %r
}}
"""
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


def _declared(*integers: str) -> str:
    """Return the declarations and functions for integer types."""
    return "".join(_COUNT.format(t=t) + _SHIFT.format(u=t, places=t[1:]) for t in dict.fromkeys(integers))


def _arithmetic(f: _Format) -> dict[str, str]:
    names = dict(f.names)
    kind, t, wide = f.kind, f"i{f.bits}", f"i{2 * f.bits}"
    rounded, parts = _ROUND.format(**names), _PARTS.format(**names)
    steps = -(-(f.mantissa + 1) // (f.guard + 1))
    division = [
        _STEP.format(i=i, next=i + 1, quotient=f"%quotient.{i}" if i else "1", **names) for i in range(steps)
    ]
    names |= {"steps": "\n".join(division), "count": steps, "unused": f.bits - 2 - steps * (f.guard + 1)}
    names |= {"first_bit": 2 << f.mantissa, "root_place": f.guard - 1}
    two, three = f"{kind} %x, {kind} %y", f"{kind} %x, {kind} %y, {kind} %z"
    texts = dict[str, str]()
    for name, flip in (("add", 0), ("sub", names["sign_bit"])):
        texts |= _function(f"__{name}{f.letter}f3", kind, two, _SUM.format(flip=flip, **names), _declared(t) + rounded)
    for name, arguments, body in (
        (f"__mul{f.letter}f3", two, _PRODUCT),
        (f"__div{f.letter}f3", two, _QUOTIENT),
        (f"sqrt{f.suffix}", f"{kind} %x", _ROOT),
        (f"fma{f.suffix}", three, _MULTIPLY_ADD),
    ):
        before = _declared(*(t, wide) if body is _MULTIPLY_ADD else (t,)) + rounded + parts
        texts |= _function(name, kind, arguments, body.format(**names), before)
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
    letters, rounded = "sd"[bits > 32] + "i", _ROUND.format(**f.names)
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
            **f.names,
        )
        name = f"__float{'un' if unsigned else ''}{letters}{f.letter}f"
        texts |= _function(name, f.kind, f"{integer} %x", body, _declared(t, work) + rounded)
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
    before = _declared("i32") + _PARTS.format(**names)
    texts = _function("__extendsfdf2", "double", "float %x", _EXTEND.format(**names), before)
    before = _declared("i32", "i64") + _ROUND.format(**names)
    return texts | _function("__truncdfsf2", "float", "double %x", _TRUNCATE.format(**names), before)


TEXTS: Mapping[str, str] = {
    **_arithmetic(_SINGLE),
    **_arithmetic(_DOUBLE),
    **{name: text for f in (_SINGLE, _DOUBLE) for bits in (32, 64) for name, text in _conversions(f, bits).items()},
    **_between(),
    **_division(),
}
"""Text of each function by its name, without the line of the target."""
