"""Conversions between floats and integers, and between f32 and f64, in integers."""

from __future__ import annotations

from graphc.codegen.link.soft_float.blocks import (
    COUNT,
    ROUND,
    SINGLE,
    SoftFormat,
    any_number,
    function,
    shifted,
)

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
    + shifted("placed", "%lifted", "{down}", "{work}", "{work_last}")
    + """\
  %m = {narrow} {work} %placed to {t}
  %e = {narrow} {work} %e0 to {t}
  %negative = icmp ne {integer} %mask, 0
  %sign = select i1 %negative, {t} {sign_bit}, {t} 0
  br label %round
round:
"""
    + ROUND
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
    + any_number("x")
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
    + shifted("m1", "%m0", "22", "i64", "63")
    + """\
  %m = trunc i64 %m1 to i32
  %field0 = lshr i64 %a, 52
  %field1 = trunc i64 %field0 to i32
  %e = sub i32 %field1, 896
  br label %round
round:
"""
    + ROUND
)


def conversions(f: SoftFormat, bits: int) -> dict[str, str]:
    """Return the conversions between a format and integers, signed and unsigned."""
    texts, integer, t, work = dict[str, str](), f"i{bits}", f"i{f.bits}", f"i{max(bits, f.bits)}"
    letters, count = "sd"[bits > 32] + "i", COUNT.format(t=work)
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
        texts |= function(f"__fix{un}{f.letter}f{letters}", integer, f"{f.kind} %x", body)
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
        texts |= function(name, f.kind, f"{integer} %x", body, count)
    return texts


def between_formats() -> dict[str, str]:
    """Return the conversions between f32 and f64 by their names."""
    names = SINGLE.names
    texts = function("__extendsfdf2", "double", "float %x", _EXTEND.format(**names), COUNT.format(**names))
    return texts | function("__truncdfsf2", "float", "double %x", _TRUNCATE.format(**names))
