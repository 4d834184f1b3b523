"""Kills one of several processes that train together, at a random time, and resumes: are the bits those of one run?

``python -m tools.kill_ranks --times 50 --ranks 2``. All must end within seconds of the kill, and what is trained after
``--resume`` must have the bytes of a training that nobody killed. tools/train_ranks.py is what is trained.
"""

from __future__ import annotations

import argparse
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

from graphc.serialize import sharded
from tests.distributed.processes import command, end
from tools.progress import progress_bar
from tools.train_ranks import CHECKPOINT, TRAINED

PROGRAM = "tools.train_ranks"
MOST_SECONDS = 120.0
"""After which a training is taken to hang."""
END_SECONDS = 10.0
"""After a kill: the others end within."""
_LOOK = 0.002


@dataclass
class Outcome:
    """What came of the kills."""

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


def start(folder: Path, ranks: int, *words: str) -> subprocess.Popen[str]:
    """A training that writes to a folder."""
    folder.mkdir(exist_ok=True)
    log = open(folder / "log", "w", encoding="utf-8")  # noqa: SIM115  # the process keeps it
    words = (str(folder), *words)
    return subprocess.Popen(command(PROGRAM, ranks, *words), stdout=log, stderr=log, text=True, start_new_session=True)


def finish(folder: Path, ranks: int, *words: str) -> str:
    """Trains to the end; what went wrong, or an empty text."""
    process = start(folder, ranks, *words)
    try:
        code = process.wait(MOST_SECONDS)
    except subprocess.TimeoutExpired:
        end(process)
        return f"it did not end in {MOST_SECONDS:.0f} s: {_log(folder)}"
    return "" if code == 0 else f"it ended with {code}: {_log(folder)}"


def _log(folder: Path) -> str:
    return (folder / "log").read_text(encoding="utf-8")[-500:]


# ---- processes


def descendants(process: int) -> Iterator[tuple[int, bytes]]:
    """The processes that come from one, with their command lines."""
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
        found = waiting.pop()
        waiting += parents.get(found, [])
        try:
            yield found, Path("/proc", str(found), "cmdline").read_bytes()
        except OSError:
            continue


def ranks_of(launcher: int) -> list[int]:
    """The processes of a training that a launcher has started."""
    words = sys.executable.encode() + b"\0-m\0" + PROGRAM.encode()
    return sorted(process for process, line in descendants(launcher) if line.startswith(words))


def kill_one(launcher: subprocess.Popen[str], delay: float, chance: random.Random) -> tuple[list[int], int | None]:
    """Kills one process ``delay`` seconds after the start; gives all of them, and which it was, or None where the
    training has ended before."""
    until = time.monotonic() + delay
    found: list[int] = []
    while launcher.poll() is None and (time.monotonic() < until or not found):
        time.sleep(_LOOK)
        found = found or (ranks_of(launcher.pid) if time.monotonic() >= until else [])
    if launcher.poll() is not None:
        return found, None
    which = chance.randrange(len(found))
    os.kill(found[which], signal.SIGKILL)
    return found, which


def _is_alive(process: int) -> bool:
    try:
        return Path("/proc", str(process), "stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


# ---- one kill


def kill_and_resume(home: Path, whole: bytes, ranks: int, delay: float, chance: random.Random, made: Outcome) -> bool:
    """One training that is killed and resumed; whether it was alive to be killed."""
    folder = home / "killed"
    shutil.rmtree(folder, ignore_errors=True)
    process = start(folder, ranks)
    members, which = kill_one(process, delay, chance)
    if which is None:
        return False
    made.kills += 1
    made.by_rank[which] = made.by_rank.get(which, 0) + 1
    problem = _ended(process, members, folder, made)
    made.clean_ends += not problem
    made.problems += [f"kill {made.kills}, of rank {which}: {problem}"] if problem else []
    made.inside_checkpoints += _is_unfinished(folder / CHECKPOINT)
    made.resumed += (folder / CHECKPOINT / sharded.MANIFEST).exists()
    problem = finish(folder, ranks, "--resume")
    if not problem and (folder / TRAINED).read_bytes() != whole:
        problem = "what was trained has other bits"
    if not problem and _is_unfinished(folder / CHECKPOINT):
        problem = f"something is left behind: {sorted(os.listdir(folder / CHECKPOINT))}"
    made.equal_resumes += not problem
    made.problems += [f"resumed after kill {made.kills}: {problem}"] if problem else []
    return True


def _ended(process: subprocess.Popen[str], members: list[int], folder: Path, made: Outcome) -> str:
    """What is wrong with the end of the others after a kill."""
    begun = time.monotonic()
    try:
        code = process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        end(process)
        return f"the others did not end within {END_SECONDS:.0f} s: {_log(folder)}"
    while any(map(_is_alive, members)) and time.monotonic() - begun < END_SECONDS:
        time.sleep(_LOOK)
    made.longest_end_s = max(made.longest_end_s, time.monotonic() - begun)
    if alive := [member for member in members if _is_alive(member)]:
        return f"processes {alive} go on"
    if code == 0:
        return "the exit status is 0"
    return "" if "KILLED" in _log(folder).upper() else f"the launcher does not tell of a kill: {_log(folder)}"


def _is_unfinished(folder: Path) -> bool:
    """Whether a folder holds files that are no part of its checkpoint."""
    if not folder.is_dir():
        return False
    manifest = folder / sharded.MANIFEST
    known = set(json.loads(manifest.read_bytes())["files"]) if manifest.exists() else set()
    return bool(set(os.listdir(folder)) - known - {sharded.MANIFEST})


def run(times: int, ranks: int, seed: int) -> Outcome:
    """Trains once without a kill, then kills and resumes so many times."""
    chance, made = random.Random(seed), Outcome()
    with tempfile.TemporaryDirectory() as name, progress_bar(times, "kills") as bar:
        home = Path(name)
        begun = time.monotonic()
        problem = finish(home / "whole", ranks)
        assert not problem, problem
        seconds = time.monotonic() - begun
        whole = (home / "whole" / TRAINED).read_bytes()
        while made.kills < times:
            # A training that has ended before was faster than the first one.
            if kill_and_resume(home, whole, ranks, chance.uniform(0, seconds), chance, made):
                bar.step()
            else:
                seconds *= 0.9
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="figures as JSON on stdout")
    options = parser.parse_args()
    begun = time.monotonic()
    made = run(options.times, options.ranks, options.seed)
    if options.json:
        print(json.dumps(asdict(made) | {"ranks": options.ranks, "seconds": time.monotonic() - begun}))
    else:
        print(_said(made))
    return int(bool(made.problems))


def _said(made: Outcome) -> str:
    ranks: Any = ", ".join(f"{count} of rank {rank}" for rank, count in sorted(made.by_rank.items()))
    lines = [
        f"{made.kills} kills ({ranks}), {made.clean_ends} clean ends, the longest after {made.longest_end_s:.2f} s",
        f"{made.equal_resumes} resumes with the same bits, {made.resumed} of them from a checkpoint",
        f"{made.inside_checkpoints} kills left a checkpoint that was not finished",
    ]
    return "\n".join([*lines, *made.problems])


if __name__ == "__main__":
    sys.exit(main())
