"""Random quantized graphs as machine code of other processors: some on each machine that can be run here."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("torch", reason="the runner of nets uses PyTorch")

from graphc.codegen.machine.target import target_named
from tools.codegen import cross_ops
from tools.nets.quantized import emulated

GRAPHS = 12


@pytest.mark.parametrize("name", ["sse2", "neon", "neon-dotprod", "neon-i8mm", "rv64gc"])
def test_graphs_have_the_codes_of_this_machine(name: str, tmp_path):
    target = target_named(name)
    if reason := cross_ops.missing_tool(target):
        pytest.skip(reason)
    programs = emulated.programs(target, GRAPHS, seed=0)
    assert len(programs) == GRAPHS
    assert cross_ops.run(programs, target, tmp_path) == []


def test_programs_for_other_processors_are_built_without_them_and_other_codes_are_noticed():
    programs = emulated.programs(target_named("rv64gc"), 2, seed=0)
    results = b"".join(np.ascontiguousarray(a).tobytes() for program in programs for a in program.expected)
    assert cross_ops.compare(programs, results) == []
    lines = cross_ops.compare(programs, bytes(b ^ 0x55 for b in results))
    assert {line.partition(":")[0] for line in lines} == {program.title for program in programs}


def test_the_command_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(cross_ops.shutil, "which", lambda tool: None)
    assert emulated.main(["--target", "neon"]) == 2
    assert "cannot run here: no " in capsys.readouterr().err
