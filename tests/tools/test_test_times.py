"""Times of tests: the plugin's records with and without workers, and the tables of the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.scan import ROOT
from tests.conftest import in_sample
from tools.test_times import RunTimes, format_page, read_times, rows_by_suite, skip_reasons, suite_of

TIMES = RunTimes(
    wall=120.0,
    collecting=[10.0, 12.0],
    tests={
        "tests/nn/test_a.py::test_one[x|y]": [4.0, "passed", "", False],
        "tests/nn/test_a.py::test_two": [1.0, "skipped", "it needs 64 bytes", True],
        "tests/codegen/llvm/deep/test_b.py::test_three": [7.0, "failed", "", False],
        "tests/test_front.py::test_four": [0.5, "skipped", "it needs 128 bytes", False],
    },
)


def test_suites_are_folders_and_those_of_codegen_one_level_deeper():
    assert [suite_of(name) for name in TIMES.tests] == ["nn", "nn", "codegen/llvm", "tests"]


def test_rows_begin_with_the_most_expensive_suite():
    assert rows_by_suite(TIMES) == [
        ("codegen/llvm", 1, 0, 0.0, 7.0),
        ("nn", 2, 1, 1.0, 4.0),
        ("tests", 1, 1, 0.0, 0.5),
    ]


def test_reasons_that_differ_in_numbers_are_counted_together():
    assert skip_reasons(TIMES) == [("it needs N bytes", 2)]


def test_the_page_states_totals_and_lists_the_slowest_first():
    page = format_page(TIMES, "A processor")
    assert "1 passed,\n1 failed, 2 skipped in\n2.0 minutes, 0.6 processor minutes" in page
    slowest = page[page.index("slowest tests") :]
    assert slowest.index("llvm/deep") < slowest.index("test_one[x\\|y]") < slowest.index("test_four")


PROGRAM = """
import time
import pytest

def test_works():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass

@pytest.mark.slow
def test_skips():
    pytest.skip("it rains")
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_the_plugin_records_seconds_outcomes_and_reasons(workers: tuple[str, ...], tmp_path: Path):
    (tmp_path / "test_it.py").write_text(PROGRAM, "utf-8")
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_addoption, pytest_configure\n", "utf-8")
    times = tmp_path / "times.json"
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path), f"--times={times}", *workers]
    done = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    recorded = read_times(times)
    assert recorded.tests["test_it.py::test_works"][1:] == ["passed", "", False]
    assert 0.25 <= recorded.tests["test_it.py::test_works"][0] < 10
    assert recorded.tests["test_it.py::test_skips"][1:] == ["skipped", "it rains", True]
    assert len(recorded.collecting) == max(1, 2 * bool(workers)) and min(recorded.collecting) > 0


def test_a_sample_is_a_fixed_share_of_the_tests():
    names = [f"tests/a.py::test[{i}]" for i in range(2000)]
    first = [name for name in names if in_sample(name, 10, 0)]
    assert 150 <= len(first) <= 250
    assert first == [name for name in names if in_sample(name, 10, 0)]
    assert first != [name for name in names if in_sample(name, 10, 1)]
    assert set(first) <= {name for name in names if in_sample(name, 20, 0)}
    assert all(in_sample(name, 100, 3) for name in names)
