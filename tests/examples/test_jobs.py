"""examples/jobs: each program reaches its result, in no more lines than the same job with PyTorch.

A new job needs a line in CHECKS: the text of its result line with a group for each number, and the range of each.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks import jobs
from tests.examples.run_example import run_example


class Check(NamedTuple):
    """A pattern of the last line, the ranges of the numbers in it, and the packages that the program needs."""

    pattern: str
    ranges: tuple[tuple[float, float], ...] = ()
    packages: tuple[str, ...] = ()


CHECKS = {
    "digits_cnn": Check(r"accuracy (.+)", ((0.97, 1),), ("sklearn",)),
    "hooks": Check(r"9 layers watched, loss (.+)", ((0, 0.3),), ("sklearn",)),
}
UNTRAINED = frozenset[str]()
"""Jobs without epochs."""


def test_every_job_has_a_check():
    assert jobs.job_names() == sorted(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_a_job_reaches_its_result(name: str, tmp_path: Path):
    check = CHECKS[name]
    for package in check.packages:
        pytest.importorskip(package)
    output = run_example(f"jobs/{name}.py", folder=tmp_path)
    assert bool(re.search(r"^first epoch: [\d.]+ s$", output, re.MULTILINE)) == (name not in UNTRAINED)
    last = output.splitlines()[-1]
    match = re.fullmatch(check.pattern, last)
    assert match, last
    for number, (low, high) in zip(match.groups(), check.ranges, strict=True):
        assert low <= float(number) <= high, last


@pytest.mark.parametrize("name", [name for name in CHECKS if jobs.peer_of(name)])
def test_a_job_takes_no_more_lines_than_with_pytorch(name: str):
    own, peer = jobs.GRAPHC / f"{name}.py", jobs.peer_of(name)
    assert peer and jobs.count_lines(own) <= jobs.count_lines(peer)
