"""The table of jobs: lines of programs, runs as processes, and the table in the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import jobs
from benchmarks.jobs import __main__ as command

OWN = """\"""Train.\"""
import os, pathlib

cache = pathlib.Path(os.environ["GRAPHC_CACHE_DIR"])
warm = cache.exists()
cache.mkdir(exist_ok=True)
pathlib.Path("out").mkdir()
print(f"first epoch: {0.5 if warm else 2} s")
print("accuracy 0.9")
"""
PAGE = "# Jobs\n\n<!-- table of benchmarks.jobs -->\nNot measured yet.\n<!-- end -->\nafter\n"
PEER = 'print("first epoch: 1.0 s")\nprint("accuracy 0.8")\n'


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the programs of the jobs ``both`` and ``own``, and an empty page."""
    for name in ("graphc", "pytorch"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(jobs, "GRAPHC", tmp_path / "graphc")
    monkeypatch.setattr(jobs, "PYTORCH", tmp_path / "pytorch")
    monkeypatch.setattr(command, "PAGE", tmp_path / "jobs.md")
    for path, text in (("graphc/both.py", OWN), ("pytorch/both.py", PEER), ("graphc/own.py", OWN)):
        (tmp_path / path).write_text(text)
    (tmp_path / "jobs.md").write_text(PAGE)
    return tmp_path


def test_lines_are_statements_without_docstrings(tmp_path: Path):
    path = tmp_path / "program.py"
    path.write_text(
        '"""Two\nlines."""\n\n# comment\ndef f(\n    x,\n):\n    """Doc."""\n    return x\n\n\ny = f(\n    1)\n'
    )
    assert jobs.count_lines(path) == 3


def test_both_programs_run_with_a_cold_and_a_warm_cache(folders: Path, capsys: pytest.CaptureFixture[str]):
    assert command.main(["both", "--rounds", "2", "--json"]) == 0
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert (job["facts"]["lines"], job["facts"]["PyTorch lines"]) == (7, 2)
    assert job["first_epoch"]["ms"] == {"graphc cold": 2000, "graphc warm": 500, "PyTorch": 1000}
    assert [len(job["rounds_ms"][name]) for name in ("graphc cold", "graphc warm", "PyTorch")] == [2, 2, 2]
    assert job["facts"]["result of PyTorch"] == "accuracy 0.8"


def test_the_table_of_all_jobs_replaces_the_one_of_the_page(folders: Path, capsys: pytest.CaptureFixture[str]):
    assert command.main(["--rounds", "1", "--write"]) == 0
    text = (folders / "jobs.md").read_text()
    assert text.startswith("# Jobs\n\n<!-- table of benchmarks.jobs -->\n") and text.endswith("\n<!-- end -->\nafter\n")
    assert "Not measured" not in text
    both, own = (line for line in text.splitlines() if line.startswith(("| both", "| own")))
    assert both.endswith("| 2.00 | 0.50 | 1.00 | 0.50 | 2.00 |")
    assert own.endswith("| 2.00 | 0.50 | - | - | - |")
    assert "\n- no more lines than PyTorch: 0 of 1 jobs.\n" in text
    assert "\n- first epoch at most 1.2 times PyTorch's, programs in the cache: 1 of 1 jobs.\n" in text
    assert "\n- first epoch at most 1.2 times PyTorch's, empty cache: 0 of 1 jobs.\n" in text
    with pytest.raises(SystemExit):
        command.main(["both", "--write"])


def test_a_program_that_fails_is_listed_with_its_reason(folders: Path, capsys: pytest.CaptureFixture[str]):
    (folders / "pytorch" / "both.py").write_text("import no_such_package\n")
    assert command.main(["both", "--rounds", "1"]) == 0
    text = capsys.readouterr().out
    assert "PyTorch: status 1: ModuleNotFoundError: No module named 'no_such_package': both" in text
    assert command.run_program(["sleep", "60"], {"PATH": "/usr/bin:/bin"}, 0.1) == {
        "error": "not finished within 0.1 s"
    }
