"""Math functions that LLVM calls where a processor has no instruction, as LLVM text for libraries.

All of them are exact or correctly rounded, so they give the same bits as libm.
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.base.records import dataclass
from graphc.codegen.link import wasm_builtins
from graphc.codegen.link.memory_functions import MACOS_FUNCTIONS
from graphc.codegen.link.soft_float.texts import TEXTS as SOFT_FLOAT
from graphc.codegen.machine.linkage import is_bare, is_macos, is_wasm


@dataclass(frozen=True)
class _IeeeFormat:
    """An IEEE format: its LLVM names and the numbers of its bits."""

    kind: str
    suffix: str
    """Suffix of its C functions."""
    bits: int
    mantissa: int
    """Stored bits of the mantissa."""

    @property
    def names(self) -> dict[str, str | int]:
        """Values for the placeholders of the texts."""
        exponents = (1 << self.bits - 1 - self.mantissa) - 1
        return {
            "kind": self.kind,
            "suffix": self.suffix,
            "short": f"f{self.bits}",
            "bits": f"i{self.bits}",
            "whole": f"{1 << self.mantissa}.0",
            "mantissa": self.mantissa,
            "implicit": 1 << self.mantissa,
            "fraction": (1 << self.mantissa) - 1,
            "exponents": exponents,
            "infinity": exponents << self.mantissa,
            "magnitude": (1 << self.bits - 1) - 1,
            "spare": 63 - self.mantissa,
            "zeros": 63 - self.mantissa,
        }


_SINGLE, _DOUBLE = _IeeeFormat("float", "f", 32, 23), _IeeeFormat("double", "", 64, 52)

_ROUND = """\
declare {kind} @llvm.fabs.{short}({kind})
declare {kind} @llvm.copysign.{short}({kind}, {kind})

define hidden {kind} @{name}({kind} %x) #0 {{
  %a = call {kind} @llvm.fabs.{short}({kind} %x)
  %fraction = fcmp olt {kind} %a, {whole}
  br i1 %fraction, label %round, label %same
same:
  ; Whole already, infinite, or no number, which an addition makes a quiet one.
  %none = fcmp uno {kind} %x, %x
  %quiet = fadd {kind} %x, %x
  %kept = select i1 %none, {kind} %quiet, {kind} %x
  ret {kind} %kept
round:
  ; A number of which the last bit counts ones: the addition rounds, to the even one of two that are as near.
  %up = fadd {kind} %a, {whole}
  %near = fsub {kind} %up, {whole}
{body}
  %signed = call {kind} @llvm.copysign.{short}({kind} %r, {kind} %x)
  ret {kind} %signed
}}
attributes #0 = {{ nounwind "no-builtins" }}
"""

_DIRECTED = """\
  %n = call {{kind}} @llvm.copysign.{{short}}({{kind}} %near, {{kind}} {value})
  %beyond = fcmp {compare} {{kind}} %n, {value}
  %next = {step} {{kind}} %n, 1.0
  %r = select i1 %beyond, {{kind}} %next, {{kind}} %n"""

_BODIES = {
    "roundeven": "  %r = fadd {kind} %near, 0.0",
    "floor": _DIRECTED.format(value="%x", compare="ogt", step="fsub"),
    "ceil": _DIRECTED.format(value="%x", compare="olt", step="fadd"),
    "trunc": _DIRECTED.format(value="%a", compare="ogt", step="fsub"),
}

_REMAINDER = """\
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1)

define hidden {kind} @{name}({kind} %x, {kind} %y) #0 {{
  %bx = bitcast {kind} %x to {bits}
  %by = bitcast {kind} %y to {bits}
  %mx = and {bits} %bx, {magnitude}
  %my = and {bits} %by, {magnitude}
  %sign = xor {bits} %bx, %mx
  %endless = icmp uge {bits} %mx, {infinity}
  %unknown = icmp ugt {bits} %my, {infinity}
  %zero = icmp eq {bits} %my, 0
  %bad = or i1 %endless, %unknown
  %none = or i1 %bad, %zero
  br i1 %none, label %invalid, label %compare
invalid:
  %product = fmul {kind} %x, %y
  %nan = fdiv {kind} %product, %product
  ret {kind} %nan
compare:
  %less = icmp ult {bits} %mx, %my
  br i1 %less, label %same, label %begin
same:
  ret {kind} %x
begin:
  ; Both are whole numbers of the same unit times powers of two: those of x are divided in steps of so many bits as
  ; fit beside the mantissa.
  %ux = {widen_x}
  %uy = {widen_y}
  %fx = lshr i64 %ux, {mantissa}
  %fy = lshr i64 %uy, {mantissa}
  %ex = call i64 @llvm.umax.i64(i64 %fx, i64 1)
  %ey = call i64 @llvm.umax.i64(i64 %fy, i64 1)
  %px = and i64 %ux, {fraction}
  %py = and i64 %uy, {fraction}
  %ix = or i64 %px, {implicit}
  %iy = or i64 %py, {implicit}
  %smallx = icmp eq i64 %fx, 0
  %smally = icmp eq i64 %fy, 0
  %m = select i1 %smallx, i64 %px, i64 %ix
  %divisor = select i1 %smally, i64 %py, i64 %iy
  %rest = urem i64 %m, %divisor
  %steps = sub i64 %ex, %ey
  br label %loop
loop:
  %left = phi i64 [ %steps, %begin ], [ %fewer, %step ]
  %r = phi i64 [ %rest, %begin ], [ %new, %step ]
  %done = icmp eq i64 %left, 0
  br i1 %done, label %pack, label %step
step:
  %some = call i64 @llvm.umin.i64(i64 %left, i64 {spare})
  %shifted = shl i64 %r, %some
  %new = urem i64 %shifted, %divisor
  %fewer = sub i64 %left, %some
  br label %loop
pack:
  %nothing = icmp eq i64 %r, 0
  %leading = call i64 @llvm.ctlz.i64(i64 %r, i1 false)
  %wanted = sub i64 %leading, {zeros}
  %most = sub i64 %ey, 1
  %moved = call i64 @llvm.umin.i64(i64 %wanted, i64 %most)
  %normal = shl i64 %r, %moved
  %e = sub i64 %most, %moved
  %exponent = shl i64 %e, {mantissa}
  %number = add i64 %exponent, %normal
  %value = select i1 %nothing, i64 0, i64 %number
  %narrow = {narrow}
  %all = or {bits} %narrow, %sign
  %result = bitcast {bits} %all to {kind}
  ret {kind} %result
}}
attributes #0 = {{ nounwind "no-builtins" }}
"""

_FMA = """\
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i128 @llvm.ctlz.i128(i128, i1)

; A number that is neither 0 nor infinite as (mantissa with its leading bit at 52, exponent of the last bit).
define internal {{ i64, i64 }} @parts(i64 %bits) alwaysinline #0 {{
  %m = and i64 %bits, 4503599627370495
  %shifted = lshr i64 %bits, 52
  %field = and i64 %shifted, 2047
  %e = call i64 @llvm.umax.i64(i64 %field, i64 1)
  %with = or i64 %m, 4503599627370496
  %small = icmp eq i64 %field, 0
  %whole = select i1 %small, i64 %m, i64 %with
  %leading = call i64 @llvm.ctlz.i64(i64 %whole, i1 false)
  %by = sub i64 %leading, 11
  %normal = shl i64 %whole, %by
  %low = sub i64 %e, 1075
  %exponent = sub i64 %low, %by
  %one = insertvalue {{ i64, i64 }} poison, i64 %normal, 0
  %both = insertvalue {{ i64, i64 }} %one, i64 %exponent, 1
  ret {{ i64, i64 }} %both
}}

; A value that is not 0 over a power of two; the last bit is set where any was lost.
define internal i128 @shifted(i128 %value, i64 %by) alwaysinline #0 {{
  %far = icmp ugt i64 %by, 127
  br i1 %far, label %little, label %some
little:
  ret i128 1
some:
  %wide = zext i64 %by to i128
  %high = lshr i128 %value, %wide
  %back = shl i128 %high, %wide
  %lost = icmp ne i128 %back, %value
  %sticky = zext i1 %lost to i128
  %all = or i128 %high, %sticky
  ret i128 %all
}}

define hidden double @fma(double %x, double %y, double %z) #0 {{
  %bx = bitcast double %x to i64
  %by = bitcast double %y to i64
  %bz = bitcast double %z to i64
  %ax = and i64 %bx, 9223372036854775807
  %ay = and i64 %by, 9223372036854775807
  %az = and i64 %bz, 9223372036854775807
  ; Exponents from which no product or error of a sum overflows or becomes subnormal.
  %fx = lshr i64 %ax, 52
  %fy = lshr i64 %ay, 52
  %fz = lshr i64 %az, 52
  %gx = sub i64 %fx, 623
  %gy = sub i64 %fy, 623
  %gz = sub i64 %fz, 123
  %inx = icmp ult i64 %gx, 801
  %iny = icmp ult i64 %gy, 801
  %inz = icmp ult i64 %gz, 1801
  %noz = icmp eq i64 %az, 0
  %term0 = or i1 %inz, %noz
  %factors0 = and i1 %inx, %iny
  %ordinary = and i1 %factors0, %term0
  br i1 %ordinary, label %floats, label %general
floats:
  ; The product and two sums as unevaluated sums of two f64 (Dekker, Knuth). Their rests are added and rounded to odd,
  ; which makes the last addition the only rounding: Boldo and Melquiond, "Emulation of a FMA and correctly rounded
  ; sums", 2008.
  %x.c = fmul double %x, 134217729.0
  %x.d = fsub double %x.c, %x
  %x.h = fsub double %x.c, %x.d
  %x.l = fsub double %x, %x.h
  %y.c = fmul double %y, 134217729.0
  %y.d = fsub double %y.c, %y
  %y.h = fsub double %y.c, %y.d
  %y.l = fsub double %y, %y.h
  %u.h = fmul double %x, %y
  %u.0 = fmul double %x.h, %y.h
  %u.1 = fmul double %x.h, %y.l
  %u.2 = fmul double %x.l, %y.h
  %u.3 = fmul double %x.l, %y.l
  %u.4 = fsub double %u.0, %u.h
  %u.5 = fadd double %u.4, %u.1
  %u.6 = fadd double %u.5, %u.2
  %u.l = fadd double %u.6, %u.3
  %t.h = fadd double %z, %u.l
  %t.b = fsub double %t.h, %z
  %t.a = fsub double %t.h, %t.b
  %t.eb = fsub double %u.l, %t.b
  %t.ea = fsub double %z, %t.a
  %t.l = fadd double %t.ea, %t.eb
  %v.h = fadd double %u.h, %t.h
  %v.b = fsub double %v.h, %u.h
  %v.a = fsub double %v.h, %v.b
  %v.eb = fsub double %t.h, %v.b
  %v.ea = fsub double %u.h, %v.a
  %v.l = fadd double %v.ea, %v.eb
  %w.h = fadd double %t.l, %v.l
  %w.b = fsub double %w.h, %t.l
  %w.a = fsub double %w.h, %w.b
  %w.eb = fsub double %v.l, %w.b
  %w.ea = fsub double %t.l, %w.a
  %w.l = fadd double %w.ea, %w.eb
  %w.bits = bitcast double %w.h to i64
  %w.rest = bitcast double %w.l to i64
  %w.signs = xor i64 %w.bits, %w.rest
  %w.away = ashr i64 %w.signs, 63
  %w.step = or i64 %w.away, 1
  %w.moved = add i64 %w.bits, %w.step
  %w.inexact = fcmp one double %w.l, 0.0
  %w.odd = trunc i64 %w.bits to i1
  %w.even = xor i1 %w.odd, true
  %w.moves = and i1 %w.inexact, %w.even
  %w.chosen = select i1 %w.moves, i64 %w.moved, i64 %w.bits
  %w.to_odd = bitcast i64 %w.chosen to double
  %nearest = fadd double %v.h, %w.to_odd
  ret double %nearest
general:
  %endx = icmp uge i64 %ax, 9218868437227405312
  %endy = icmp uge i64 %ay, 9218868437227405312
  %endz = icmp uge i64 %az, 9218868437227405312
  %zerox = icmp eq i64 %ax, 0
  %zeroy = icmp eq i64 %ay, 0
  %xs = or i1 %endx, %zerox
  %ys = or i1 %endy, %zeroy
  %factors = or i1 %xs, %ys
  br i1 %factors, label %plain, label %term
plain:
  %p = fmul double %x, %y
  %s = fadd double %p, %z
  ret double %s
term:
  br i1 %endz, label %endless, label %finite
endless:
  %same = fadd double %z, %z
  ret double %same
finite:
  %zeroz = icmp eq i64 %az, 0
  br i1 %zeroz, label %product, label %exact
product:
  %only = fmul double %x, %y
  ret double %only
exact:
  %px = call {{ i64, i64 }} @parts(i64 %bx)
  %py = call {{ i64, i64 }} @parts(i64 %by)
  %pz = call {{ i64, i64 }} @parts(i64 %bz)
  %mx = extractvalue {{ i64, i64 }} %px, 0
  %my = extractvalue {{ i64, i64 }} %py, 0
  %mz = extractvalue {{ i64, i64 }} %pz, 0
  %ex = extractvalue {{ i64, i64 }} %px, 1
  %ey = extractvalue {{ i64, i64 }} %py, 1
  %ez = extractvalue {{ i64, i64 }} %pz, 1
  ; The product has its leading bit at 104 or 105, the term at 52: both go to 124, where nothing below is lost yet.
  %wx = zext i64 %mx to i128
  %wy = zext i64 %my to i128
  %wz = zext i64 %mz to i128
  %exactp = mul i128 %wx, %wy
  %fullp = shl i128 %exactp, 20
  %fullz = shl i128 %wz, 72
  %sume = add i64 %ex, %ey
  %ep = sub i64 %sume, 20
  %et = sub i64 %ez, 72
  %d = sub i64 %ep, %et
  %larger = icmp sge i64 %d, 0
  %minus = sub i64 0, %d
  %shiftp = select i1 %larger, i64 0, i64 %minus
  %shiftz = select i1 %larger, i64 %d, i64 0
  %e = select i1 %larger, i64 %ep, i64 %et
  %vp = call i128 @shifted(i128 %fullp, i64 %shiftp)
  %vz = call i128 @shifted(i128 %fullz, i64 %shiftz)
  %signp0 = xor i64 %bx, %by
  %signp = and i64 %signp0, -9223372036854775808
  %signz = and i64 %bz, -9223372036854775808
  %alike = icmp eq i64 %signp, %signz
  %added = add i128 %vp, %vz
  %more = icmp uge i128 %vp, %vz
  %pz1 = sub i128 %vp, %vz
  %zp1 = sub i128 %vz, %vp
  %less = select i1 %more, i128 %pz1, i128 %zp1
  %sum = select i1 %alike, i128 %added, i128 %less
  %signd = select i1 %more, i64 %signp, i64 %signz
  %sign = select i1 %alike, i64 %signp, i64 %signd
  %gone = icmp eq i128 %sum, 0
  br i1 %gone, label %zero, label %round
zero:
  ret double 0.0
round:
  ; The last bit of the result is the 53rd of the sum, or that of the smallest number.
  %leading = call i128 @llvm.ctlz.i128(i128 %sum, i1 true)
  %leading64 = trunc i128 %leading to i64
  %cut = sub i64 75, %leading64
  %least = sub i64 -1074, %e
  %by1 = call i64 @llvm.smax.i64(i64 %cut, i64 %least)
  %tiny = icmp sgt i64 %by1, 127
  br i1 %tiny, label %nothing, label %keep
nothing:
  %none = bitcast i64 %sign to double
  ret double %none
keep:
  %drops = icmp sgt i64 %by1, 0
  br i1 %drops, label %drop, label %fits
fits:
  %up = sub i64 0, %by1
  %upw = zext i64 %up to i128
  %grown = shl i128 %sum, %upw
  %grown64 = trunc i128 %grown to i64
  br label %pack
drop:
  %downw = zext i64 %by1 to i128
  %high = lshr i128 %sum, %downw
  %back = shl i128 %high, %downw
  %rest = sub i128 %sum, %back
  %halfw = sub i128 %downw, 1
  %half = shl i128 1, %halfw
  %above = icmp ugt i128 %rest, %half
  %middle = icmp eq i128 %rest, %half
  %high64 = trunc i128 %high to i64
  %odd = trunc i64 %high64 to i1
  %tie = and i1 %middle, %odd
  %carry = or i1 %above, %tie
  %one = zext i1 %carry to i64
  %rounded = add i64 %high64, %one
  br label %pack
pack:
  %m = phi i64 [ %grown64, %fits ], [ %rounded, %drop ]
  %last = add i64 %e, %by1
  %biased = add i64 %last, 1074
  %over = icmp sgt i64 %biased, 2045
  %place = shl i64 %biased, 52
  %number = add i64 %place, %m
  %value = select i1 %over, i64 9218868437227405312, i64 %number
  %all = or i64 %value, %sign
  %result = bitcast i64 %all to double
  ret double %result
}}
attributes #0 = {{ nounwind "no-builtins" }}
"""


def _round(body: str) -> Callable[[_IeeeFormat, str], str]:
    return lambda kind, name: _ROUND.format(name=name, body=body.format(**kind.names), **kind.names)


def _remainder(kind: _IeeeFormat, name: str) -> str:
    if kind is _DOUBLE:
        casts = {"widen_x": "or i64 %mx, 0", "widen_y": "or i64 %my, 0", "narrow": "or i64 %value, 0"}
    else:
        casts = {f"widen_{x}": f"zext i32 %m{x} to i64" for x in "xy"} | {"narrow": "trunc i64 %value to i32"}
    return _REMAINDER.format(name=name, **casts, **kind.names)


_TEXTS: dict[str, str] = {
    f"{name}{kind.suffix}": text(kind, f"{name}{kind.suffix}")
    for kind in (_SINGLE, _DOUBLE)
    for name, text in {**{name: _round(body) for name, body in _BODIES.items()}, "fmod": _remainder}.items()
} | {"fma": _FMA.format()}
NAMES = frozenset(_TEXTS)
"""C names of the available functions: ``floor``, ``ceil``, ``trunc``, ``roundeven``, ``fmod``, each also for f32, and
``fma``. graphc's code calls no other math function of LLVM."""


def builtin_text(name: str, triple: str) -> str | None:
    """Return LLVM text that defines a function for a machine, hidden from other libraries; None for an unknown name."""
    systems = {is_wasm: wasm_builtins.TEXTS, is_bare: SOFT_FLOAT, is_macos: MACOS_FUNCTIONS}
    further = next((texts for fits, texts in systems.items() if fits(triple)), {})
    text = further.get(name) or _TEXTS.get(name)
    return None if text is None else f'target triple = "{triple}"\n{text}'
