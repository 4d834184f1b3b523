"""Probe of stack pages on Windows, which commits the pages of a stack one after the other.

LLVM calls ``__chkstk`` at the start of functions with a frame of a page or more: RAX holds the bytes of the frame. It
may change R10 and R11 only (Microsoft x64 ABI, "Prolog and epilog").
"""

from __future__ import annotations

from graphc.codegen.machine.machine_code import emit_machine_code

_PROBE = bytes.fromhex("4c8d542408 4d89d3 4929c3 4981ea00100000 4d39da 7605 4d8512 ebef 4d851b c3")
"""Machine code: lea r10, [rsp+8]; mov r11, r10; sub r11, rax; then r10 steps down by pages to r11 (sub r10, 4096; cmp
r10, r11; jbe), touching each (test [r10], r10; jmp) and at last that of r11 (test [r11], r11); ret."""
FUNCTIONS = {"__chkstk": emit_machine_code("void @__chkstk()", _PROBE, "hidden")}
"""LLVM text of the functions that code for Windows calls, by name."""
