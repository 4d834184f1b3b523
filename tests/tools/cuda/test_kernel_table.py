"""NVRTC's figures of small benchmark models: no spills on any architecture."""

from __future__ import annotations

import json

import pytest

from tools.cuda import kernel_table
from tools.cuda.programs import QUICK


@pytest.mark.parametrize("arch", kernel_table.ARCHITECTURES)
def test_small_models_compile_without_spills(arch: str, capsys: pytest.CaptureFixture[str]):
    assert kernel_table.main([*QUICK, "--arch", arch, "--json"]) == 0
    rows = {row["workload"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(QUICK)
    for row in rows.values():
        assert row["spilled"] == row["stack"] == 0
        assert 0 < row["registers"] <= 255
        assert row["kernels"] >= 1
        assert row["shared"] <= 48 * 1024


def test_the_table_has_a_row_for_each_program():
    rows = kernel_table.table(["policy_b1"], ["sm_90"])
    text = kernel_table.format_rows(rows)
    assert text.count("\n") == 2 and "| policy_b1 | sm_90 |" in text
    assert kernel_table.summary(rows).endswith("spilled: nothing")
