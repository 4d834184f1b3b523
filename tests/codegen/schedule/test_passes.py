"""Program passes: each leaves a valid program that computes the same, and says what it changed and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.base import Context, Scheduled
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.passes import NonTemporalStores, SplitReductions, TileAndFuse
from graphc.codegen.schedule.pipeline import PIPELINE, verify_scheduled
from graphc.files.manifest import PREPACKED
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Program
from graphc.lowering.program import lower_graph
from graphc.passes.pipeline import optimize
from tests.end_to_end.seeded_graphs import seeded_graph
from tests.native import decomposed, lowered, priced
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of

SMALL = replace(target_named("avx512"), l2_bytes=8192)
ATTENTION = graph_of("""
    graph @attention(%q: f32[4,64,16], %k: f32[4,64,16], %v: f32[4,64,16]) -> (f32[4,64,16]) {
      %s = matmul(%q, %k) {transpose_a=false, transpose_b=true} : f32[4,64,64]
      %e = exp(%s) : f32[4,64,64]
      %y = matmul(%e, %v) {transpose_a=false, transpose_b=false} : f32[4,64,16]
      return %y
    }""")
PACKED = graph_of("""
    graph @linear(%x: f32[12,24], %w: f32[40,24] weight "w", %s: f32[40] weight "s") -> (f32[12,40]) {
      %f = exp(%s) : f32[40]
      %c = reshape(%f) {shape=[40,1]} : f32[40,1]
      %e = mul(%w, %c) : f32[40,24]
      %y = matmul(%x, %e) {transpose_a=false, transpose_b=true} : f32[12,40]
      return %y
    }""")
LONG_SUM = graph_of("""
    graph @total(%x: f32[300000]) -> (f32[]) {
      %y = sum(%x) {axes=[0], keepdims=false} : f32[]
      return %y
    }""")
ROWS_AND_SUM = graph_of("""
    graph @rows(%x: f32[48,40]) -> (f32[48,40], f32[40]) {
      %m = sum(%x) {axes=[1], keepdims=true} : f32[48,1]
      %y = mul(%x, %m) : f32[48,40]
      %c = sum(%y) {axes=[0], keepdims=false} : f32[40]
      return %y, %c
    }""")


def run(scheduled: Scheduled, program: Program, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of a scheduled program for the arguments of ``program``, and the written arguments."""
    names = [s.name for s in program.storages if s.cls in ("input", "param", "state", "weight")]
    given = dict(zip(names, (np.array(a) for a in arguments), strict=True))
    if scheduled.prepacking is not None:
        first = scheduled.prepacking
        made = run_program(first, [given[s.name] for s in first.storages if s.cls == "input"])
        outputs = [s.name for s in first.storages if s.cls == "output"]
        given.update((PREPACKED + name, array) for name, array in zip(outputs, made, strict=True))
    bound = [s for s in scheduled.program.storages if s.cls in ("input", "param", "state", "weight")]
    result = run_program(scheduled.program, [given[s.path if s.path in given else s.name] for s in bound])
    return [*result, *(given[s.name] for s in program.storages if s.cls in ("param", "state"))]


def check_passes(program: Program, arguments: Sequence[np.ndarray]) -> dict[str, int]:
    """Every pass of the pipeline leaves a valid program with the same results; returns their counts of changes."""
    context, present, counts = Context(Forms(SMALL)), Scheduled(program), {}
    expected = run(present, program, arguments)
    for step in PIPELINE:
        result = step.run(present, context)
        present, counts[step.name] = result.scheduled, result.changed
        verify_scheduled(present)
        for got, expected_result in zip(run(present, program, arguments), expected, strict=True):
            scale = (
                float(np.abs(expected_result[np.isfinite(expected_result)]).max(initial=1.0))
                if expected_result.dtype.kind == "f"
                else 1.0
            )
            np.testing.assert_allclose(got, expected_result, rtol=1e-4, atol=1e-5 * scale, err_msg=step.name)
    return counts


@pytest.mark.parametrize("seed", range(6))
def test_every_pass_keeps_what_random_graphs_compute(seed: int):
    graph = decomposed(seeded_graph(seed))
    with np.errstate(all="ignore"):
        check_passes(lowered(graph), random_arguments(graph))


@pytest.mark.parametrize(
    ("graph", "doing"),
    [(ATTENTION, "tile-and-fuse"), (PACKED, "prepacking"), (LONG_SUM, "split-reductions")],
    ids=["attention", "weights", "sum"],
)
def test_every_pass_keeps_what_those_graphs_compute_that_it_is_made_for(graph: Graph, doing: str):
    counts = check_passes(lower_graph(optimize(graph)), random_arguments(graph))
    assert counts[doing] > 0 and counts["nests"] > 0 and counts["polls"] == 0


def test_tiles_have_a_reason():
    result = TileAndFuse().run(Scheduled(lower_graph(optimize(ATTENTION))), Context(Forms(SMALL)))
    assert result.changed > 0
    assert any("tiles" in reason and "4096 bytes" in reason for reason in result.reasons)


@pytest.mark.parametrize(("graph", "number"), [(LONG_SUM, 0), (ROWS_AND_SUM, 1)], ids=["sum", "with rows"])
def test_the_kernel_that_is_split_has_a_reason(graph: Graph, number: int):
    """The reason belongs to the long sum, not to the kernel before it, which joins the partial sums."""
    target = priced(SMALL, reduction={"rows_from": 1, "rows_stretch": 640, "high": 2, "wide": 8})
    program = lowered(graph)
    result = SplitReductions().run(Scheduled(program), Context(Forms(target)))
    assert result.changed > 0
    assert [reason.partition(":")[0] for reason in result.reasons] == [program.kernels[number].name]


def test_a_pass_that_finds_nothing_changes_nothing():
    given = Scheduled(lowered(PACKED))
    result = NonTemporalStores().run(given, Context(Forms(SMALL)))
    assert (result.scheduled, result.changed, result.reasons) == (given, 0, ())
