"""Native code touches no byte outside of its buffers: each kernel runs between pages that must not be touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphc.ir.graph.text import print_graph
from tests.native import TARGETS, target_or_skip
from tests.passes.graph_text import graph_of

ROOT = Path(__file__).resolve().parents[2]
GRAPHS = {
    "tails": """
        graph @tails(%x: f32[37], %y: f64[13], %z: i8[21], %b: bool[19], %s: f32[7] state "s") -> (
            f32[37], f64[13], i8[21], bool[19]
        ) {
          %a = exp(%x) : f32[37]
          %c = mul(%y, %y) : f64[13]
          %d = add(%z, %z) : i8[21]
          %e = logical_not(%b) : bool[19]
          %n = neg(%s) : f32[7]
          %w = state_write(%s, %n) : f32[7]
          return %a, %c, %d, %e
        }""",
    "rows": """
        graph @rows(%x: f32[5,23]) -> (f32[5,23], f32[23], f32[5]) {
          %m = max(%x) {axes=[1], keepdims=true} : f32[5,1]
          %d = sub(%x, %m) : f32[5,23]
          %e = exp(%d) : f32[5,23]
          %s = sum(%e) {axes=[1], keepdims=true} : f32[5,1]
          %y = div(%e, %s) : f32[5,23]
          %c = sum(%y) {axes=[0]} : f32[23]
          %r = sum(%x) {axes=[1]} : f32[5]
          return %y, %c, %r
        }""",
    "padding": """
        graph @padding(%x: f32[3,7]) -> (f32[6,11], f32[3,4], f32[3,14]) {
          %p = pad(%x) {low=[1,2], high=[2,2], interior=[0,0], value=1.5} : f32[6,11]
          %a = abs(%p) : f32[6,11]
          %s = slice(%x) {starts=[0,1], stops=[3,7], steps=[1,2]} : f32[3,3]
          %t = slice(%x) {starts=[0,3], stops=[3,7], steps=[1,1]} : f32[3,4]
          %f = flip(%t) {axes=[0,1]} : f32[3,4]
          %c = concat(%x, %x) {axis=1} : f32[3,14]
          %n = neg(%c) : f32[3,14]
          %o = neg(%s) : f32[3,3]
          return %a, %f, %n
        }""",
    "products": """
        graph @products(%a: f32[13,11], %b: f32[11,37], %c: f32[37,11], %v: f32[37]) -> (
            f32[13,37], f32[13,37], f32[11,11]
        ) {
          %m = matmul(%a, %b) : f32[13,37]
          %n = add(%m, %v) : f32[13,37]
          %t = matmul(%a, %c) {transpose_b=true} : f32[13,37]
          %u = matmul(%b, %c) : f32[11,11]
          return %n, %t, %u
        }""",
    "convolutions": """
        graph @convolutions(%x: f32[2,3,9,7], %w: f32[5,3,3,3]) -> (f32[2,5,9,7], f32[5,3,3,3], f32[2,3,4,3]) {
          %y = conv(%x, %w) {stride=[1,1], padding=[[1,1],[1,1]], dilation=[1,1], groups=1} : f32[2,5,9,7]
          %g = conv_grad_weight(%x, %y) {
            kernel=[3,3], stride=[1,1], padding=[[1,1],[1,1]], dilation=[1,1], groups=1
          } : f32[5,3,3,3]
          %p = max_pool(%x) {kernel=[2,3], stride=[2,2], padding=[[0,0],[0,0]], dilation=[1,1]} : f32[2,3,4,3]
          return %y, %g, %p
        }""",
    "transposes": """
        graph @transposes(%x: f32[19,21], %i: i64[5]) -> (f32[21,19], f32[5,21], f32[19,21]) {
          %t = transpose(%x) {permutation=[1,0]} : f32[21,19]
          %n = neg(%t) : f32[21,19]
          %g = gather(%x, %i) {axis=0} : f32[5,21]
          %s = scatter_add(%x, %i, %g) {axis=0} : f32[19,21]
          return %n, %g, %s
        }""",
}


@pytest.mark.skipif(not sys.platform.startswith(("linux", "darwin")), reason="needs mprotect")
@pytest.mark.parametrize("target", TARGETS)
def test_between_guard_pages(target: str, tmp_path: Path):
    target_or_skip(target)
    files = []
    for name, text in GRAPHS.items():
        files.append(tmp_path / f"{name}.gc")
        files[-1].write_text(print_graph(graph_of(text)), encoding="utf-8")
    command = [sys.executable, "-m", "tests.end_to_end.guard_pages", target, *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    reached = f"{done.stdout.split()[-1:]} ended with {done.returncode}: {done.stderr[-2000:]}"
    assert done.returncode == 0 and done.stdout.split() == [*GRAPHS, "done"], reached


def test_the_fence_stops_an_access_outside():
    code = (
        "import ctypes, numpy as np\n"
        "from tests.end_to_end.guard_pages import fenced\n"
        "a = fenced(np.ones(5, np.float32), True)\n"
        "ctypes.memmove(a.ctypes.data + 16, a.ctypes.data, 4)\n"
        "print('inside', flush=True)\n"
        "ctypes.memmove(a.ctypes.data + 17, a.ctypes.data, 4)\n"
        "print('outside')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.stdout == "inside\n" and done.returncode < 0
