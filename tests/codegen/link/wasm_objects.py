"""WebAssembly object code shared by the tests of linking, and calls of modules in Node."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path

import pytest

from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named

HEAD = 'target triple = "wasm32-unknown-unknown"\n'
FIRST = """\
@count = internal global i32 5
@zeros = internal global [1000 x i32] zeroinitializer
@functions = internal constant [3 x ptr] [ptr @add, ptr @other, ptr @half]
declare i32 @other(i32)
declare void @empty()
define internal i32 @add(i32 %x) noinline {
  %old = load i32, ptr @count
  %new = add i32 %x, %old
  store i32 %new, ptr @count
  %to = getelementptr i32, ptr @zeros, i32 %x
  store i32 %new, ptr %to
  ret i32 %new
}
define internal i32 @half(i32 %x) noinline {
  %float = sitofp i32 %x to double
  %rest = frem double %float, 7.25
  %scaled = fmul double %rest, 100.0
  %whole = fptosi double %scaled to i32
  ret i32 %whole
}
define i32 @call(i32 %which, i32 %x) {
  %place = getelementptr ptr, ptr @functions, i32 %which
  %function = load ptr, ptr %place
  %result = call i32 %function(i32 %x)
  ret i32 %result
}
@nowhere = constant ptr @unused
define i32 @unused(i32 %x) {
  call void @empty()
  ret i32 %x
}
"""
"""Functions by address, data of each kind, and a function that nothing calls and that calls what nobody defines."""
SECOND = """\
@table = external hidden constant [4 x i32]
@last = internal constant ptr getelementptr (i8, ptr @table, i32 12)
declare i32 @call(i32, i32)
define i32 @other(i32 %x) {
  %room = alloca [8 x i32]
  %from = getelementptr i32, ptr %room, i32 %x
  store volatile i32 %x, ptr %from
  %a = call i32 @call(i32 0, i32 %x)
  %p = getelementptr i32, ptr @table, i32 %x
  %v = load i32, ptr %p
  %s = add i32 %a, %v
  ret i32 %s
}
define i32 @end() {
  %p = load volatile ptr, ptr @last
  %v = load i32, ptr %p
  ret i32 %v
}
"""
"""Functions that call those of FIRST, with memory on the stack and addresses within a block."""
TABLE = struct.pack("<4i", 100, 101, 102, 103)


@cache
def compiled(text: str) -> bytes:
    """Return the object code of LLVM text."""
    return build_object(HEAD + text, target_named("wasm"))


def call_module(module: bytes, folder: Path, expression: str) -> object:
    """Return the value of an expression of JavaScript over the exports ``e`` of a module; skip without Node."""
    node = shutil.which("node") or pytest.skip("node is not installed")
    (folder / "m.wasm").write_bytes(module)
    script = f"""
    const bytes = require("fs").readFileSync("m.wasm");
    if (!WebAssembly.validate(bytes)) require("v8").setFlagsFromString("--experimental-wasm-relaxed-simd"); // Node 20
    WebAssembly.instantiate(bytes).then(({{ instance: {{ exports: e }} }}) => {{
      console.log(JSON.stringify({expression}));
    }});"""
    done = subprocess.run([node, "-e", script], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
