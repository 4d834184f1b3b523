"""Compiling: manifests say what the code does, results agree with the interpreter, dumps read back."""

from __future__ import annotations

import gc
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import graphc
from graphc.base.dtypes import float32
from graphc.codegen.machine.target import host_target, target_named
from graphc.compiler.compile import SUFFIXES, compile_graph, compile_stages, describe, key_parts, load_compiled
from graphc.compiler.freeze import freeze, watch
from graphc.compiler.stages import STAGES, Stages
from graphc.errors import CompileError
from graphc.files.manifest import INTERRUPTIBLE_NS
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator, evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.types import TensorType
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects.host import host_call
from graphc.passes.dce import DeadCodeElimination
from graphc.passes.pipeline import PIPELINE
from tests.architecture.scan import ROOT
from tests.compiler.graphs import arguments, counter, lookup, mlp
from tests.native import priced


def test_the_manifest_lists_what_a_call_binds():
    manifest = compile_graph(mlp()).manifest
    assert [(b.name, b.cls, b.path, b.written) for b in manifest.buffers] == [
        ("x", "input", "", False),
        ("w", "param", "fc.weight", False),
        ("b", "param", "fc.bias", False),
        ("out0", "output", "", True),
        ("out1", "output", "", True),
        ("arena", "arena", "", True),
    ]
    assert manifest.name == "mlp" and manifest.entry == "graphc_entry"
    assert set(manifest.versions) == {"graphc", "llvmlite", "llvm"}
    assert manifest.arena % 64 == 0


def test_constants_lie_aligned_in_one_block():
    compiled = compile_graph(lookup())
    (constant,) = compiled.manifest.of_class("constant")
    assert constant.offset % 64 == 0
    block = compiled.constants[constant.offset : constant.offset + constant.nbytes]
    np.testing.assert_array_equal(block.view(np.float32), np.arange(40))


def test_results_agree_with_the_interpreter():
    graph = mlp()
    arrays = arguments(graph)
    program = load_compiled(compile_graph(graph))
    for found, expected in zip(program.run(arrays[:1], arrays[1:]), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_states_are_written_and_marked():
    graph = counter()
    compiled = compile_graph(graph)
    assert [b.written for b in compiled.manifest.of_class("state")] == [True]
    program = load_compiled(compiled)
    state, expected_state = np.zeros(3, np.float32), np.zeros(3, np.float32)
    for step in range(3):
        x = np.full(3, step + 1, np.float32)
        evaluator = Evaluator()
        (expected,) = evaluator.run(graph, [x, expected_state])
        expected_state = evaluator.state["total"]
        np.testing.assert_array_equal(program.run([x], (state,))[0], expected)
        np.testing.assert_array_equal(state, expected_state)


def test_an_input_that_is_returned_is_a_copy():
    graph = parse_graph("graph @same(%x: f32[3]) -> (f32[3], f32[3]) {\n  return %x, %x\n}")
    program = load_compiled(compile_graph(graph))
    x = np.arange(3, dtype=np.float32)
    first, second = program.run([x])
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, x)
    assert not np.shares_memory(first, x) and not np.shares_memory(first, second)


def test_equal_graphs_give_equal_bytes_in_every_process():
    program = (
        "import hashlib; from tests.compiler.graphs import mlp; from graphc.compiler.compile import compile_graph;"
        "from graphc.codegen.machine.target import target_named;"
        "print(hashlib.sha256(compile_graph(mlp(), target_named('avx2')).object).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_code_for_another_machine_is_not_loaded():
    compiled = compile_graph(mlp(), target_named("neon"))
    assert compiled.manifest.target.triple.startswith("aarch64")
    with pytest.raises(CompileError, match=r"mlp does not run here: it was built for aarch64"):
        load_compiled(compiled)


def test_dump_writes_prepacking_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_DUMP", str(tmp_path))
    graph = Graph("product")
    x = graph.add_input(TensorType(float32, (64, 512)), "x")
    w = graph.add_input(TensorType(float32, (512, 512)), "w", "param", "w")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([matmul(x, w)])
    compile_graph(watch(graph, {"w"}))
    assert [*tmp_path.glob("*.product/weights/lowered.gck")]


def test_dump_writes_every_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_DUMP", str(tmp_path))
    for graph in (lookup(), lookup()):
        compile_graph(graph)
    folders = sorted(tmp_path.iterdir())
    assert [f.name.partition(".")[2] for f in folders] == ["lookup", "lookup"]
    names = {f.name for f in folders[0].iterdir()}
    assert {f"{stage}.{SUFFIXES[stage]}" for stage in STAGES} <= names
    with np.load(folders[0] / "traced.npz") as data:
        graph = parse_graph((folders[0] / "traced.gc").read_text(), dict(data))
    assert graph == lookup()


@pytest.mark.parametrize("on", [True, False])
def test_the_garbage_collector_is_as_it_was(on: bool):
    was_on = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        compile_stages(Stages(mlp()))
        assert gc.isenabled() is on
    finally:
        (gc.enable if was_on else gc.disable)()


def test_the_target_is_part_of_what_a_program_is_found_by():
    """Facts and costs too, which a name does not tell."""
    graph, target = mlp(), host_target()
    fewer = replace(target, l2_bytes=target.l2_bytes // 2)
    cheaper = priced(target, contraction={"fold": 0.0})
    keys = {key_parts(Stages(graph, target=t)) for t in (target, fewer, cheaper)}
    assert len(keys) == 3


@pytest.mark.parametrize(("extent", "is_long"), [(4, False), (2048, True)])
def test_of_a_program_that_calls_python_the_time_is_known_where_ctrl_c_may_end_it(extent: int, is_long: bool):
    graph, target = Graph("f"), target_named("avx2")
    x = graph.add_input(TensorType(float32, (extent, extent)), "x")
    with use(GraphDispatcher(graph)):
        _, found = host_call(graph.scalar(0.0, float32), matmul(x, x), number=0, name="f", results="f32[2]")
        graph.set_outputs([found])
    manifest, _ = describe(Stages(graph, target=target).scheduled, target)
    assert manifest.nanoseconds >= INTERRUPTIBLE_NS if is_long else manifest.nanoseconds == 0


@pytest.mark.parametrize("passes", [PIPELINE, (*PIPELINE, DeadCodeElimination())], ids=["standard", "with a user's"])
def test_the_key_of_code_contains_what_it_assumes_of_sizes(passes):
    rows, columns = graphc.Dim("rows"), graphc.Dim("columns")
    graphs = [
        graphc.trace(lambda x: (x.shape[0] * x.shape[1] > 9, x * 2)[1], graphc.ones(n, n), dims=[(rows, columns)])
        for n in (2, 4)
    ]
    keys = [key_parts(Stages(freeze(graph, {}), passes=passes)) for graph in graphs]
    assert keys[0] != keys[1] and "columns*rows > 9" in "".join(map(str, keys[1]))
