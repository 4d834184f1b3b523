"""The table of findings in docs/reliability.md names tests that exist, each finding once and in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LINES = [
    line.strip("| ").split(" | ", 1)
    for line in (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| [A-Z]\d+ \|", line)
]


def order(number: str) -> tuple[str, int]:
    return number[0], int(number[1:])


def test_each_finding_stands_once_and_in_order():
    numbers = [number for number, _ in LINES]
    assert numbers == sorted(set(numbers), key=order)


@pytest.mark.parametrize(("number", "text"), LINES, ids=[number for number, _ in LINES])
def test_the_tests_behind_a_finding_exist(number: str, text: str):
    named = re.findall(r"(tests/[\w/]+\.py)|::(\w+)", text)
    assert bool(named) == (number not in ("C13", "C14"))
    present = ""
    for path, name in named:
        if path:
            assert (ROOT / path).is_file(), path
            present = (ROOT / path).read_text(encoding="utf-8")
        else:
            assert re.search(rf"^\s*(async )?(def|class) {name}\b", present, re.MULTILINE), name
