"""The table of register blocks, for other machines than this too."""

from __future__ import annotations

import json

import pytest

from graphc.codegen.machine.target import target_named
from tools.codegen import register_blocks


@pytest.mark.parametrize(("target", "lanes"), [("neon", 4), ("avx512", 16)])
def test_each_block_is_predicted_and_counted(target: str, lanes: int):
    blocks = register_blocks.rows((64, 96, 50), target_named(target), 2)
    assert len(blocks) == 2
    for row in blocks:
        rows, vectors = map(int, row.block.split()[0].split("x"))
        assert row.multiply_adds == rows * vectors
        assert 0.5 <= row.cycles < 64 * 96 * 50 / lanes
        assert row.loads + row.others > 0
    assert blocks[0].stack == 0, "the sums of the best one by estimate fit into registers"


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]):
    assert register_blocks.main(["--target", "avx2", "--size", "32x32x32", "--most", "1", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["multiply_adds"] > 0


def test_a_product_without_blocks_is_told(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stopped:
        register_blocks.main(["--target", "avx2", "--size", "1x1x1"])
    assert stopped.value.code == 2 and "has no register block" in capsys.readouterr().err


def test_loops_are_what_a_jump_leads_back_to():
    lines = ["a:", "\tx", "b:", "\ty", "\tjne b", "\tjmp a"]
    assert list(register_blocks.innermost_loops(lines)) == [["\ty"]]
