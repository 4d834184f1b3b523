"""The benchmark of cold starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import cold_start
from benchmarks.harness.results import Result


def test_own_programs_start_and_print_with_the_files_that_are_written(tmp_path: Path):
    cold_start.write_files("policy_b1", tmp_path, ())
    for name in ("graphc.load", "graphc.load, code in the file", "graphc run"):
        wall, cpu = cold_start.start(cold_start.PROGRAMS[name][1], tmp_path)
        assert wall > 0 and cpu > 0
    with pytest.raises(RuntimeError, match="ended with 3"):
        cold_start.start(["-c", "raise SystemExit(3)"], tmp_path)


def test_the_table_compares_with_the_load_of_a_file():
    times = {"graphc.load": [1000.0, 3000.0, 2000.0], "other": [4000.0]}
    result = Result("net", {"cpu_s": {"graphc.load": [1.0], "other": [3.0]}}, times)
    assert cold_start.format_rows([result]).splitlines()[2:] == [
        "| net | graphc.load | 2.000 | 1.000 | 1.00 |",
        "| net | other | 4.000 | 3.000 | 2.00 |",
    ]
