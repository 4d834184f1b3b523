"""Graphs with named dimensions as one native program for all sizes, against the graphs of these sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.sizes.size_text import LOOP
from graphc.calls.plan import plan_of
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.compiler.explain import explain
from graphc.compiler.stages import Stages
from graphc.files.manifest import PREPACKED, Manifest, from_json, to_json
from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.ir.graph.interpret import bind, evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.statements import Loop, walk
from graphc.runtime.arena import POOL
from tests.lowering.sized import random_arguments
from tests.native import Tolerance

BATCH, TIME = gc.Dim("batch", 1, 64, hint=8), gc.Dim("time", 1, 256, hint=64)
BATCHES = [{"batch": n} for n in (1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 64, 8)]
LENGTHS = [(1, 1), (1, 2), (2, 3), (1, 15), (3, 16), (1, 17), (2, 33), (1, 64), (3, 100), (1, 129), (8, 64), (1, 256)]


class Attention(nn.Module):
    """Layer norm, attention of two heads, a gated step."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Any) -> Any:
        """f32[batch,time,16] -> the same."""
        batch, time, width = x.shape
        q, k, v = (
            part.reshape(batch, time, 2, 8).transpose(1, 2) for part in self.qkv(self.norm(x)).split(width, dim=2)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + nn.functional.gelu(self.out(y.transpose(1, 2).reshape(batch, time, width)))


def mlp() -> Graph:
    model = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 10), nn.LogSoftmax(-1))
    return gc.trace(model, gc.rand(8, 20), dims={"input": (BATCH, 20)})


def attention() -> Graph:
    return gc.trace(Attention(), gc.rand(8, 64, 16), dims={"x": (BATCH, TIME, 16)})


def images() -> Graph:
    layers = (nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.Flatten())
    model = nn.Sequential(*layers, nn.Linear(256, 5))
    return gc.trace(model, gc.rand(8, 3, 12, 12), dims={"input": (BATCH, 3, 12, 12)})


def recurrent() -> Graph:
    return gc.trace(nn.GRU(6, 10, batch_first=True), gc.rand(8, 64, 6), dims={"input": (BATCH, TIME, 6)})


MODELS: dict[str, tuple[Callable[[], Graph], list[dict[str, int]]]] = {
    "mlp": (mlp, BATCHES),
    "attention": (attention, [{"batch": b, "time": t} for b, t in LENGTHS]),
    "images": (images, BATCHES),
    "recurrent": (recurrent, [{"batch": b, "time": t} for b, t in LENGTHS[:9]]),
}


class Run:
    """A graph as one native program."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.compiled = compile_graph(graph)
        self.program = load_compiled(self.compiled)
        self.first = None if self.compiled.prepacking is None else load_compiled(self.compiled.prepacking)

    def check(self, sizes: dict[str, int]) -> None:
        """Compares with the interpreter of the graph of these sizes."""
        fixed = bind(self.graph, sizes)
        arrays = random_arguments(fixed)
        expected = evaluate(fixed, [a.copy() for a in arrays])
        named = {v.name: a for v, a in zip(fixed.inputs, arrays, strict=True)}
        paths = {input_path(v): a for v, a in zip(fixed.inputs, arrays, strict=True) if input_class(v) != "input"}
        if self.first is not None:
            made = self.first(*[named[spec.name] for spec in self.first.inputs])
            paths |= {PREPACKED + spec.name: a for spec, a in zip(self.first.outputs, made, strict=True)}
        inputs = [a for v, a in zip(fixed.inputs, arrays, strict=True) if input_class(v) == "input"]
        got = self.program.run(inputs, tuple(paths[spec.path] for spec in self.program.bound))
        Tolerance(scaled=2e-5).check(got, [np.asarray(e) for e in expected], f"{sizes}")


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Inside, calls may use so many threads."""
    before = gc.get_num_threads()
    gc.set_num_threads(count)
    try:
        yield
    finally:
        gc.set_num_threads(before)


@pytest.mark.parametrize("name", MODELS)
def test_no_loop_is_called_as_a_dimension_may_be(name: str):
    stages = Stages(MODELS[name][0]())
    kernels = [*stages.lowered.kernels, *stages.scheduled.kernels]
    loops = {s.axis.name for kernel in kernels for s, _ in walk(kernel.body) if isinstance(s, Loop)}
    assert loops and all(LOOP.fullmatch(loop) for loop in loops), loops


@pytest.mark.parametrize("name", MODELS)
def test_one_program_computes_what_the_graph_says_at_every_size(name: str):
    make, sizes = MODELS[name]
    gc.manual_seed(0)
    run = Run(make())
    for count in (1, 2):
        with threads(count):
            for chosen in sizes:
                run.check(chosen)


WIDE = """\
dim batch = 1..600 hint 256
dim time = 1..2500 hint 1000
graph @wide(%x: f32[batch,time]) -> (f32[batch,time], f32[batch]) {
  %e = exp(%x) : f32[batch,time]
  %s = sum(%e) {axes=[1], keepdims=true} : f32[batch,1]
  %d = div(%e, %s) : f32[batch,time]
  %m = max(%d) {axes=[1], keepdims=false} : f32[batch]
  return %d, %m
}
"""


def test_threads_share_a_program_at_every_size():
    run = Run(parse_graph(WIDE))
    assert run.compiled.stages.execution.threads.chunked
    for count in (1, 2, 3):
        with threads(count):
            for batch, time in ((1, 1), (1, 2500), (2, 7), (13, 16), (64, 255), (255, 31), (600, 2500)):
                run.check({"batch": batch, "time": time})


def test_arenas_grow_with_the_sizes_and_are_used_again():
    run = Run(attention())
    POOL.clear()
    for time in (256, 3, 256, 100):
        run.check({"batch": 64, "time": time})
    needed = run.program.sizes.of_dimensions({"batch": 64, "time": 256}).arena
    assert needed <= POOL.nbytes < 2 * needed


def test_the_manifest_of_a_program_with_named_dimensions_is_plain_data():
    manifest = compile_graph(attention()).manifest
    assert [d.name for d in manifest.dims] == ["batch", "time"]
    assert from_json(Manifest, to_json(manifest)) == manifest


def test_an_explanation_names_the_dimensions():
    found = explain(Stages(attention()))
    assert found.dims == ("batch = 1..64 hint 8", "time = 1..256 hint 64")
    assert "batch*time" in found.memory.formula and found.memory.arena >= found.memory.bound > 0
    assert "one program for batch = 1..64 hint 8; time = 1..256 hint 64; figures are for the hints" in str(found)
    assert isinstance(found.as_json()["memory"]["arena"], int)


def pooled() -> Graph:
    """Windows of images that lie side by side: one image has a version of its own."""
    batch = gc.Dim("images", 1, 64, hint=32)
    model = nn.Sequential(nn.Conv2d(1, 8, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
    gc.manual_seed(0)
    return gc.trace(model.eval(), gc.rand(4, 1, 16, 16), dims={"input": (batch, 1, 16, 16)})


def test_versions_of_kernels_are_counted():
    found = explain(Stages(pooled()))
    chosen = sorted({call.kernel for call in found.calls if call.versions == 2})
    assert chosen and f"{len(chosen)} kernels have several versions" in str(found)
    assert "versions  2, chosen by the sizes of a call" in str(found)
    assert "a version of its own for images = 1, there " in str(found)
    compiled = compile_graph(pooled())
    assert compiled.manifest.chosen == len(chosen)
    assert from_json(Manifest, to_json(compiled.manifest)) == compiled.manifest
    assert f"{len(chosen)} kernels in several versions" in str(plan_of(load_compiled(compiled)))
    assert "no kernel has several versions" in str(explain(Stages(attention())))


def test_versions_are_right_at_every_size():
    run = Run(pooled())
    for images in (1, 2, 3, 1, 15, 16, 17, 31, 32, 33, 64, 1):
        run.check({"images": images})
