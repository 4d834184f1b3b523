"""Processor time of every test: a pytest plugin that records it, and the command that writes docs/test_times.md.

    python -m tools.test_times --write             # run the whole suite on all cores, then write the page
    python -m tools.test_times tests/nn -m torch   # run part of it and print the tables
    python -m tools.test_times --read FILE [FILE ...]   # print the tables of earlier runs, ``pytest --times=FILE``

Processor seconds count the test's process and the child processes that it waits for, so that neighbours on the same
machine change them little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "test_times.md"
SLOWEST = 100
"""Number of tests that the page lists one by one."""
LONGEST_ID = 110
"""Longest test id on the page, in characters."""
_NUMBER = re.compile(r"\b0x[0-9a-f]+\b|\d+(\.\d+)?")


def processor_seconds() -> float:
    """Return the user and system time of this process and of the children it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class TimesPlugin:
    """Pytest plugin: write the processor seconds and the outcome of each test to a JSON file. Works under pytest-xdist,
    where workers measure and the controller writes."""

    def __init__(self, config: pytest.Config, path: Path | None):
        self.config = config
        self.path = path
        """File of the results; None in a worker of pytest-xdist."""
        self.tests: dict[str, list[Any]] = {}
        """Seconds, outcome, reason of a skip, and whether it is marked slow, by test id."""
        self.collecting: list[float] = []
        """Seconds from the start of each process to the end of its collection."""
        self.start = time.perf_counter()

    def pytest_collection_finish(self) -> None:
        """Record the processor time of collecting in this process."""
        if not self.config.getoption("numprocesses", None):
            self.collecting.append(processor_seconds())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        """Start the clock of a test."""
        item.stash[_START] = processor_seconds()
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the seconds since the last report of the test on this report."""
        report = yield
        now = processor_seconds()
        report.processor_seconds = now - item.stash.get(_START, now)  # type: ignore[attr-defined]
        item.stash[_START] = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up setup, call and teardown."""
        test = self.tests.setdefault(report.nodeid, [0.0, "passed", "", "slow" in report.keywords])
        test[0] += getattr(report, "processor_seconds", 0.0)
        if report.outcome != "passed":
            test[1] = report.outcome
            test[2] = _skip_reason(report)

    def pytest_testnodedown(self, node: Any) -> None:
        """Collect a worker's cost of collecting."""
        self.collecting.extend(getattr(node, "workeroutput", {}).get("collecting", ()))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the file, or hand this worker's figures to the controller."""
        if self.path is None:
            self.config.workeroutput["collecting"] = self.collecting  # type: ignore[attr-defined]
            return
        tests = {name: [round(seconds, 3), *rest] for name, (seconds, *rest) in self.tests.items()}
        wall = time.perf_counter() - self.start
        self.path.write_text(json.dumps({"wall": wall, "collecting": self.collecting, "tests": tests}), "utf-8")


_START = pytest.StashKey[float]()


def _skip_reason(report: pytest.TestReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ").partition("\n")[0]
    return ""


@dataclass(frozen=True)
class RunTimes:
    """Result of a run of tests."""

    wall: float
    """Seconds from the start of pytest to its end."""
    collecting: list[float]
    """Processor seconds of collecting, for each worker."""
    tests: dict[str, list[Any]]
    """Processor seconds, outcome, reason of a skip, and whether it is marked slow, by test id."""

    @property
    def processor(self) -> float:
        """Return processor seconds of everything."""
        return sum(self.collecting) + sum(test[0] for test in self.tests.values())


def read_times(*paths: Path) -> RunTimes:
    """Return the times that runs of ``pytest --times`` wrote, one after the other."""
    runs = [RunTimes(**json.loads(path.read_text("utf-8"))) for path in paths]
    tests = {name: test for run in runs for name, test in run.tests.items()}
    return RunTimes(sum(run.wall for run in runs), [seconds for run in runs for seconds in run.collecting], tests)


def suite_of(test: str) -> str:
    """Return the folder of a test id below tests/, two levels deep for codegen."""
    folders = test.partition("::")[0].split("/")[1:-1]
    depth = 2 if folders[:1] == ["codegen"] else 1
    return "/".join(folders[:depth]) or "tests"


def rows_by_suite(times: RunTimes) -> list[tuple[str, int, int, float, float]]:
    """Return suite, tests, skipped tests, and processor seconds of its slow tests and of the others, the most expensive
    suite first."""
    tests, skipped, seconds, slow = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for name, (spent, outcome, _, is_slow) in times.tests.items():
        suite = suite_of(name)
        tests[suite] += 1
        skipped[suite] += outcome == "skipped"
        (slow if is_slow else seconds)[suite] += spent
    suites = sorted(tests, key=lambda suite: -seconds[suite] - slow[suite])
    return [(suite, tests[suite], skipped[suite], slow[suite], seconds[suite]) for suite in suites]


def skip_reasons(times: RunTimes) -> list[tuple[str, int]]:
    """Return the reasons of skipped tests with their counts; numbers in a reason count as equal."""
    reasons = Counter(
        _NUMBER.sub("N", reason) for _, outcome, reason, _ in times.tests.values() if outcome == "skipped"
    )
    return reasons.most_common()


def format_page(times: RunTimes, machine: str) -> str:
    """Return the text of docs/test_times.md."""
    outcomes = Counter(test[1] for test in times.tests.values())
    slowest = sorted(times.tests.items(), key=lambda item: -item[1][0])[:SLOWEST]
    collecting = sum(times.collecting)
    return "\n".join(
        [
            "# Times of the tests",
            "",
            "`python -m tools.test_times --write` runs every test, those that compare with PyTorch included, and",
            "writes this page. Seconds are processor seconds of a test with its child processes.",
            "`pytest -m 'not slow'` leaves out the slow ones: long tests, and what lies outside of a random share of",
            "long tables.",
            "",
            f"{machine}: {outcomes['passed']:,} passed,",
            f"{outcomes['failed']:,} failed, {outcomes['skipped']:,} skipped in",
            f"{times.wall / 60:.1f} minutes, {times.processor / 60:.1f} processor minutes; of these",
            f"{collecting / 60:.1f} went to collecting in {len(times.collecting)} processes.",
            "",
            "| suite | tests | skipped | seconds of slow tests | of others |",
            "|---|---|---|---|---|",
            *(
                f"| {suite} | {tests:,} | {skipped:,} | {slow:.1f} | {spent:.1f} |"
                for suite, tests, skipped, slow, spent in rows_by_suite(times)
            ),
            "",
            "## Skipped tests",
            "",
            "| tests | reason |",
            "|---|---|",
            *(f"| {count:,} | {_cell(reason)} |" for reason, count in skip_reasons(times)),
            "",
            f"## The {len(slowest)} slowest tests",
            "",
            "| seconds | test |",
            "|---|---|",
            *(f"| {test[0]:.1f} | `{_cell(name.removeprefix('tests/'))}` |" for name, test in slowest),
            "",
        ]
    )


def _cell(text: str) -> str:
    shown = text if len(text) <= LONGEST_ID else text[: LONGEST_ID - 3] + "..."
    return shown.replace("|", "\\|").replace("\n", " ").replace("`", "'")


def machine_name() -> str:
    """Return the processor and the number of cores for the page."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    limit = os.environ.get("GRAPHC_MAX_ISA")
    limit_note = f" held to {limit}" if limit else ""
    return f"{model}{limit_note}, {os.cpu_count()} cores, Python {platform.python_version()}"


def run_tests(arguments: Sequence[str]) -> RunTimes:
    """Run pytest on all cores with these arguments and return its times; its output goes to stderr."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "times.json"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", f"--times={path}", *arguments]
        subprocess.run(command, stdout=sys.stderr, check=False)
        return read_times(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 where a test failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.test_times", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write docs/test_times.md instead of printing")
    parser.add_argument(
        "--read", type=Path, nargs="+", metavar="FILE", help="read the times that `pytest --times=FILE` wrote"
    )
    options, rest = parser.parse_known_args(arguments)
    times = read_times(*options.read) if options.read else run_tests(rest)
    page = format_page(times, machine_name())
    if options.write:
        PAGE.write_text(page, "utf-8")
    else:
        print(page)
    return int(any(test[1] == "failed" for test in times.tests.values()))


if __name__ == "__main__":
    sys.exit(main())
