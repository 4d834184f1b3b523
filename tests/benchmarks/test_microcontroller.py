"""The comparison on an emulated board: what it prints, and unknown nets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import microcontroller
from benchmarks.microcontroller import Figures
from tools.codegen.boards import BOARDS


def test_each_compiler_has_a_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    found = {
        name: Figures(10 * i, 20 * i, 30 * i, np.array([0.5 * i], np.float32)) for i, name in enumerate(("graphc", "b"))
    }
    monkeypatch.setattr(microcontroller, "compare", lambda name, target, folder: found)
    assert microcontroller.main(["policy"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "| policy | b | 10 | 20 | 30 | 5.0e-01 |"
    assert microcontroller.main(["--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [(r["net"], r["compiler"]) for r in records] == [(n, c) for n in microcontroller.NETS for c in found]


def test_an_unknown_net_is_named(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stopped:
        microcontroller.main(["nett"])
    assert stopped.value.code == 2
    assert "unknown net 'nett': choose from policy, policy-int8, digits, digits-int8" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
def test_a_board_counts_instructions_of_a_call(target: str, tmp_path: Path):
    board = BOARDS[target]
    for tool in board.tools:
        if microcontroller.shutil.which(tool) is None:
            pytest.skip(f"no {tool}")
    loop = 'for (int i = 0; i < 1000; i++) __asm__ volatile("nop");'
    text = f"int net(const float *input, float *output) {{ output[0] = input[0]; {loop} return 0; }}"
    figures = microcontroller.measure(text, [], 1, 1, board, tmp_path)
    assert 2000 < figures.instructions < 5000 and figures.outputs.shape == (1,)
