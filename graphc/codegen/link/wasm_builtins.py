"""Functions that LLVM calls on WebAssembly alone, as LLVM text: integers of 128 bits, and copies.

Integers of 128 bits are passed as two words of 64 bits, the lower one first, and returned through a pointer.
"""

from __future__ import annotations

_END = 'attributes #0 = { nounwind "no-builtins" }\n'
_MULTIPLY = """\
; Schoolbook multiplication in halves of 32 bits: only the product of the lower words has bits beyond a word.
define hidden void @__multi3(ptr %result, i64 %a, i64 %ah, i64 %b, i64 %bh) #0 {
  %a0 = and i64 %a, 4294967295
  %a1 = lshr i64 %a, 32
  %b0 = and i64 %b, 4294967295
  %b1 = lshr i64 %b, 32
  %p00 = mul i64 %a0, %b0
  %p01 = mul i64 %a0, %b1
  %p10 = mul i64 %a1, %b0
  %p11 = mul i64 %a1, %b1
  %c0 = lshr i64 %p00, 32
  %m0 = and i64 %p01, 4294967295
  %s0 = add i64 %c0, %m0
  %middle = add i64 %s0, %p10
  %c1 = lshr i64 %middle, 32
  %m1 = lshr i64 %p01, 32
  %s1 = add i64 %p11, %c1
  %carried = add i64 %s1, %m1
  %x = mul i64 %a, %bh
  %y = mul i64 %ah, %b
  %xy = add i64 %x, %y
  %high = add i64 %carried, %xy
  %low = mul i64 %a, %b
  store i64 %low, ptr %result, align 8
  %next = getelementptr i8, ptr %result, i32 8
  store i64 %high, ptr %next, align 8
  ret void
}
"""
_SHIFT = """\
; NOTE: a shift by 64 - n with n = 0 would take the other word whole, so it is a shift by one and one by 63 - n.
define hidden void @{name}(ptr %result, i64 %low, i64 %high, i32 %count) #0 {{
  %n = zext i32 %count to i64
  %far = icmp uge i64 %n, 64
  %rest = and i64 %n, 63
  %complement = xor i64 %rest, 63
  %moved = {shift} i64 %{source}, %rest
  %one = {back} i64 %{source}, 1
  %spill = {back} i64 %one, %complement
  %kept = {shift} i64 %{sink}, %rest
  %both = or i64 %kept, %spill
  %{sink}.r = select i1 %far, i64 %moved, i64 %both
  %{source}.r = select i1 %far, i64 0, i64 %moved
  store i64 %low.r, ptr %result, align 8
  %next = getelementptr i8, ptr %result, i32 8
  store i64 %high.r, ptr %next, align 8
  ret void
}}
"""
_COPY = """\
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
; An instruction of the feature bulk-memory; sizes have 64 bits, as in all functions of libraries.
define hidden ptr @memcpy(ptr %to, ptr %from, i64 %size) #0 {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  ret ptr %to
}
"""

TEXTS = {
    "__multi3": _MULTIPLY + _END,
    "__ashlti3": _SHIFT.format(name="__ashlti3", shift="shl", back="lshr", source="low", sink="high") + _END,
    "__lshrti3": _SHIFT.format(name="__lshrti3", shift="lshr", back="shl", source="high", sink="low") + _END,
    "memcpy": _COPY + _END,
}
"""Text of each function by its C name, without the line of the target."""
