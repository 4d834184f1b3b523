"""The comparison on an emulated board: what it prints, and unknown nets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import microcontroller
from benchmarks.microcontroller import NETS, Code, Figures
from tools.codegen.boards import BOARDS, Board


def test_each_compiler_has_a_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    found = {
        name: Figures(10 * i, 20 * i, 30 * i, np.array([0.5 * i], np.float32)) for i, name in enumerate(("graphc", "b"))
    }
    found["graphc"] = found["graphc"]._replace(bound=7)
    monkeypatch.setattr(microcontroller, "compare", lambda name, target, folder: found)
    assert microcontroller.main(["policy"]) == 0
    rows = capsys.readouterr().out.splitlines()[-2:]
    assert rows == ["| policy | graphc | 0 | 0 | 0 | 7 | 0.0e+00 |", "| policy | b | 10 | 20 | 30 | - | 5.0e-01 |"]
    assert microcontroller.main(["--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [(r["net"], r["compiler"]) for r in records] == [(n, c) for n in microcontroller.NETS for c in found]


def test_an_unknown_net_is_named(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stopped:
        microcontroller.main(["nett"])
    assert stopped.value.code == 2
    assert "unknown net 'nett': choose from policy, policy-int8, digits, digits-int8" in capsys.readouterr().err


def board_or_skip(target: str) -> Board:
    for tool in BOARDS[target].tools:
        if microcontroller.shutil.which(tool) is None:
            pytest.skip(f"no {tool}")
    return BOARDS[target]


LOOPS = {
    "cortex-m": ["movs r3, #100", "1: nop", "subs r3, #1", "bne 1b", "bx lr"],
    "rv32": ["li t0, 100", "1: nop", "addi t0, t0, -1", "bnez t0, 1b", "ret"],
}
"""302 instructions, by the start of the target's name."""


@pytest.mark.parametrize("target", BOARDS)
def test_a_board_counts_instructions_of_a_call(target: str, tmp_path: Path):
    board = board_or_skip(target)
    loop = "\\n".join(next(lines for family, lines in LOOPS.items() if target.startswith(family)))
    text = f"""
    __attribute__((naked)) int looped(const float *input, float *output) {{ __asm__("{loop}"); }}
    int net(const float *input, float *output) {{ CALL(input, output); return 0; }}
    """
    figures = microcontroller.measure(Code(text, "looped", []), 1, 1, board, tmp_path)
    assert figures.instructions == 302 and figures.outputs.shape == (1,)


MARGIN = {"rv32imc": 2.5}
"""Bound divided by instructions, at most. Arithmetic without an FPU takes fewer instructions than for rare numbers."""


@pytest.mark.parametrize("target", BOARDS)
@pytest.mark.parametrize("name", NETS)
def test_the_bounds_of_a_net_are_at_least_what_a_board_counts(name: str, target: str, tmp_path: Path):
    board_or_skip(target)
    figures = microcontroller.compare(name, target, tmp_path)["graphc"]
    # NOTE: loops over bytes may keep their counter on a stack whose addresses the function computes.
    assert figures.bound is not None or (name.endswith("int8") and target.startswith("cortex-m"))
    if figures.bound is not None:
        assert figures.instructions <= figures.bound <= MARGIN.get(target, 1.3) * figures.instructions
    alignment = 32
    assert figures.stack_bound is not None and figures.stack <= figures.stack_bound < figures.stack + alignment
