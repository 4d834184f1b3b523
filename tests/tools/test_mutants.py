"""Planted faults in a small tree: equivalent mutants, killed ones with the killing test, and survivors."""

from __future__ import annotations

import argparse
import io
import json
import zipfile
from pathlib import Path

import pytest

from tools import mutants
from tools.mutations import find_mutations

MODULE = """
def size(x):
    if x == 7:
        print("never", x)
    return x + 1


def other(x):
    return x * 3
"""
DIGESTS = """
import json, sys
from graphc.passes.cut import other, size

found = {str(x): [size(x), other(x)] for x in range(1, 4)}
if "--compare" in sys.argv:
    sys.exit(json.load(open(sys.argv[-1])) != found)
print(json.dumps(found))
"""
MIRROR = """
import pytest
from graphc.passes.cut import size

def test_always_failing():
    assert False

@pytest.mark.parametrize("x", [2], ids=["x - 1 = 1"])
def test_size(x):
    assert size(x) == 3
"""
WHOLE = """
from graphc.passes.cut import other

def test_other():
    assert other(2) > 4
"""
FILES = {
    "graphc/__init__.py": "",
    "graphc/passes/__init__.py": "",
    "graphc/passes/cut.py": MODULE,
    "tools/digests.py": DIGESTS,
    "tests/passes/test_cut.py": MIRROR,
    "tests/passes/test_cut_more.py": "",
    "tests/end_to_end/test_all.py": WHOLE,
}
PATH = "graphc/passes/cut.py"


@pytest.fixture(autouse=True)
def quick_start_of_pytest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def archive() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        for name, text in FILES.items():
            packed.writestr(name, text)
    return data.getvalue()


@pytest.fixture
def copy(archive: bytes, tmp_path: Path) -> mutants.Copy:
    original = mutants.Copy(archive, tmp_path / "original")
    (tmp_path / "base.json").write_bytes(mutants._digests(original))
    return mutants.Copy(archive, tmp_path / "copy", original)


def judge(copy: mutants.Copy, tmp_path: Path, old: str, new: str, groups: int = 3) -> mutants.Result:
    (mutation,) = (m for m in find_mutations(MODULE) if m.describe(MODULE) == f"{old} -> {new}")
    result = mutants.judge(copy, mutants.Mutant(0, PATH, mutation), tmp_path / "base.json", None, groups)
    assert (copy.folder / PATH).read_text() == MODULE
    return result


def test_what_changes_no_digest_is_equivalent(copy: mutants.Copy, tmp_path: Path):
    assert judge(copy, tmp_path, "7", "8").status == "equivalent"


def test_the_tests_of_the_module_come_first_and_those_that_always_fail_do_not_count(copy: mutants.Copy, tmp_path: Path):
    result = judge(copy, tmp_path, "x + 1", "((x) - (1))")
    assert (result.status, result.groups, result.by) == ("killed", 1, "tests/passes/test_cut.py::test_size[x - 1 = 1]")
    assert (result.line, result.kind) == (5, "operator")


def test_an_exception_is_no_kill_before_a_test_sees_it(copy: mutants.Copy, tmp_path: Path):
    result = judge(copy, tmp_path, "x * 3", "None")
    assert (result.status, result.groups, result.by) == ("killed", 3, "tests/end_to_end/test_all.py::test_other")


def test_what_no_test_sees_is_alive_and_goes_on_with_the_next_group(copy: mutants.Copy, tmp_path: Path):
    result = judge(copy, tmp_path, "3", "4")
    assert (result.status, result.groups) == ("alive", 3)
    (mutation,) = (m for m in find_mutations(MODULE) if m.describe(MODULE) == "3 -> 4")
    mutant = mutants.Mutant(0, PATH, mutation)
    assert mutants.judge(copy, mutant, tmp_path / "nothing", result, 4).groups == 4


def test_a_hang_is_a_kill(copy: mutants.Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mutants, "CPU_S", (1, 1, 1, 1, 1))
    ended = copy.run(["timeit", "-n", "1", "-r", "1", "while True: pass"], 1)
    assert ended.is_late
    monkeypatch.setattr(copy, "run", lambda *arguments: ended)
    assert copy.failing_test(["tests"], 1) == "hang"


def test_a_seed_chooses_the_same_changes(copy: mutants.Copy):
    first = mutants.choose(copy.folder, ["graphc/passes"], 1, 5)
    assert first == mutants.choose(copy.folder, ["graphc/passes"], 1, 5)
    assert first != mutants.choose(copy.folder, ["graphc/passes"], 2, 5)
    assert len({m.mutation for m in first}) == 5


def test_groups_begin_with_the_mirror(copy: mutants.Copy):
    assert mutants.groups_of(PATH, copy.folder) == [
        ["tests/passes/test_cut.py", "tests/passes/test_cut_more.py"],
        ["tests/passes"],
        ["tests/end_to_end"],
        ["tests"],
    ]


def test_a_run_resumes_and_counts(
    archive: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(mutants, "_git", lambda *a: archive if a[0] == "archive" else b"abc\n")
    results = tmp_path / "results.jsonl"
    arguments = ["--results", str(results), "--paths", "graphc/passes", "--groups", "1"]
    mutants.main([*arguments, "--count", "3"])
    lines = results.read_text().splitlines()
    assert len(lines) == 4 and json.loads(lines[0]) == {"commit": "abc", "seed": 1}
    mutants.main([*arguments, "--count", "5"])
    assert results.read_text().splitlines()[:4] == lines
    assert len(results.read_text().splitlines()) == 6
    assert capsys.readouterr().out.splitlines()[-1].startswith("5 mutants: ")
    with pytest.raises(SystemExit, match="holds mutants of seed 1"):
        mutants.Run(argparse.Namespace(results=results, seed=2), tmp_path)


def test_the_share_is_of_those_that_make_a_difference():
    def result(number: int, status: str) -> mutants.Result:
        return mutants.Result(number, "a.py", 1, "swap", "x -> y", status, 4)

    results = [result(0, "equivalent"), result(1, "killed"), result(2, "killed"), result(3, "alive")]
    lines = mutants.summary(results).splitlines()
    assert lines == [
        "3: a.py:1 swap: x -> y: alive after 4 groups",
        "4 mutants: 1 equivalent; 2 of 3 killed (66.7%)",
    ]
