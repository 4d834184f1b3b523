"""Reports of what is proven of a program, and programs of which nothing is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import graphc as gc
from graphc import nn
from graphc.cli.main import main
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import target_named
from graphc.compiler.freeze import freeze
from graphc.compiler.realtime import prove_modules, prove_realtime
from graphc.compiler.stages import Stages
from graphc.errors import RealtimeError
from graphc.models.model_trace import snapshot


def stages_of(model: Any, *examples: Any, target: str = "avx2", dims: Any = None) -> Stages:
    traced = snapshot(model, examples, dims=dims)
    return Stages(freeze(traced.graph, traced.state()), target=target_named(target))


def test_a_report_says_what_a_call_takes():
    report = prove_realtime(stages_of(nn.Linear(8, 4), gc.zeros(1, 8)))
    assert report.arena_bytes == 0 and report.instructions and not report.unbounded
    text = str(report)
    for part in ("no allocation, lock or system call is reached from @graphc_entry", "at most", "stack", "checked"):
        assert part in text
    plain = json.loads(report.to_json())
    assert plain["version"] == 1 and plain["stack_bytes"] == report.stack_bytes and plain["entry"] == ENTRY


def test_threads_and_polls_are_no_part_of_what_is_proven():
    stages = stages_of(nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)), gc.zeros(256, 1024))
    assert stages.execution.threads.chunked
    with pytest.raises(RealtimeError, match=r"graphc_threads|indirect call"):
        prove_modules([stages.module], stages.target, ENTRY, name="shared")
    assert prove_realtime(stages).instructions


def test_loops_over_sizes_of_a_call_have_no_bound_and_are_named():
    batch = gc.Dim("batch", max=64)
    report = prove_realtime(stages_of(nn.Linear(8, 4).eval(), gc.zeros(3, 8), dims=[(batch,)]))
    assert report.instructions is None and report.unbounded
    assert "unbounded by this analysis" in str(report)


def test_functions_of_the_c_library_are_listed_with_the_reason():
    report = prove_realtime(stages_of(lambda x: x.fmod(3.0), gc.zeros(4), target="sse2"))
    assert report.outside == ("fmodf",)
    assert "fmodf: subtracts" in str(report) and "not counted" in str(report)


def test_on_a_microcontroller_nothing_is_bound_when_a_program_is_loaded():
    report = prove_realtime(stages_of(lambda x: x.double() * 3.0, gc.zeros(4), target="cortex-m4"))
    assert "__aeabi_dmul" in report.outside and "in place of a missing instruction" in str(report)
    assert "not counted   resources of these functions" in str(report) and "-z now" not in str(report)


def test_a_program_that_calls_python_is_refused_by_name():
    @gc.opaque(results=lambda x: x)
    def look(x: Any) -> Any:
        return x + 1

    graph = snapshot(lambda x: look(x) * 2, (gc.zeros(3),), calls_python=True).graph
    with pytest.raises(RealtimeError, match="look is Python, which takes locks and memory"):
        prove_realtime(Stages(graph, target=target_named("avx2")))


def test_code_for_gpus_is_refused():
    with pytest.raises(RealtimeError, match="GPUs"):
        prove_realtime(stages_of(nn.Linear(2, 2), gc.zeros(1, 2), target="sm_90"))


def test_the_command_line_prints_reports_and_has_an_exit_code_for_what_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    model = tmp_path / "model.py"
    model.write_text("from graphc import nn\nnet = nn.Linear(40, 3)\n", encoding="utf-8")
    given = ["explain", f"{model}:net", "--input", "input:f32[2,40]", "--realtime", "--target"]
    assert main([*given, "neon"]) == 0
    assert "instructions" in capsys.readouterr().out
    assert main([*given, "avx2:strict", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unbounded"] == []
    assert main([*given, "sm_90"]) == 6
