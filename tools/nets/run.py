"""The runner that all nets share: which cases are left, a file of results from which a run resumes, and a summary."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple, TextIO

EQUAL, REFUSED, DIFFERENT, FAILED, CRASHED = "equal", "refused", "different", "failed", "crashed"
"""Outcomes of a case: the same numbers; a typed error of graphc says why not; other numbers; another error; the
process ended while it ran."""
BAD = frozenset({DIFFERENT, FAILED, CRASHED})
_RUNNING, _INTERRUPTED = "running", "interrupted"
_PROGRESS_SECONDS = 5.0
"""Seconds between two lines of progress."""


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
    """Judge the cases without an outcome until the time is over."""
    end = time.monotonic() + seconds
    printed = time.monotonic()
    for case in cases:
        now = time.monotonic()
        if now >= end:
            break
        if progress is not None and now - printed >= _PROGRESS_SECONDS:
            printed = now
            bad = sum(o.kind in BAD for o in results.outcomes.values())
            progress.write(f"{net.name}: {len(results.outcomes)} cases, {bad} bad, {end - now:.0f} s left\n")
        if case not in results.outcomes:
            _judge(net, case, results, now)


def _judge(net: Net, case: str, results: Results, begin: float) -> None:
    results.start(case)
    try:
        outcome = net.judge(case)
    except KeyboardInterrupt:
        results.finish(case, Outcome(_INTERRUPTED), time.monotonic() - begin)
        raise
    results.finish(case, outcome, time.monotonic() - begin)


def summary(net: Net, results: Results) -> dict[str, Any]:
    """Return counts of outcomes, and the bad ones."""
    counts = Counter(outcome.kind for outcome in results.outcomes.values())
    bad = {case: outcome.detail for case, outcome in sorted(results.outcomes.items()) if outcome.kind in BAD}
    return {"net": net.name, "cases": len(results.outcomes), "outcomes": dict(sorted(counts.items())), "bad": bad}


def main(net: Net, argv: Sequence[str] | None = None) -> int:
    """Return the command of a net; 0 when no case is bad, 1 otherwise."""
    parser = argparse.ArgumentParser(prog=f"python -m tools.nets.{net.name}", description=net.doc)
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds to search (60)")
    parser.add_argument("--seed", type=int, default=0, help="seed for the cases and their order (0)")
    parser.add_argument(
        "--results", type=Path, help="file of JSON lines with earlier outcomes, whose cases are skipped"
    )
    parser.add_argument("--only", default="*", help="run only cases whose name matches a pattern such as '*/freeze'")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    options = parser.parse_args(argv)
    results = Results(options.results)
    selected: Iterator[str] = (case for case in net.cases(options.seed) if fnmatch(case, options.only))
    try:
        with own_cache(net.keeps_programs):
            run(net, selected, results, options.seconds, sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    _print(summary(net, results), options.json)
    return int(any(outcome.kind in BAD for outcome in results.outcomes.values()))


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


def _print(results: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(results))
        return
    counts = ", ".join(f"{number} {kind}" for kind, number in results["outcomes"].items())
    print(f"{results['net']}: {results['cases']} cases: {counts or 'none'}")
    for case, detail in results["bad"].items():
        first = (detail.splitlines() or [""])[0]
        print(f"  {case}: {first}")
