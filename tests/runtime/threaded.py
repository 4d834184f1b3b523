"""Compiled programs with work for several threads, for the tests of threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from graphc.codegen.llvm.entry import THREADS
from graphc.codegen.machine.target import host_target
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.stages import Stages
from graphc.ir.graph.parse import parse_graph
from graphc.ops import registry
from graphc.runtime import threads
from graphc.runtime.call import Executable
from tests.native import priced

assert registry.FAMILIES

MODEL = """
graph @model(%x: f32[96,160], %w: f32[160,144], %b: f32[144], %v: f32[144,96]) -> (f32[96,96], f32[96]) {
  %h = matmul(%x, %w) : f32[96,144]
  %a = add(%h, %b) : f32[96,144]
  %t = tanh(%a) : f32[96,144]
  %y = matmul(%t, %v) : f32[96,96]
  %m = max(%y) {axes=[1], keepdims=true} : f32[96,1]
  %d = sub(%y, %m) : f32[96,96]
  %e = exp(%d) : f32[96,96]
  %s = sum(%e) {axes=[1], keepdims=true} : f32[96,1]
  %p = div(%e, %s) : f32[96,96]
  %r = sum(%p) {axes=[0]} : f32[96]
  return %p, %r
}
"""
"""Packing, products, pointwise work, rows with scratch memory, and sums of columns."""


@contextmanager
def thread_count(count: int) -> Iterator[None]:
    """Limit calls inside to a number of threads. They do not spin, so the pool uses them on a busy machine too."""
    before, spin = threads.get_num_threads(), threads._record.spin
    threads.set_num_threads(count)
    threads._record.spin = 0
    try:
        yield
    finally:
        threads.set_num_threads(before)
        threads._record.spin = spin


SHARED = priced(host_target(), threads={"split_ns": 0, "repeated_ns": 0, "team_ns": 0, "part_ns": 1})
"""This machine, on which threads share what is compiled however small it is."""


def model(text: str = MODEL) -> tuple[Executable, list[np.ndarray]]:
    """A program that threads share, and arrays to call it with."""
    graph = parse_graph(text)
    compiled = compile_stages(Stages(graph, target=SHARED))
    assert THREADS.encode() in compiled.object
    random = np.random.default_rng(0)
    return load_compiled(compiled), [random.standard_normal(v.shape).astype(np.float32) for v in graph.inputs]
