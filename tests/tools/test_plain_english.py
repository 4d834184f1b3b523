"""Figures of plain English: correct counts, and zeros for a tree without faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import plain_english as plain

WOODEN = '''"""What is made of arrays: those of another one."""


class Step:
    """Of the loop."""


def f(given, x):
    """Add."""
    found = given + x
    raise ValueError(remedy="a smaller amount", help="what it is")
'''
CLEAN = '''"""Packed weights of a program."""


def add(first, second):
    """Return the sum of two arrays.

    >>> add(1, 2)
    3
    """
    raise ValueError(remedy=f"pass at most {second} elements", help="number of threads")
'''


def tree(root: Path, **sources: str) -> Path:
    for name, source in sources.items():
        (root / f"{name}.py").write_text(source)
    return root


def test_faults_are_counted(tmp_path: Path):
    figures, tally = plain.measure(tree(tmp_path, a=WOODEN))
    assert figures[plain.GENERIC_NAMES] == round(2 / 3, 4)
    assert figures[plain.OPENED] == 2
    assert figures[plain.REMEDIES] == "1 of 1"
    assert figures[plain.HELP_TEXTS] == "1 of 1"
    assert figures[plain.WITH_EXAMPLE] == 0
    assert tally.totals[plain.WOODEN_PHRASES] == 2
    assert tally.files[plain.OPENED] == {(tmp_path / "a.py").as_posix(): 2}


def test_plain_sources_have_none(tmp_path: Path):
    figures, _ = plain.measure(tree(tmp_path, a=CLEAN))
    assert figures[plain.GENERIC_NAMES] == figures[plain.WOODEN_PHRASES] == figures[plain.OPENED] == 0
    assert figures[plain.REMEDIES] == "0 of 1"
    assert figures[plain.HELP_TEXTS] == "0 of 1"
    assert figures[plain.WITH_EXAMPLE] == 1


def test_a_class_name_counts_from_three_files_on(tmp_path: Path):
    assert plain.measure(tree(tmp_path, a=WOODEN, b=WOODEN))[0][plain.CLASS_NAMES] == 0
    assert plain.measure(tree(tmp_path, c=WOODEN))[0][plain.CLASS_NAMES] == 1


def test_a_folder_counts_from_31_files_on(tmp_path: Path):
    tree(tmp_path, **{f"m{i}": "" for i in range(30)})
    assert plain.measure(tmp_path)[0][plain.FOLDERS] == 0
    assert plain.measure(tree(tmp_path, last=""))[0][plain.FOLDERS] == 1


@pytest.mark.parametrize(
    ("subject", "names_no_act"),
    [
        ("tests: no group of before", True),
        ("runtime: what a host call raises", True),
        ("tests: destroy the process group between tests", False),
        ("runtime, cli: report Ctrl-C", False),
    ],
)
def test_subjects_name_an_act(subject: str, names_no_act: bool):
    assert bool(plain.NO_ACT.match(subject)) == names_no_act


def test_the_repository_is_measured_with_its_pages(capsys: pytest.CaptureFixture[str]):
    root = Path(plain.__file__).parent.parent
    assert plain.main([str(root / "graphc"), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert {plain.PAGES, plain.CHANGELOG, plain.TEST_NAMES} <= figures.keys()


def test_the_worst_files_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert plain.main([str(tree(tmp_path, a=WOODEN)), "--worst", "1"]) == 0
    printed = capsys.readouterr().out
    assert f"   2 {(tmp_path / 'a.py').as_posix()}" in printed


def test_a_missing_folder_is_a_usage_error(tmp_path: Path):
    with pytest.raises(SystemExit, match="2"):
        plain.main([str(tmp_path / "none")])
