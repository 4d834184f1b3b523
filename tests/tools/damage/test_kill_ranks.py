"""A sample of kills of one of several processes; ``python -m tools.damage.kill_ranks`` runs more."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.processes import needs_mpi
from tools.damage import kill_ranks
from tools.damage.kill_ranks import KillTotals, Target


@pytest.mark.slow
@needs_mpi
def test_a_training_that_was_killed_and_resumed_has_the_same_bits():
    outcome = kill_ranks.run(2, 2, 5, ["eager"])
    assert outcome.problems == []
    assert (outcome.kills, outcome.clean_ends, outcome.equal_resumes) == (2, 2, 2)


class Fake(Target):
    """Own processes instead of a training."""

    def put(self, code: str) -> subprocess.Popen[str]:
        folder = self.home / "killed"
        folder.mkdir(exist_ok=True)
        with open(folder / "log", "w", encoding="utf-8") as log:
            return subprocess.Popen([sys.executable, "-c", code], stderr=log, text=True)


def ended(tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, KillTotals]:
    monkeypatch.setattr(kill_ranks, "END_SECONDS", 2.0)
    outcome, target = KillTotals(), Fake("eager", tmp_path, 2)
    return kill_ranks._ended(target.put(code), [], tmp_path / "killed", outcome), outcome


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys; print('Killed', file=sys.stderr); sys.exit(9)", ""),
        ("pass", "the exit status is 0"),
        ("raise SystemExit(9)", "the launcher does not tell of a kill: "),
        ("import time; time.sleep(60)", "the others did not end within 2 s: "),
    ],
)
def test_ends_that_are_not_clean_are_noticed(code: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert ended(tmp_path, code, monkeypatch)[0] == problem


@pytest.mark.parametrize(
    ("trained", "rest", "problem"),
    [
        (b"whole", "", ""),
        (b"other", "", "the trained weights have other bits"),
        (b"whole", "0123456789abcdef-0.npz", "something is left behind: ['0123456789abcdef-0.npz']"),
    ],
)
def test_resumes_that_are_not_equal_are_noticed(
    trained: bytes, rest: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kill_ranks, "finish", lambda *words: "")
    (tmp_path / kill_ranks.CHECKPOINT).mkdir()
    (tmp_path / kill_ranks.TRAINED).write_bytes(trained)
    if rest:
        (tmp_path / kill_ranks.CHECKPOINT / rest).touch()
    assert Target("eager", tmp_path, 2, b"whole")._resumed(tmp_path) == problem


def test_a_process_that_has_ended_is_not_killed(tmp_path: Path):
    process = Fake("eager", tmp_path, 2).put("pass")
    assert kill_ranks.kill_one(process, 30.0, random.Random(0)) == ([], None)


def test_processes_are_found_by_the_one_that_began_them(tmp_path: Path):
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    process = Fake("eager", tmp_path, 2).put(code)
    pids: list[int] = []
    while not pids:
        pids = [number for number, line in kill_ranks.descendants(process.pid) if b"sleep(60)" in line]
    kill_ranks.os.kill(pids[0], kill_ranks.signal.SIGKILL)
    process.wait(30)
    assert not any(map(kill_ranks._is_alive, pids))
