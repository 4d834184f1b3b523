"""Runs native code on a painted stack, and instruction by instruction: what proofs say is compared with that."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from graphc.codegen.llvm.build import assemble, build_object
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import host_target
from graphc.codegen.proof.object_code import read_object_code
from graphc.compiler.compile import describe
from graphc.compiler.realtime import realtime_module
from graphc.compiler.stages import Stages
from graphc.runtime.arena import address_of, aligned
from graphc.runtime.loader import host, link_forever
from tests.native import native_spec

STACK = 1 << 20
_CHANGED = ",".join(f"~{{{name}}}" for name in ["rbx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "flags"])
_VECTORS = ",".join(f"~{{xmm{n}}}" for n in range(16))
_SWITCH = """
target triple = "{triple}"
define void @on_stack(ptr %entry, ptr %table, ptr %top) nounwind "frame-pointer"="all" {{
  call void asm sideeffect "movq %rsp, %rbx; movq $2, %rsp; callq *$0; movq %rbx, %rsp",
    "{{rax}},{{rdi}},{{rcx}},{changed}"(ptr %entry, ptr %table, ptr %top)
  ret void
}}
"""
_TRACEME, _PEEKUSER, _SINGLESTEP, _KILL, _RIP = 0, 3, 9, 8, 16 * 8


@dataclass
class Loaded:
    """A program in memory, with arguments."""

    entry: int
    code: range
    """Addresses of its functions."""
    table: Any
    kept: list[Any]


def needs_x86() -> None:
    """Skips elsewhere: the stack is switched, and steps are counted, by means of that processor."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        pytest.skip("stacks are painted on Linux on x86-64 only")


def load(stages: Stages) -> Loaded:
    """The program of ``realtime_module`` with random inputs."""
    code = build_object(realtime_module(stages).text, stages.target)  # in one piece, whatever its size
    entry = link_forever(code, (ENTRY,), native_spec(stages.target))[ENTRY]
    found = read_object_code(code)
    start = entry - found.functions[ENTRY][0]
    manifest, constants = describe(stages.scheduled, stages.target)
    block, random = aligned(constants), np.random.default_rng(0)
    kept: list[Any] = [block]
    addresses: list[int] = []
    for buffer in manifest.buffers:
        if buffer.cls == "constant":
            addresses.append(address_of(block) + buffer.offset)
            continue
        array = aligned(np.zeros(max(64, buffer.nbytes), np.uint8))
        if buffer.cls == "input" and buffer.dtype == "f32":
            array[: buffer.nbytes] = random.standard_normal(buffer.nbytes // 4).astype(np.float32).view(np.uint8)
        kept.append(array)
        addresses.append(address_of(array))
    return Loaded(
        entry,
        range(start, start + len(found.sections[".text 0"][0])),
        (ctypes.c_uint64 * len(addresses))(*addresses),
        kept,
    )


@cache
def _switch() -> Callable[[int, int, int], None]:
    assemble("", host_target())  # inline assembly is read from here on
    text = _SWITCH.format(triple=host_target().triple, changed=f"{_CHANGED},{_VECTORS}")
    code = build_object(text, host_target())
    address = link_forever(code, ("on_stack",), host())["on_stack"]
    return ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)(address)


def painted_bytes(program: Loaded) -> int:
    """Return how many bytes below the stack pointer at entry the program wrote."""
    lowest = STACK
    for paint in (0xA5, 0x5A):
        memory = aligned(np.full(STACK, paint, np.uint8))
        top = address_of(memory) + STACK - 4096
        _switch()(program.entry, ctypes.addressof(program.table), top)
        changed = np.flatnonzero(memory != paint)
        lowest = min(lowest, int(changed[0]))
    return STACK - 4096 - 8 - lowest


def counted_instructions(program: Loaded) -> int:
    """Count the program's own instructions in a call, which a child process runs step by step."""
    call = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(program.entry)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    table = ctypes.addressof(program.table)
    call(table)
    child = os.fork()
    if not child:
        if libc.ptrace(_TRACEME, 0, None, None):
            os._exit(1)
        os.kill(os.getpid(), signal.SIGSTOP)
        call(table)
        os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        pytest.skip("the system lets no process be traced")
    number, code = 0, program.code
    while True:
        place = libc.ptrace(_PEEKUSER, child, _RIP, None)
        inside = place in code
        number += inside
        if libc.ptrace(_SINGLESTEP, child, None, None):
            break
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) or os.WIFEXITED(status):
            break
        if inside and libc.ptrace(_PEEKUSER, child, _RIP, None) not in code:
            break
    libc.ptrace(_KILL, child, None, None)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return number
