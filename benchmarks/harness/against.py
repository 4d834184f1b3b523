"""This tree against a commit: both side by side in turns, and this tree a second time to show how far times spread."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import commits
from benchmarks.harness.measure import Row, Tell, measure
from benchmarks.harness.process import WorkerProcess, make_environment
from benchmarks.harness.table import format_ms
from benchmarks.peers import PEERS

NOW, AGAIN, THEN = "now", "again", "then"
"""This tree, a copy of it, and the commit."""
ROUNDS = 9
LEAST = 0.97
"""A workload is worse when it runs at less of the commit's speed."""


@dataclass(frozen=True)
class Turns:
    """Settings for timing workers."""

    rounds: int = ROUNDS
    seconds: float = 0.3
    """Length of a turn."""
    threads: int = 1
    limit_s: float = 900


@dataclass(frozen=True)
class Change:
    """Outcome of one workload."""

    ratio: float
    """Median over the rounds of the commit's time over this tree's: below 1, this tree is slower."""
    low: float
    """Least and largest ratio of the second copy's time to this tree's, over the rounds."""
    high: float

    @property
    def counts(self) -> bool:
        """Return whether the change exceeds the spread of the same code."""
        return not self.low <= self.ratio <= self.high

    @property
    def worse(self) -> bool:
        """Return whether it counts and is below LEAST."""
        return self.counts and self.ratio < LEAST


def run(commit: str, workloads: Sequence[str], turns: Turns, tell: Tell, module: str = PEERS["graphc"]) -> list[Row]:
    """Return the times of the workloads on this tree, its copy and a commit. Raises ValueError for an unknown
    commit."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphc-against-")))
        trees = {
            NOW: commits.copy_present(folder / NOW),
            AGAIN: commits.copy_present(folder / AGAIN),
            THEN: commits.extract(commit, folder / THEN),
        }
        # NOTE: caches apart, since both commits may call themselves by the same version.
        environments = {name: make_environment(turns.threads, folder / f"{name}.cache") for name in trees}
        for environment in environments.values():
            environment.pop("PYTHONPATH", None)

        def start(name: str) -> WorkerProcess:
            log = folder / f"{name}.log"
            return stack.enter_context(
                WorkerProcess(module, turns.threads, environments[name], log, turns.limit_s, trees[name])
            )

        processes = {name: start(name) for name in trees}
        rows = []
        for workload in workloads:
            processes.update({name: start(name) for name, process in processes.items() if not process.alive})
            with tempfile.TemporaryDirectory(dir=folder) as folder_name:
                rows.append(
                    measure(
                        workload, processes, Path(folder_name), environments[NOW], turns.rounds, turns.seconds, tell
                    )
                )
        return rows


def judge(row: Row) -> Change | None:
    """Return the outcome of a workload; None where it has no times."""
    times = {name: row.peers[name].rounds_ms for name in (NOW, AGAIN, THEN)}
    if not all(times.values()):
        return None
    then = [other / own for other, own in zip(times[THEN], times[NOW], strict=True)]
    again = [other / own for other, own in zip(times[AGAIN], times[NOW], strict=True)]
    return Change(statistics.median(then), min(again), max(again))


def format_changes(rows: Sequence[Row], commit: str) -> str:
    """Return the table, and the workloads whose change counts below it."""
    lines = [f"| workload | now ms | again ms | {commit} ms | {commit} / now | again / now | |", "|" + "---|" * 7]
    problems, better, worse, unclear = [], [], [], []
    for row in rows:
        change = judge(row)
        if change is None:
            problems += [f"{row.workload}: {name}: {f.problem}" for name, f in row.peers.items() if f.problem]
            continue
        verdict = ("slower" if change.ratio < 1 else "faster") if change.counts else ""
        cells = [format_ms(row.peers[name].ms or 0.0) for name in (NOW, AGAIN, THEN)]
        spread = f"{change.low:.2f}-{change.high:.2f}"
        lines.append("| " + " | ".join([row.workload, *cells, f"{change.ratio:.3f}", spread, verdict]) + " |")
        if change.worse:
            worse.append(row.workload)
        elif change.ratio < LEAST:
            unclear.append(row.workload)
        elif change.counts and change.ratio > 1:
            better.append(row.workload)
    notes = [
        f"{title}: {', '.join(names)}"
        for title, names in (
            (f"below {LEAST} of {commit}", worse),
            (f"below {LEAST}, but the same code spreads as far (measure again)", unclear),
            ("faster", better),
        )
        if names
    ]
    return "\n".join([*lines, "", *(notes or ["no change counts"]), *problems]) + "\n"
