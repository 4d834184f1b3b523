"""Object code shared by the tests of linking, and the machine's tools to inspect results."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from graphc.codegen.link import layout
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import Target, architecture, host_target, named_targets, target_named
from tools.codegen.cross_ops import PROCESSORS, commands

TARGETS = ("sse2", "neon", "rv64gc")
"""One for each family with object code."""
TEXT = """\
target triple = "{triple}"
@count = internal global i32 5
@seen = internal global [100 x i32] zeroinitializer
@functions = internal constant [3 x ptr] [ptr @add, ptr @look, ptr @half]
@table = external global [4 x i32]

define internal i32 @add(i32 %x) noinline nounwind {{
  %old = load i32, ptr @count
  %new = add i32 %x, %old
  store i32 %new, ptr @count
  ret i32 %new
}}
define internal i32 @look(i32 %x) noinline nounwind {{
  %from = getelementptr i32, ptr @table, i32 %x
  %value = load i32, ptr %from
  %to = getelementptr i32, ptr @seen, i32 %x
  store i32 %value, ptr %to
  ret i32 %value
}}
define internal i32 @half(i32 %x) noinline nounwind {{
  %float = sitofp i32 %x to double
  %part = fdiv double %float, 2.5
  %rest = frem double %part, 7.25
  %scaled = fmul double %rest, 100.0
  %whole = fptosi double %scaled to i32
  ret i32 %whole
}}
define i32 @call(i32 %which, i32 %x) nounwind {{
  %place = getelementptr ptr, ptr @functions, i32 %which
  %function = load ptr, ptr %place
  %result = call i32 %function(i32 %x)
  ret i32 %result
}}
define i32 @direct(i32 %x) nounwind {{
  %a = call i32 @add(i32 %x)
  %b = call i32 @look(i32 1)
  %sum = add i32 %a, %b
  ret i32 %sum
}}
declare ptr @memset(ptr, i32, i64)
define void @clear(ptr %memory, i64 %size) nounwind {{
  %done = call ptr @memset(ptr %memory, i32 7, i64 %size)
  ret void
}}
"""
"""Functions that reach each other, data of each kind, a block of data, a function of libm and one of libc."""
TABLE = np.arange(100, 104, dtype=np.int32).tobytes()
"""What stands in the block ``table``."""
CALLS = "{call(0, 10), call(0, 10), call(1, 2), direct(3), call(2, 1000)}"
"""Calls in C, and what they give in this order."""
RESULTS = [15, 25, 102, 28 + 101, 125]
DECLARED = "int call(int, int); int direct(int); void clear(void *, long);"
MAIN = (
    f"{DECLARED}\n#include <stdio.h>\n"
    f"int main() {{ char b[4] = {{0}}; int r[] = {CALLS}; clear(b, 3);\n"
    'for (int i = 0; i < 5; i++) printf("%d ", r[i]); printf("%d %d\\n", b[2], b[3]); return 0; }\n'
)
PRINTED = " ".join(map(str, [*RESULTS, 7, 0]))


@cache
def built(name: str) -> bytes:
    """The object code of TEXT for a named target."""
    target = target_named(name)
    return build_object(TEXT.format(triple=target.triple), target)


def loaded(library: bytes, folder: Path) -> ctypes.CDLL:
    """A library in this process."""
    path = folder / "lib.so"
    path.write_bytes(library)
    return ctypes.CDLL(str(path))


def own_target() -> str:
    """Return the target of TARGETS whose code runs here, or skip the test."""
    mine = architecture(host_target())
    found = [name for name in TARGETS if architecture(named_targets()[name]) == mine]
    return found[0] if found else pytest.skip(f"no target for {mine}")


def need(*tools: str) -> None:
    """Skips the test where this machine lacks a tool."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def output(*command: str | Path) -> str:
    """Return the output of a command, which must succeed without warnings."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def run_main(target: Target, folder: Path, *linked: str) -> str:
    """Return the output of MAIN, linked with these objects for a target's machine. Skip where no tool can."""
    need(*commands(target))
    compiler, *emulator = commands(target)
    (folder / "main.c").write_text(MAIN)
    options = ["-Wl,-rpath,$ORIGIN", "-Wl,--fatal-warnings"]
    subprocess.run([compiler, "-o", folder / "main", folder / "main.c", *linked, *options], cwd=folder, check=True)
    if emulator:
        name = architecture(target)
        emulator += ["-cpu", PROCESSORS.get(name, "max"), "-L", f"/usr/{name}-linux-gnu"]
    done = subprocess.run([*emulator, folder / "main"], capture_output=True, text=True, check=True, cwd=folder)
    return done.stdout.strip()


def segments(library: bytes) -> list[tuple[int, ...]]:
    """The program headers of a library."""
    start, count = struct.unpack_from("<Q", library, 32)[0], struct.unpack_from("<H", library, 56)[0]
    return [layout.SEGMENT.unpack_from(library, start + i * layout.SEGMENT.size) for i in range(count)]
