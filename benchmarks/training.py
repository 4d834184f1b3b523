"""Whole training loops against PyTorch's: ``python -m benchmarks.training [--only TEXT] [--threads N] [--json]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.process import ROOT, make_environment, pin
from benchmarks.harness.sweep import LIMITED, OWN, Result, find_library, tell
from benchmarks.hub import cell, speed, table
from benchmarks.models.loops import LOOPS
from benchmarks.workers.training_row import AUTOCAST, EAGER, INDUCTOR, NAMES, NARROW, TORCH

TOLERANCE, NARROW_TOLERANCE = 1e-3, 3e-2
"""Largest difference of the losses of the first steps, over the largest loss, in f32 and with bf16 factors."""


def agrees(result: Result) -> bool:
    """Return whether all contenders have the losses of the reference."""
    errors = result.errors.items()
    narrow = (NARROW, AUTOCAST)
    far = [name for name, error in errors if not error <= (NARROW_TOLERANCE if name in narrow else TOLERANCE)]
    return not far and OWN not in result.problems


def best_ratio(result: Result, own: str = OWN) -> float | None:
    """Return the time of PyTorch's fastest loop with the same kind of factors, over that of one of graphc's."""
    rivals = (EAGER, INDUCTOR) if own == OWN else TORCH
    times = [ms for name in rivals if (ms := result.ms(name)) is not None]
    mine = result.ms(own)
    return min(times) / mine if times and mine else None


def run_loop(key: str, options: argparse.Namespace) -> Result:
    """Return one loop in a process of its own, with its own empty caches."""
    with tempfile.TemporaryDirectory(prefix="graphc-training-") as folder:
        environment = make_environment(options.threads, Path(folder))
        environment |= dict.fromkeys(LIMITED, str(options.threads))
        command = [sys.executable, "-m", "benchmarks.workers.training_row", key, ",".join(options.contenders)]
        command += [str(options.rounds), str(options.seconds)]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=options.limit, check=False
            )
        except subprocess.TimeoutExpired:
            return Result(key, {}, problems={OWN: f"no answer within {options.limit:g} s"})
    if done.returncode or not done.stdout:
        print(done.stderr[-2000:], file=sys.stderr)
        return Result(key, {}, problems={OWN: f"the process ended with status {done.returncode}"})
    return Result(**json.loads(done.stdout))


def format_rows(results: Sequence[Result], names: Sequence[str]) -> str:
    """Return the table, and the failures."""
    columns = ["loop", "weights", *names, "best of torch / graphc", "/ bf16", "losses apart", "first step s"]
    lines = table(columns, [_row(result, names) for result in results])
    lines += ["", f"{sum(map(agrees, results))} of {len(results)} agree"]
    lines += [f"{r.name}: {name}: {problem}" for r in results for name, problem in r.problems.items()]
    return "\n".join(lines)


def _row(result: Result, names: Sequence[str]) -> list[str]:
    return [
        result.name,
        cell(result.facts.get("parameters"), ","),
        *(cell(result.ms(name), ".4g") for name in names),
        cell(best_ratio(result), ".2f"),
        cell(best_ratio(result, NARROW), ".2f"),
        cell(result.errors.get(OWN), ".1e") + ("" if agrees(result) else "!"),
        cell(result.facts.get("first_s", {}).get(OWN), ".1f"),
    ]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="measure only loops whose name contains this")
    parser.add_argument(
        "--contenders", default=",".join(NAMES), metavar="NAMES", help="contenders, separated by commas"
    )
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count() or 1, metavar="N", help="number of threads of every contender"
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="R")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one contender's turn in a round")
    parser.add_argument(
        "--limit", type=float, default=1800, metavar="SECONDS", help="time limit for one loop in seconds"
    )
    parser.add_argument("--json", action="store_true", help="print all measurements as JSON")
    options = parser.parse_args(argv)
    options.contenders = [name for name in options.contenders.split(",") if name]
    unknown = set(options.contenders) - set(NAMES)
    options.keys = [key for key in LOOPS if options.only in key]
    if unknown or not options.keys or options.rounds < 1 or options.threads < 1:
        parser.error(f"unknown: {', '.join(sorted(unknown))}" if unknown else "nothing to measure")
    if find_library("torch") is None:
        options.contenders = [name for name in options.contenders if name not in TORCH]
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the loops; the status is 1 where losses do not agree."""
    options = parse(argv)
    pin(options.threads)
    results = []
    for key in options.keys:
        tell(key)
        results.append(run_loop(key, options))
    if options.json:
        ratios = [{p: speed(r, p) for p in (EAGER, INDUCTOR)} for r in results]
        rows = [{**vars(r), "agrees": agrees(r), "ratios": x} for r, x in zip(results, ratios, strict=True)]
        json.dump({"cpu": platform.processor(), "threads": options.threads, "rows": rows}, sys.stdout, indent=1)
        print()
    else:
        print(f"{options.threads} threads; milliseconds of an update, medians of {options.rounds} rounds.\n")
        print(format_rows(results, options.contenders))
    return 0 if all(map(agrees, results)) else 1


if __name__ == "__main__":
    sys.exit(main())
