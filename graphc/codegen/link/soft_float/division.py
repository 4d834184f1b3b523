"""Quotients and rests of 64-bit integers on processors that divide 32 bits."""

from __future__ import annotations

from graphc.codegen.link.soft_float.blocks import function

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


def division() -> dict[str, str]:
    """Return the text of each function by its name: signed and unsigned, quotient and rest."""
    texts = dict[str, str]()
    for number, (name, sign) in enumerate({"div": "xor i64 %negx, %negy", "mod": "or i64 %negx, 0"}.items()):
        for prefix, body in (("", _SIGNED), ("u", _UNSIGNED)):
            text = body.format(which=number, sign=sign)
            texts |= function(f"__{prefix}{name}di3", "i64", "i64 %x, i64 %y", text, _DIVIDE)
    return texts
