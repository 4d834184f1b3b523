"""This tree against a commit: both side by side in turns, and this tree a second time to show how far times spread."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import commits
from benchmarks.harness.measure import Peer, Tell, Turns, run
from benchmarks.harness.process import make_environment
from benchmarks.harness.results import Result, format_ms, format_problems, format_table
from benchmarks.peers import PEERS

NOW, AGAIN, THEN = "now", "again", "then"
"""This tree, a copy of it, and the commit."""
ROUNDS = 9
LEAST = 0.97
"""A workload is worse when it runs at less of the commit's speed."""


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


def measure_trees(commit: str, workloads: Sequence[str], turns: Turns, tell: Tell) -> list[Result]:
    """Return the times of the workloads on this tree, its copy and a commit. Raises ValueError for an unknown
    commit."""
    with tempfile.TemporaryDirectory(prefix="graphc-against-") as name:
        folder = Path(name)
        trees = {
            NOW: commits.copy_present(folder / NOW),
            AGAIN: commits.copy_present(folder / AGAIN),
            THEN: commits.extract(commit, folder / THEN),
        }
        peers = {}
        for which, tree in trees.items():
            # NOTE: caches apart, since both commits may call themselves by the same version.
            environment = make_environment(turns.threads, folder / f"{which}.cache")
            environment.pop("PYTHONPATH", None)
            peers[which] = Peer(*PEERS["graphc"], environment, tree)
        return run(peers, workloads, turns, tell).rows


def judge(row: Result) -> Change | None:
    """Return the outcome of a workload; None where it has no times."""
    times = [row.rounds_ms.get(name) for name in (NOW, AGAIN, THEN)]
    if not all(times):
        return None
    now, again, then = ([*rounds] for rounds in times if rounds)
    spread = [other / own for other, own in zip(again, now, strict=True)]
    ratio = statistics.median(other / own for other, own in zip(then, now, strict=True))
    return Change(ratio, min(spread), max(spread))


def format_changes(rows: Sequence[Result], commit: str) -> str:
    """Return the table, and the workloads whose change counts below it."""
    cells = []
    verdicts: dict[str, list[str]] = {
        f"below {LEAST} of {commit}": [],
        f"below {LEAST}, but the same code spreads as far (measure again)": [],
        "faster": [],
    }
    worse, unclear, better = verdicts.values()
    for row in rows:
        change = judge(row)
        if change is None:
            continue
        verdict = ("slower" if change.ratio < 1 else "faster") if change.counts else ""
        times = [format_ms(row.ms(name) or 0.0) for name in (NOW, AGAIN, THEN)]
        cells.append([row.name, *times, f"{change.ratio:.3f}", f"{change.low:.2f}-{change.high:.2f}", verdict])
        if change.ratio < LEAST:
            (worse if change.worse else unclear).append(row.name)
        elif change.counts and change.ratio > 1:
            better.append(row.name)
    columns = ["workload", "now ms", "again ms", f"{commit} ms", f"{commit} / now", "again / now", ""]
    notes = [f"{title}: {', '.join(names)}" for title, names in verdicts.items() if names] or ["no change counts"]
    return "\n".join([format_table(columns, cells), "", *notes, *format_problems(rows)]) + "\n"
