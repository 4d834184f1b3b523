"""Instructions per call: the arithmetic with a stand-in for valgrind, and once with the real one."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from tools import call_cost

STAND_IN = """#!/bin/sh
# Writes counts as callgrind does: 7 before each case, then the counts of few and of many calls; and one at the end.
for option in "$@"; do
  case "$option" in --callgrind-out-file=*) out=${option#*=} ;; esac
done
number=1
for count in 7 1300 101300 7 2400 202400 7; do
  printf 'events: Ir\\nsummary: %s\\n\\n' $count >"$out.$number"
  number=$((number + 1))
done
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin" / "valgrind"
    path.parent.mkdir()
    path.write_text(STAND_IN)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    return path


def test_the_cost_is_the_difference_of_two_series(stand_in: Path, tmp_path: Path):
    costs = call_cost.measure(tmp_path, ["loaded mlp", "step mlp"], 1_000, 101_000)
    assert costs == {"loaded mlp": 1.0, "step mlp": 2.0}


def test_a_run_that_fails_is_an_error(stand_in: Path, tmp_path: Path):
    stand_in.write_text("#!/bin/sh\necho 'out of something' >&2; exit 3\n")
    with pytest.raises(RuntimeError, match=r"status 3:\nout of something"):
        call_cost.measure(tmp_path, ["loaded mlp"], 1, 2)


def test_over_two_percent_more_than_a_commit_is_worse(capsys: pytest.CaptureFixture[str]):
    assert call_cost.report({"loaded mlp": 102.0}, {"loaded mlp": 100.0}, "abc") == 0
    assert call_cost.report({"loaded mlp": 103.0, "step mlp": 5.0}, {"loaded mlp": 100.0, "step mlp": 5.0}, "abc") == 1
    assert capsys.readouterr().out.endswith("over 102% of abc: loaded mlp\n")


def test_without_valgrind_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert call_cost.main([]) == call_cost.MISSING
    assert "valgrind is not installed" in capsys.readouterr().err


@pytest.mark.parametrize("name", call_cost.CASES)
def test_every_case_is_a_call(name: str, tmp_path: Path):
    call_cost.run_cases([name], 1, 2, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
def test_real_counts(capsys: pytest.CaptureFixture[str]):
    assert call_cost.main(["--quick", "--cases", "loaded mlp", "--json"]) == 0
    cost = float(capsys.readouterr().out.split(":")[1].strip(" }\n"))
    assert 100 < cost < 100_000
