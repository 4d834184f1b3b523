"""Native programs for the tests of the runtime, written by hand in LLVM text."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

import numpy as np
import pytest
from llvmlite import binding

from graphc.files.manifest import BufferSpec, Manifest
from graphc.runtime.call import Executable
from graphc.runtime.loader import host, load_object

# buffers: x f32[n], w f32[n] (param), s f32[n] (state), y f32[n] (output), c f32[1] (constant), arena
# arena[i] = x[i] * w[i]; y[i] = arena[i] + c; s[i] = s[i] + x[i]
PROGRAM = """
define void @entry(ptr %b) {{
start:
  %px = load ptr, ptr %b
  %p1 = getelementptr ptr, ptr %b, i64 1
  %pw = load ptr, ptr %p1
  %p2 = getelementptr ptr, ptr %b, i64 2
  %ps = load ptr, ptr %p2
  %p3 = getelementptr ptr, ptr %b, i64 3
  %py = load ptr, ptr %p3
  %p4 = getelementptr ptr, ptr %b, i64 4
  %pc = load ptr, ptr %p4
  %p5 = getelementptr ptr, ptr %b, i64 5
  %pa = load ptr, ptr %p5
  %c = load float, ptr %pc
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %j, %body ]
  %more = icmp ult i64 %i, {n}
  br i1 %more, label %body, label %done
body:
  %ax = getelementptr float, ptr %px, i64 %i
  %aw = getelementptr float, ptr %pw, i64 %i
  %as = getelementptr float, ptr %ps, i64 %i
  %ay = getelementptr float, ptr %py, i64 %i
  %aa = getelementptr float, ptr %pa, i64 %i
  %x = load float, ptr %ax
  %w = load float, ptr %aw
  %xw = fmul float %x, %w
  store float %xw, ptr %aa
  %again = load float, ptr %aa
  %y = fadd float %again, %c
  store float %y, ptr %ay
  %s = load float, ptr %as
  %t = fadd float %s, %x
  store float %t, ptr %as
  %j = add i64 %i, 1
  br label %loop
done:
  ret void
}}
"""


def build(text: str) -> bytes:
    """Object code of LLVM text for this machine."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="small")
    return machine.emit_object(binding.parse_assembly(text))


def manifest(n: int, shape: tuple[int, ...] | None = None, arena: int | None = None) -> Manifest:
    """The manifest of PROGRAM over ``n`` elements, in another ``shape`` if one is given."""
    shape = (n,) if shape is None else shape
    return Manifest(
        "axpy",
        "entry",
        (
            BufferSpec("x", "f32", shape, "input"),
            BufferSpec("w", "f32", shape, "param", "fc.weight"),
            BufferSpec("s", "f32", shape, "state", "fc.sum", written=True),
            BufferSpec("y", "f32", shape, "output"),
            BufferSpec("c", "f32", (1,), "constant", offset=64),
            BufferSpec("arena", "u8", (4 * n if arena is None else arena,), "arena"),
        ),
        arena=4 * n if arena is None else arena,
        constants=68,
        target=host(),
    )


def executable(n: int, shape: tuple[int, ...] | None = None, arena: int | None = None) -> Executable:
    """PROGRAM over ``n`` elements with the constant 0.5."""
    constants = np.zeros(17, np.float32)
    constants[16] = 0.5
    library = load_object(build(PROGRAM.format(n=n)), "entry", host())
    return Executable(manifest(n, shape, arena), library, constants.view(np.uint8))


def kept_bytes(load: Callable[[], object], warm_calls: int, calls: int) -> int:
    """Return how many more bytes are in use after further calls of ``load`` than after its first ones."""

    def use(count: int) -> int:
        for _ in range(count):
            load()
        gc.collect()
        usage = in_use()
        return pytest.skip("this C library does not tell what it holds") if usage is None else usage

    before = use(warm_calls)
    return use(calls) - before


def in_use() -> int | None:
    """Return the bytes that malloc has given and not got back; None where the C library does not tell."""

    class Usage(ctypes.Structure):
        _fields_ = [(f"field{i}", ctypes.c_size_t) for i in range(10)]

    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return None
    ask.restype = Usage
    usage = ask()
    return usage.field7 + usage.field4
