"""Memory traffic of kernels: neighbouring threads touch neighbouring elements, as counted without a GPU."""

from __future__ import annotations

import json

import pytest

from tools.cuda import traffic


@pytest.fixture(scope="module")
def table():
    """The rows of each case."""
    rows: dict[str, list[traffic.LaunchRow]] = {}
    for row in traffic.rows():
        rows.setdefault(row.case, []).append(row)
    assert set(rows) == set(traffic.CASES)
    return rows


@pytest.mark.parametrize("case", ["bias_gelu", "odd_rows", "softmax_64", "softmax_1000", "softmax_8192", "layer_norm"])
def test_rows_are_read_and_written_in_whole_sectors(table, case):
    for row in table[case]:
        assert row.load >= 0.95 and row.store >= 0.95, row


@pytest.mark.parametrize("case", ["row_sums", "column_sums", "one_sum"])
def test_what_is_summed_is_read_in_whole_sectors(table, case):
    assert table[case][0].load >= 0.95


@pytest.mark.parametrize("case", ["bias_gelu", "softmax_64", "softmax_1000", "layer_norm", "row_sums", "max_pool"])
def test_there_are_blocks_for_many_multiprocessors(table, case):
    assert table[case][0].blocks >= 32


def test_the_command_prints_rows(capsys):
    assert traffic.main(["bias_gelu"]) == 0
    assert capsys.readouterr().out.count("| bias_gelu |") == 1
    assert traffic.main(["bias_gelu", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["case"] == "bias_gelu" and row["blocks"] * row["threads"] >= 1024
    with pytest.raises(SystemExit):
        traffic.main(["nothing"])
