"""Runs a net: numbered cases in worker processes, a file of results from which it resumes, and a summary.

A net is a function from a seed and a number to a ``Result``. Cases run in a process of their own, which is started
anew when it crashes, hangs, or has run its share, so that one case costs at most itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

SHARE = 400
"""Cases of one worker process: memory of compiled programs is given back now and then."""
PATIENCE = 300.0
"""Seconds without a result after which a worker counts as hanging."""
FINE = ("equal", "ill-conditioned", "refused", "raises", "dropped")
"""Outcomes that are no findings: what is ``refused`` or ``raises`` gave a typed error instead of a number."""


@dataclass
class Result:
    """What became of one case."""

    number: int
    family: str
    outcome: str
    """``equal``, ``ill-conditioned``, ``refused`` (compiled code said why not), ``raises`` (eager mode did), ``dropped``
    (no program), or a finding: ``difference``, ``error``, ``crash``, ``hang``."""
    detail: str = ""
    script: str = ""
    seconds: float = 0.0
    seed: int = 0


Case = Callable[[int, int], Result]
"""The case of a seed and a number."""


def main(module: str, case: Case, argv: Sequence[str] | None = None) -> int:
    """The command of a net; the exit status is 1 when it found something."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to search")
    parser.add_argument("--seed", type=int, default=1, help="of all cases")
    parser.add_argument("--results", type=Path, help="JSON lines to which results are added, and from which it resumes")
    parser.add_argument("--case", type=int, help="run one case in this process and print its script if it fails")
    parser.add_argument("--summary", action="store_true", help="run nothing, sum up the results")
    parser.add_argument("--json", action="store_true", help="the summary as JSON")
    parser.add_argument("--worker", nargs=2, type=int, metavar=("FIRST", "COUNT"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        return _work(case, options.seed, *options.worker)
    if options.case is not None:
        result = case(options.seed, options.case)
        sys.stdout.write(f"{result.outcome} {result.family} {result.detail}\n{result.script}\n")
        return result.outcome not in FINE
    results = list(read(options.results)) if options.results else []
    if not options.summary:
        results += _search(module, options, 1 + max((r.number for r in results if r.seed == options.seed), default=-1))
    return _report(results, options.json)


def read(path: Path) -> Iterator[Result]:
    """The results of a file; a last line that a kill cut short is left out."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield Result(**json.loads(line))


def _search(module: str, options: argparse.Namespace, first: int) -> list[Result]:
    """Runs cases from ``first`` on until time is up."""
    found: list[Result] = []
    end = time.monotonic() + options.seconds
    file = _open(options.results)
    number = first
    while time.monotonic() < end:
        for result in _share(module, options.seed, number, end):
            result.seed = options.seed
            found.append(result)
            number = result.number + 1
            if file:
                file.write(json.dumps(asdict(result)) + "\n")
                file.flush()
            _progress(found, end)
    if file:
        file.close()
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    return found


def _open(path: Path | None) -> TextIO | None:
    """The file to append to; what a kill left of its last line is cut off."""
    if path is None:
        return None
    if path.exists():
        text = path.read_bytes()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            path.write_bytes(text[:whole])
    return path.open("a", encoding="utf-8")


def _share(module: str, seed: int, first: int, end: float) -> Iterator[Result]:
    """Results of one worker process; its death is the result of the case at which it died."""
    command = [sys.executable, "-m", module, "--seed", str(seed), "--worker", str(first), str(SHARE)]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    number, hanging = first, False

    def stop() -> None:
        nonlocal hanging
        hanging = True
        worker.kill()

    try:
        while True:
            timer = threading.Timer(PATIENCE, stop)
            timer.start()
            line = worker.stdout.readline()
            timer.cancel()
            if not line.endswith("\n"):
                break
            result = Result(**json.loads(line))
            number = result.number + 1
            yield result
            if time.monotonic() > end:
                return
        status = worker.wait()
        if hanging:
            yield Result(number, "", "hang", f"no result for {PATIENCE:.0f} s")
        elif status:
            yield Result(number, "", "crash", f"exit status {status}")
    finally:
        worker.kill()
        worker.wait()


def _work(case: Case, seed: int, first: int, count: int) -> int:
    """A worker: one line of JSON on stdout for each case. What libraries print goes to stderr."""
    out, sys.stdout = sys.stdout, sys.stderr
    for number in range(first, first + count):
        start = time.monotonic()
        result = case(seed, number)
        result.seconds = round(time.monotonic() - start, 3)
        out.write(json.dumps(asdict(result)) + "\n")
        out.flush()
    return 0


def _progress(found: Sequence[Result], end: float) -> None:
    if sys.stderr.isatty():
        bad = sum(r.outcome not in FINE for r in found)
        left = max(0, int(end - time.monotonic()))
        sys.stderr.write(f"\r{len(found)} cases, {bad} findings, {left} s left ")


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Numbers of outcomes in all and by family, findings and reasons of refusals, by how often they came."""
    findings = [r for r in results if r.outcome not in FINE]
    return {
        "cases": len(results),
        "seconds": round(sum(r.seconds for r in results), 1),
        "outcomes": dict(Counter(r.outcome for r in results).most_common()),
        "families": {f: dict(Counter(r.outcome for r in results if r.family == f)) for f in _families(results)},
        "refusals": dict(Counter(r.detail for r in results if r.outcome in ("refused", "raises")).most_common()),
        "findings": [{"seed": r.seed, "case": r.number, "kind": r.outcome, "detail": r.detail} for r in findings],
    }


def _families(results: Sequence[Result]) -> list[str]:
    return sorted({r.family for r in results})


def _report(results: Sequence[Result], as_json: bool) -> int:
    told = summary(results)
    if as_json:
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
    else:
        lines = [f"{told['cases']} cases, {told['seconds']:.0f} s"]
        lines += [f"{count:8} {outcome}" for outcome, count in told["outcomes"].items()]
        lines += [f"case {f['case']} of seed {f['seed']}: {f['kind']}: {f['detail']}" for f in told["findings"]]
        sys.stdout.write("\n".join(lines) + "\n")
    return bool(told["findings"])
