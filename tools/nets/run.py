"""The runner that all nets share: cases in this process or in children, a file of results that it resumes, a summary.

Every net takes ``--seconds``, ``--count``, ``--seed``, ``--jobs``, ``--results``, ``--only`` and ``--json``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from tools.damage.forked import end, fork, has_ended
from tools.progress import ProgressBar, progress_bar

EQUAL, REFUSED, DIFFERENT, FAILED, CRASHED = "equal", "refused", "different", "failed", "crashed"
"""Outcomes of a case: the same numbers; a typed error of graphc says why not; other numbers; another error; the
process ended while it ran."""
BAD = frozenset({DIFFERENT, FAILED, CRASHED})
_RUNNING, _INTERRUPTED = "running", "interrupted"
_PROGRESS_SECONDS = 5.0
"""Seconds between two lines of progress."""
_CHUNK = 50
"""Cases for each child process."""
_CASE_SECONDS = 300.0
"""Time limit for each case in a child process."""
_LOOK = 0.005
"""Seconds between two looks at child processes."""
_SHOWN = 40
"""Most bad cases to print."""


class Outcome(NamedTuple):
    """Outcome of a case."""

    kind: str
    """One of the constants of this module."""
    detail: str = ""
    """Difference or error, for people."""


class Net(NamedTuple):
    """A kind of programs, and how one of them is judged."""

    name: str
    doc: str
    cases: Callable[[int], Iterable[str]]
    """Returns names of cases for a seed, perhaps without end; a name means the same program in every run."""
    judge: Callable[[str], Outcome]
    """Runs the case of that name."""
    keeps_programs: bool = False
    """Whether programs are kept for as long as the run lasts, because many cases begin with the same ones."""
    isolated: bool = False
    """Whether cases run in child processes, because a wrong one may end its process."""
    groups: bool = False
    """Whether the summary counts outcomes by the part of a case's name before the last ``/``."""


class Results:
    """Outcomes by case, and their file of JSON lines."""

    def __init__(self, path: Path | None):
        self.outcomes: dict[str, Outcome] = {}
        self._file: TextIO | None = None
        if path is not None:
            self._read(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8")

    def _read(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for line in text.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the last line of a run that was killed while writing
            self.outcomes[entry["case"]] = Outcome(entry["outcome"], entry.get("detail", ""))
        for case, outcome in list(self.outcomes.items()):
            if outcome.kind == _RUNNING:
                self.outcomes[case] = Outcome(CRASHED, "the process ended while this case ran")
            elif outcome.kind == _INTERRUPTED:
                del self.outcomes[case]

    @property
    def bad(self) -> dict[str, str]:
        """Return the details of bad cases, by name."""
        return {case: o.detail for case, o in sorted(self.outcomes.items()) if o.kind in BAD}

    def start(self, case: str) -> None:
        """Note the start of a case, so that a case which ends the process is known."""
        self._write({"case": case, "outcome": _RUNNING})

    def finish(self, case: str, outcome: Outcome, seconds: float) -> None:
        """Record the outcome of a case."""
        if outcome.kind != _INTERRUPTED:
            self.outcomes[case] = outcome
        entry = {"case": case, "outcome": outcome.kind, "seconds": round(seconds, 3)}
        self._write(entry | ({"detail": outcome.detail} if outcome.detail else {}))

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()


def run(net: Net, cases: Iterable[str], results: Results, seconds: float, progress: TextIO | None = None) -> None:
    """Judge the cases without an outcome in this process, until the time is over."""
    end_time = time.monotonic() + seconds
    printed = time.monotonic()
    for case in cases:
        now = time.monotonic()
        if now >= end_time:
            break
        if progress is not None and now - printed >= _PROGRESS_SECONDS:
            printed = now
            progress.write(
                f"{net.name}: {len(results.outcomes)} cases, {len(results.bad)} bad, {end_time - now:.0f} s left\n"
            )
        if case not in results.outcomes:
            _judge(net, case, results)


def _judge(net: Net, case: str, results: Results) -> None:
    begin = time.monotonic()
    results.start(case)
    try:
        outcome = net.judge(case)
    except KeyboardInterrupt:
        results.finish(case, Outcome(_INTERRUPTED), time.monotonic() - begin)
        raise
    results.finish(case, outcome, time.monotonic() - begin)


class _Child:
    """A child process that judges some cases, and writes their outcomes to a file."""

    def __init__(self, net: Net, cases: Sequence[str], folder: Path):
        self.net, self.cases = net, list(cases)
        self.log, self.lines = (folder / f"{id(self)}.{end}" for end in ("log", "lines"))
        self.limit = time.monotonic() + _CASE_SECONDS * len(self.cases)
        self.process = fork(self._work, self.log)

    def _work(self) -> None:
        results = Results(self.lines)
        for case in self.cases:
            _judge(self.net, case, results)

    def stop(self) -> dict[str, Outcome]:
        """End the process if it runs, and return the outcomes. A case in which it ended by itself, or took too long, is
        the last one; a case that the end of the run's time has interrupted has none."""
        is_interrupted = not has_ended(self.process) and time.monotonic() <= self.limit
        end(self.process)
        outcomes = dict(self._outcomes())
        self.lines.unlink(missing_ok=True)
        return {case: o for case, o in outcomes.items() if not (is_interrupted and o.kind == CRASHED)}

    def _outcomes(self) -> Iterator[tuple[str, Outcome]]:
        known = Results(self.lines).outcomes
        for case in self.cases:
            if case in known:
                kind, detail = known[case]
                yield case, Outcome(kind, detail if kind != CRASHED else f"{detail}: {self.log.read_text()[-500:]}")


def run_children(
    net: Net, cases: Iterable[str], results: Results, seconds: float, jobs: int = 1, bar: ProgressBar | None = None
) -> None:
    """Judge the cases without an outcome in ``jobs`` child processes at a time, until the time is over."""
    end_time = time.monotonic() + seconds
    waiting: deque[str] = deque()
    remaining = (case for case in cases if case not in results.outcomes)
    with tempfile.TemporaryDirectory() as folder:
        children: list[_Child] = []
        try:
            while True:
                while len(children) < jobs and time.monotonic() < end_time:
                    chunk = [waiting.popleft() for _ in range(min(_CHUNK, len(waiting)))] or list(
                        islice(remaining, _CHUNK)
                    )
                    if not chunk:
                        break
                    children.append(_Child(net, chunk, Path(folder)))
                if not children:
                    return
                for child in [c for c in children if has_ended(c.process) or time.monotonic() > min(c.limit, end_time)]:
                    children.remove(child)
                    outcomes = child.stop()
                    for case, outcome in outcomes.items():
                        results.finish(case, outcome, 0.0)
                        _tell(bar, results)
                    waiting.extend(case for case in child.cases if case not in outcomes)
                time.sleep(_LOOK)
        finally:
            for child in children:
                end(child.process)


def _tell(bar: ProgressBar | None, results: Results) -> None:
    if bar is not None:
        bar.step()
        bar.note(f"{len(results.bad)} bad")


def summary(net: Net, results: Results) -> dict[str, Any]:
    """Return counts of outcomes, and the bad ones."""
    counts = Counter(outcome.kind for outcome in results.outcomes.values())
    report = {"net": net.name, "cases": len(results.outcomes), "outcomes": dict(sorted(counts.items()))}
    if net.groups:
        grouped = Counter((case.rpartition("/")[0], o.kind) for case, o in results.outcomes.items())
        report["groups"] = {f"{group} {kind}": count for (group, kind), count in sorted(grouped.items())}
    return report | {"bad": results.bad}


def parser_of(name: str, doc: str, seconds: float | None = 60.0, count: int | None = None) -> argparse.ArgumentParser:
    """Return the command line that nets share, with a net's own defaults."""
    parser = argparse.ArgumentParser(prog=f"python -m tools.{name}", description=doc.partition("\n")[0])
    limit = "all" if seconds is None else f"{seconds:g}"
    parser.add_argument(
        "--seconds", type=float, default=seconds, help=f"start no further case after this time ({limit})"
    )
    parser.add_argument("--count", type=int, default=count, help=f"number of cases ({count or 'as many as there are'})")
    parser.add_argument("--seed", type=int, default=0, help="seed for the cases and their order (0)")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    return parser


def main(net: Net, argv: Sequence[str] | None = None, count: int | None = None) -> int:
    """Return the command of a net; 0 when no case is bad, 1 otherwise. A net with a ``count`` has no time limit."""
    name = net.name if "." in net.name else f"nets.{net.name}"
    parser = parser_of(name, net.doc, None if count else 60.0, count)
    parser.add_argument("--jobs", type=int, default=0, help="judge in so many child processes (0: in this process)")
    parser.add_argument(
        "--results", type=Path, help="file of JSON lines with earlier outcomes, whose cases are skipped"
    )
    parser.add_argument("--only", default="*", help="run only cases whose name matches a pattern such as '*/freeze'")
    options = parser.parse_args(argv)
    results = Results(options.results)
    selected = islice((c for c in net.cases(options.seed) if fnmatch(c, options.only)), options.count)
    seconds = float("inf") if options.seconds is None else options.seconds
    try:
        with own_cache(net.keeps_programs):
            if net.isolated or options.jobs:
                with progress_bar(options.count, "cases") if options.count else nullcontext() as bar:
                    run_children(net, selected, results, seconds, max(1, options.jobs), bar)
            else:
                run(net, selected, results, seconds, sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    _print(summary(net, results), options.json)
    return int(bool(results.bad))


@contextmanager
def own_cache(enabled: bool) -> Iterator[None]:
    """Keep compiled programs in a temporary folder in the body, or nowhere: never in the user's cache, where they would
    evict others."""
    before = {name: os.environ.get(name) for name in ("GRAPHC_CACHE", "GRAPHC_CACHE_DIR")}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({"GRAPHC_CACHE": "on" if enabled else "off", "GRAPHC_CACHE_DIR": folder})
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def _print(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(report))
        return
    counts = ", ".join(f"{number} {kind}" for kind, number in report["outcomes"].items())
    print(f"{report['net']}: {report['cases']} cases: {counts or 'none'}")
    for group, number in report.get("groups", {}).items():
        print(f"  {group:24} {number}")
    for case, detail in list(report["bad"].items())[:_SHOWN]:
        print(f"  {case}: {(detail.splitlines() or [''])[0]}")
    if len(report["bad"]) > _SHOWN:
        print(f"  and {len(report['bad']) - _SHOWN} more (--json)")
