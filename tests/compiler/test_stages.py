"""Stages: their texts read back and continue, each is computed once, and wrong ones are refused."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.machine.target import target_named
from graphc.compiler.pass_names import GRAPH_PASSES, PROGRAM_PASSES
from graphc.compiler.stages import STAGES, Stages
from graphc.errors import ArgumentError, CompileError, VerifyError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.text import collect_data
from graphc.ir.kernel.verify import verify_program
from graphc.passes.base import PassResult
from graphc.passes.pipeline import PIPELINE
from tests.compiler.graphs import MLP, mlp


def test_every_stage_has_a_text():
    stages = Stages(mlp())
    assert stages.text("traced").strip() == MLP.strip()
    texts = {stage: stages.text(stage) for stage in STAGES}
    assert "matmul(" in texts["optimized"]
    assert texts["lowered"].count("kernel @") >= 1
    assert "define void @graphc_entry" in texts["llvm"]
    assert "graphc_entry:" in texts["asm"]
    assert stages.object.startswith(b"\x7fELF")


def test_texts_read_back_and_continue_to_the_same_code():
    stages = Stages(mlp())
    again = Stages(parse_graph(stages.text("traced")))
    assert again.text("llvm") == stages.text("llvm")
    later = Stages(lowered=parse_program(stages.text("lowered"), collect_data(stages.lowered)))
    assert later.text("llvm") == stages.text("llvm")
    assert later.object == stages.object


def test_each_stage_is_computed_once_and_timed():
    stages = Stages(mlp())
    assert stages.seconds == {}
    first = stages.scheduled
    assert stages.scheduled is first
    assert list(stages.seconds) == ["optimized", "lowered", "scheduled"]
    assert all(seconds > 0 for seconds in stages.seconds.values())


def test_the_traced_graph_is_left_alone():
    graph = mlp()
    Stages(graph).text("asm")
    assert graph == parse_graph(MLP)


def test_the_target_decides_the_assembly():
    assert "zmm" in Stages(mlp(), target=target_named("avx512")).text("asm")
    assert "zmm" not in Stages(mlp(), target=target_named("avx2")).text("asm")
    assert "fmla" in Stages(mlp(), target=target_named("neon")).text("asm")


def test_what_each_pass_leaves_has_a_text():
    stages = Stages(mlp(), target=target_named("avx512"))
    for name in GRAPH_PASSES:
        parse_graph(stages.text(name))
    for name in PROGRAM_PASSES:
        verify_program(parse_program(stages.text(name), collect_data(stages.scheduled)))
    assert stages.text(GRAPH_PASSES[-1]) == stages.text("optimized")
    assert stages.text("polls").startswith(stages.text("scheduled").rstrip())
    assert len({*STAGES, *GRAPH_PASSES, *PROGRAM_PASSES}) == len(STAGES) + len(GRAPH_PASSES) + len(PROGRAM_PASSES)


def test_passes_tell_what_they_did():
    stages = Stages(mlp(), target=target_named("avx512"))
    _ = stages.scheduled
    assert [p.name for p in stages.passes["optimized"]] == [p.name for p in PIPELINE]
    runs = {p.name: p for p in stages.passes["scheduled"]}
    assert tuple(runs) == PROGRAM_PASSES
    assert runs["nests"].changed and any("register block" in reason for reason in runs["nests"].reasons)


def test_wrong_uses_are_refused():
    with pytest.raises(ArgumentError, match="no stage 'fast'\n  try    use one of traced"):
        Stages(mlp()).text("fast")
    with pytest.raises(ArgumentError, match="starts from a graph or from a lowered program"):
        Stages()
    later = Stages(lowered=Stages(mlp()).lowered)
    with pytest.raises(CompileError, match="has no graph"):
        later.text("optimized")


def test_a_wrong_program_is_caught_unless_verifying_is_off(monkeypatch: pytest.MonkeyPatch):
    text = Stages(mlp()).text("lowered").replace("b1", "b9", 1)
    assert "b9" in text
    stages = Stages(lowered=parse_program(text))
    with pytest.raises(VerifyError):
        _ = stages.scheduled


def test_stages_are_logged(caplog: pytest.LogCaptureFixture):
    with caplog.at_level("INFO", "graphc"):
        _ = Stages(mlp()).lowered
    assert [r.getMessage().partition(":")[0] for r in caplog.records] == ["optimized", "lowered"]


def test_a_name_that_no_pass_has_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_PRINT_AFTER", "fold_batch_norm,thread-plan,lanes,all")
    with pytest.warns(
        RuntimeWarning, match=r"no pass 'fold_batch_norm'; use all, or one of .*, fold-batch-norm,"
    ) as told:
        Stages(mlp())
    assert len(told) == 1
    monkeypatch.setenv("GRAPHC_PRINT_AFTER", "theirs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Stages(mlp(), passes=(*PIPELINE, Theirs()))
        Stages(mlp(), passes=(*PIPELINE, Theirs())).optimized  # noqa: B018
        Stages(mlp())


@dataclass(frozen=True)
class Theirs:
    """A pass of a user."""

    name: str = "theirs"

    def run(self, graph: Graph) -> PassResult:
        return PassResult(graph, 0)


def test_lanes_over_the_batch_must_pay_by_the_factor_of_the_target():
    graph = gc.trace(nn.Conv2d(8, 16, 3, padding=1).eval(), gc.ones(8, 8, 12, 12))
    plain = target_named("avx512")
    asked = replace(plain, costs=replace(plain.costs, fusion=replace(plain.costs.fusion, batch_last_gain=1.5)))
    stages = [Stages(graph, target=target) for target in (plain, asked)]
    assert all(s.lowered.kernels for s in stages)
    free, dear = (s.layouts for s in stages)
    assert dear["batch_last"] == 1.5 * free["batch_last"]
    assert {k: v for k, v in dear.items() if k != "batch_last"} == {k: v for k, v in free.items() if k != "batch_last"}
    assert target_named("avx2").costs.fusion.batch_last_gain > 1
