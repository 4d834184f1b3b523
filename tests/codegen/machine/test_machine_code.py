"""Functions whose bodies are machine code."""

from __future__ import annotations

import ctypes
import platform

import pytest

from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.machine_code import emit_machine_code
from graphc.codegen.machine.target import host_target
from graphc.runtime.loader import host, link_forever

SEVEN = {"x86_64": bytes.fromhex("b807000000c3"), "aarch64": bytes.fromhex("e0008052c0035fd6")}
"""``mov eax, 7; ret`` and ``mov w0, #7; ret``."""


@pytest.mark.skipif(platform.machine() not in SEVEN, reason="the code is for x86-64 and aarch64")
def test_a_call_runs_the_code():
    target = host_target()
    text = f'''target triple = "{target.triple}"
{emit_machine_code("i32 @seven()", SEVEN[platform.machine()])}
define i32 @call() {{
  %x = call i32 @seven()
  ret i32 %x
}}
'''
    address = link_forever(build_object(text, target), ("call",), host())["call"]
    assert ctypes.CFUNCTYPE(ctypes.c_int)(address)() == 7
