"""Kill one of several processes that train together at a random time, resume, and compare the bits.

``python -m tools.damage.kill_ranks --times 50 --ranks 2``. All processes must end within seconds of the kill, and the
training continued by ``--resume`` must write the same bytes as an undisturbed one. The training is
tools/damage/train_ranks.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graphc.checkpoints import sharded
from tests.distributed.processes import command, end
from tools.damage.train_ranks import CHECKPOINT, TRAINED
from tools.progress import progress_bar

PROGRAM = "tools.damage.train_ranks"
MOST_SECONDS = 120.0
"""Time limit, after which a training counts as hanging."""
END_SECONDS = 10.0
"""After a kill: the others end within."""
_LOOK = 0.002
_EARLY = 0.2
"""Share of the kills that come before the first checkpoint."""
_FASTER = 0.9
_ZERO = "the exit status is 0"
KINDS: dict[str, tuple[str, ...]] = {"eager": (), "compiled": ("--compiled",)}
"""Kinds of training, with their options."""


@dataclass
class KillTotals:
    """Totals over all kills."""

    kills: int = 0
    clean_ends: int = 0
    """All processes ended within END_SECONDS, with another exit status than 0 and a message of the launcher."""
    equal_resumes: int = 0
    inside_checkpoints: int = 0
    """Kills that left files of a checkpoint which was not finished."""
    resumed: int = 0
    """Kills after which there was a checkpoint to go on from."""
    by_rank: dict[int, int] = field(default_factory=dict)
    longest_end_s: float = 0.0
    problems: list[str] = field(default_factory=list)


def start(kind: str, folder: Path, ranks: int, *words: str) -> subprocess.Popen[str]:
    """Return a training that writes to a folder."""
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(folder.parent / "programs")}
    line = command(PROGRAM, ranks, str(folder), *KINDS[kind], *words)
    with open(folder / "log", "w", encoding="utf-8") as log:
        return subprocess.Popen(line, stdout=log, stderr=log, text=True, env=environment, start_new_session=True)


def finish(kind: str, folder: Path, ranks: int, *words: str) -> str:
    """Train to the end; return the problem, or an empty text."""
    process = start(kind, folder, ranks, *words)
    try:
        code = process.wait(MOST_SECONDS)
    except subprocess.TimeoutExpired:
        end(process)
        return f"it did not end in {MOST_SECONDS:.0f} s: {_log(folder)}"
    return "" if code == 0 else f"it ended with {code}: {_log(folder)}"


def wait_for_checkpoint(process: subprocess.Popen[str], folder: Path) -> None:
    """Return when there is a checkpoint, or the training has ended."""
    while process.poll() is None and not (folder / CHECKPOINT / sharded.MANIFEST).exists():
        time.sleep(_LOOK)


def _log(folder: Path) -> str:
    return (folder / "log").read_text(encoding="utf-8")[-500:]


# ---- processes


def descendants(process: int) -> Iterator[tuple[int, bytes]]:
    """Yield the processes that come from one, with their command lines."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = Path("/proc", name, "stat").read_text()
            except OSError:  # It has ended.
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(name))
    waiting = parents.get(process, [])
    while waiting:
        pid = waiting.pop()
        waiting += parents.get(pid, [])
        try:
            yield pid, Path("/proc", str(pid), "cmdline").read_bytes()
        except OSError:
            continue


def ranks_of(launcher: int) -> list[int]:
    """Return the training processes that a launcher has started."""
    words = sys.executable.encode() + b"\0-m\0" + PROGRAM.encode()
    return sorted(process for process, line in descendants(launcher) if line.startswith(words))


def kill_one(launcher: subprocess.Popen[str], delay: float, chance: random.Random) -> tuple[list[int], int | None]:
    """Kill one process ``delay`` seconds from now; return all of them, and which it was, or None where the training has
    ended before."""
    until = time.monotonic() + delay
    members: list[int] = []
    while launcher.poll() is None and (time.monotonic() < until or not members):
        time.sleep(_LOOK)
        members = members or (ranks_of(launcher.pid) if time.monotonic() >= until else [])
    if launcher.poll() is not None:
        return members, None
    which = chance.randrange(len(members))
    with contextlib.suppress(ProcessLookupError):  # It has ended just now.
        os.kill(members[which], signal.SIGKILL)
    return members, which


def _is_alive(process: int) -> bool:
    try:
        return Path("/proc", str(process), "stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


# ---- one kill


@dataclass
class Target:
    """One kind of training, which is killed repeatedly."""

    kind: str
    home: Path
    ranks: int
    undisturbed: bytes = b""
    """Result of the training without a kill."""
    start_s: float = 0.0
    """Seconds until its first checkpoint."""
    rest_s: float = 0.0
    """Seconds from there to the end."""

    def measure(self) -> None:
        """Train without a kill."""
        folder = self.home / "whole"
        start_time = time.monotonic()
        process = start(self.kind, folder, self.ranks)
        wait_for_checkpoint(process, folder)
        first = time.monotonic()
        code = process.wait(MOST_SECONDS)
        assert code == 0, _log(folder)
        self.start_s, self.rest_s = first - start_time, time.monotonic() - first
        self.undisturbed = (folder / TRAINED).read_bytes()

    def kill_and_resume(self, chance: random.Random, outcome: KillTotals) -> bool:
        """Kill and resume one training; return whether it was still alive to be killed."""
        folder = self.home / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        process = start(self.kind, folder, self.ranks)
        early = chance.random() < _EARLY
        if not early:
            wait_for_checkpoint(process, folder)
        members, which = kill_one(process, chance.uniform(0, self.start_s if early else self.rest_s), chance)
        ended = _ended(process, members, folder, outcome)
        if which is None or (ended == _ZERO and (folder / TRAINED).exists()):
            # It was faster than the measured training.
            assert ended == _ZERO, f"an undisturbed training has failed: {_log(folder)}"
            self.start_s, self.rest_s = self.start_s * _FASTER, self.rest_s * _FASTER
            return False
        outcome.kills += 1
        outcome.by_rank[which] = outcome.by_rank.get(which, 0) + 1
        outcome.inside_checkpoints += _is_unfinished(folder / CHECKPOINT)
        outcome.resumed += (folder / CHECKPOINT / sharded.MANIFEST).exists()
        resumed = self._resumed(folder)
        outcome.clean_ends += not ended
        outcome.equal_resumes += not resumed
        outcome.problems += [f"{self.kind}, kill {outcome.kills}: {problem}" for problem in (ended, resumed) if problem]
        return True

    def _resumed(self, folder: Path) -> str:
        """Resume the training; return the problem, or an empty text."""
        if problem := finish(self.kind, folder, self.ranks, "--resume"):
            return problem
        if (folder / TRAINED).read_bytes() != self.undisturbed:
            return "the trained weights have other bits"
        if _is_unfinished(folder / CHECKPOINT):
            return f"something is left behind: {sorted(os.listdir(folder / CHECKPOINT))}"
        return ""


def _ended(process: subprocess.Popen[str], members: list[int], folder: Path, outcome: KillTotals) -> str:
    """Wait for the other processes to end after a kill; return the problem, or an empty text."""
    start_time = time.monotonic()
    try:
        code = process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        end(process)
        return f"the others did not end within {END_SECONDS:.0f} s: {_log(folder)}"
    while any(map(_is_alive, members)) and time.monotonic() - start_time < END_SECONDS:
        time.sleep(_LOOK)
    outcome.longest_end_s = max(outcome.longest_end_s, time.monotonic() - start_time)
    if alive := [member for member in members if _is_alive(member)]:
        return f"processes {alive} go on"
    if code == 0:
        return _ZERO
    return "" if "KILLED" in _log(folder).upper() else f"the launcher does not tell of a kill: {_log(folder)}"


def _is_unfinished(folder: Path) -> bool:
    """Return whether a folder holds files outside of its checkpoint."""
    if not folder.is_dir():
        return False
    manifest = folder / sharded.MANIFEST
    listed = set(json.loads(manifest.read_bytes())["files"]) if manifest.exists() else set()
    return bool(set(os.listdir(folder)) - listed - {sharded.MANIFEST})


def run(times: int, ranks: int, seed: int, kinds: list[str]) -> KillTotals:
    """Train each kind without a kill, then kill and resume ``times`` times, one kind after the other."""
    chance, outcome = random.Random(seed), KillTotals()
    with tempfile.TemporaryDirectory() as name, progress_bar(times, "kills") as bar:
        targets = [Target(kind, Path(name, kind), ranks) for kind in kinds]
        for target in targets:
            target.home.mkdir()
            target.measure()
        while outcome.kills < times:
            if targets[outcome.kills % len(targets)].kill_and_resume(chance, outcome):
                bar.step()
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--kinds", default=",".join(KINDS), help="kinds of training, separated by commas: eager,compiled"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    start_time = time.monotonic()
    outcome = run(options.times, options.ranks, options.seed, options.kinds.split(","))
    if options.json:
        print(json.dumps(asdict(outcome) | {"ranks": options.ranks, "seconds": time.monotonic() - start_time}))
    else:
        print(_said(outcome))
    return int(bool(outcome.problems))


def _said(total: KillTotals) -> str:
    ranks: Any = ", ".join(f"{count} of rank {rank}" for rank, count in sorted(total.by_rank.items()))
    lines = [
        f"{total.kills} kills ({ranks}), {total.clean_ends} clean ends, the longest after {total.longest_end_s:.2f} s",
        f"{total.equal_resumes} resumes with the same bits, {total.resumed} of them from a checkpoint",
        f"{total.inside_checkpoints} kills left an unfinished checkpoint",
    ]
    return "\n".join([*lines, *total.problems])


if __name__ == "__main__":
    sys.exit(main())
