"""All checks that need a GPU, in ten minutes and one file: ``python -m tools.gpu_suite --out F.json``.

Parts: environment, tests, random graphs against the CPU in f64, compute-sanitizer on a sample, times beside PyTorch and
JAX. Each part is a process with its share of the time; a failing part does not end the others. ``--device cuda-emu`` is
a dry run without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cuda import format_rows
from tools import child
from tools.cuda.device_check import reason_without

TAIL = 6000
"""Characters to keep of a part's output."""
NO_GPU = 3
"""Exit status where the device cannot be used."""
PASSED, FAILED, LATE, ABSENT = "passed", "failed", "out of time", "absent"


@dataclass(frozen=True)
class Plan:
    """Options of a run."""

    device: str
    minutes: float
    python: str = sys.executable

    @property
    def is_emulated(self) -> bool:
        """Return a dry run."""
        return self.device == "cuda-emu"


class Command(NamedTuple):
    """Command line of a part, or the reason why it is skipped."""

    words: list[str]
    absent: str = ""


class Part(NamedTuple):
    """A part of the suite."""

    name: str
    share: float
    """Weight of the part when the remaining time is divided among the remaining parts."""
    command: Callable[[Plan, float], Command]
    """Builds the command from the plan and the seconds of the part."""
    short: Callable[[dict[str, Any]], str]
    """Formats the part's data for the table at the end."""


# ---- parts


def _environment(plan: Plan, seconds: float) -> Command:
    del seconds
    return Command([plan.python, "-m", "tools.cuda.environment", plan.device])


def _tests(plan: Plan, seconds: float) -> Command:
    del seconds
    mark = "emulated" if plan.is_emulated else "cuda"
    return Command([plan.python, "-m", "pytest", "-m", mark, "-q", "--no-header", "-p", "no:cacheprovider", "-rfE"])


def _differential(plan: Plan, seconds: float) -> Command:
    words = [
        plan.python,
        "-m",
        "tools.nets.cuda",
        "--device",
        plan.device,
        "--json",
        "--seconds",
        f"{0.8 * seconds:.0f}",
    ]
    return Command(words + (["--count", "6"] if plan.is_emulated else ["--batch", "200"]))


def _sanitizer(plan: Plan, tool: str) -> Command:
    path = sanitizer()
    if plan.is_emulated:
        return Command([], "the emulated device checks bounds, barriers and unwritten memory by itself")
    if path is None:
        return Command([], "compute-sanitizer is not installed (it comes with the CUDA toolkit)")
    words = [path, "--tool", tool, "--error-exitcode", "9", "--print-limit", "20", "--target-processes", "all"]
    net = [plan.python, "-m", "tools.nets.cuda", "--device", plan.device, "--json", "--count", "8"]
    return Command([*words, *net])


def _benchmarks(plan: Plan, seconds: float) -> Command:
    words = [plan.python, "-m", "benchmarks.cuda", "--json", "--device", plan.device, "--limit", f"{0.9 * seconds:.0f}"]
    if plan.is_emulated:
        return Command([*words, "--peers", "graphc", "--seconds", "0.1", "policy_b1", "train_policy_b256"])
    return Command([*words, "--seconds", "0.5"])


def sanitizer() -> str | None:
    """Return the path of compute-sanitizer, or None."""
    folders = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda"]
    beside = [str(Path(folder) / "bin") for folder in folders if folder]
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(beside))


def _short_environment(data: dict[str, Any]) -> str:
    cards = data.get("gpus")
    name = cards[0].get("name", "") if isinstance(cards, list) and cards else str(cards)
    commit = data.get("commit")
    return f"{name}; {data.get('device')}; commit {commit.get('id', '')[:12] if isinstance(commit, dict) else commit}"


def _short_tests(data: dict[str, Any]) -> str:
    lines = [line for line in data.get("tail", "").splitlines() if line.strip()]
    return lines[-1].strip("= ") if lines else ""


def _short_net(data: dict[str, Any]) -> str:
    if "cases" not in data:
        return (data.get("tail", "").strip().splitlines() or [""])[-1]
    return f"{data['cases']} cases, {len(data['bad'])} bad, {len(data['refused'])} refused"


def _short_times(data: dict[str, Any]) -> str:
    rows = data.get("rows", [])
    own = sum("us" in row["peers"].get("graphc", {}) for row in rows)
    return f"{own} of {len(rows)} workloads timed"


PARTS = (
    Part("environment", 0.03, _environment, _short_environment),
    Part("tests", 0.27, _tests, _short_tests),
    Part("differential", 0.22, _differential, _short_net),
    Part("memcheck", 0.08, lambda plan, _: _sanitizer(plan, "memcheck"), _short_net),
    Part("racecheck", 0.08, lambda plan, _: _sanitizer(plan, "racecheck"), _short_net),
    Part("benchmarks", 0.32, _benchmarks, _short_times),
)


# ---- running


def run_part(entry: Part, plan: Plan, seconds: float) -> dict[str, Any]:
    """Run a part; return its status and the data that it printed."""
    command = entry.command(plan, seconds)
    if command.absent:
        return {"status": ABSENT, "reason": command.absent, "seconds": 0.0}
    try:
        ended = child.run(
            command.words, max(seconds, 5.0), environment={"GRAPHC_CACHE": "off", "PYTHONUNBUFFERED": "1"}
        )
    except OSError as error:
        ended = child.Ended(-1, str(error), 0.0, False)
    status = LATE if ended.is_late else FAILED if ended.status else PASSED
    result = {"status": status, "rc": ended.status, "seconds": round(ended.seconds, 1), "command": command.words[1:]}
    return result | {"data": parse(ended.output)}


def parse(out: str) -> dict[str, Any]:
    """Return the JSON object that output ends with, or its last lines."""
    for start in ("{\n", "{"):
        for line in [i for i in _starts(out, start)][-1:]:
            try:
                return json.loads(out[line:])
            except ValueError:
                continue
    return {"tail": out[-TAIL:]}


def _starts(out: str, begin: str) -> list[int]:
    starts = [0] if out.startswith(begin) else []
    return starts + [i + 1 for i in range(len(out)) if out.startswith("\n" + begin, i)]


def run_suite(
    plan: Plan, suite_parts: Sequence[Part] = PARTS, write: Callable[[dict[str, Any]], None] = lambda _: None
) -> dict[str, Any]:
    """Run all parts in order; unused time of a part goes to the following ones. ``write`` gets the report after
    each."""
    end = time.monotonic() + 60 * plan.minutes
    report: dict[str, Any] = {"suite": 1, "device": plan.device, "minutes": plan.minutes, "parts": {}}
    for i, entry in enumerate(suite_parts):
        rest = sum(p.share for p in suite_parts[i:])
        seconds = max(0.0, end - time.monotonic()) * entry.share / rest
        print(f"{entry.name}: up to {seconds:.0f} s", file=sys.stderr, flush=True)
        report["parts"][entry.name] = run_part(entry, plan, seconds)
        report["commit"] = (report["parts"].get("environment", {}).get("data") or {}).get("commit")
        write(report)
    return report


def table(report: dict[str, Any], suite_parts: Sequence[Part] = PARTS) -> str:
    """Return the end of the output: a line per part, and the times."""
    lines = []
    for entry in suite_parts:
        result = report["parts"].get(entry.name)
        if result is not None:
            said = result.get("reason") or entry.short(result.get("data", {}))
            lines.append(f"{entry.name:13} {result['status']:12} {result['seconds']:6.1f} s  {said}")
    rows = report["parts"].get("benchmarks", {}).get("data", {}).get("rows")
    if rows:
        lines += ["", format_rows(rows, list(rows[0]["peers"]))]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Return the command: 0 where no part failed, 1 where one did, 3 where the device cannot be used."""
    parser = argparse.ArgumentParser("python -m tools.gpu_suite", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="time limit for all parts together (10)")
    parser.add_argument("--out", type=Path, help="write the report to this JSON file")
    parser.add_argument("--device", default="cuda", help="cuda (default) or cuda:1; cuda-emu for a dry run")
    parser.add_argument(
        "--only", action="append", choices=[p.name for p in PARTS], help="run only this part; repeat for several"
    )
    options = parser.parse_args(argv)
    plan = Plan(options.device, options.minutes)

    def write(report: dict[str, Any]) -> None:
        if options.out is not None:
            options.out.write_text(json.dumps(report, indent=1), encoding="utf-8")

    reason = reason_without(plan.device)
    if reason:
        report = run_suite(plan, PARTS[:1], write) | {"no_device": reason}
        write(report)
        print(f"{plan.device}: no GPU can be used here, nothing was run on one.\n  {reason}", file=sys.stderr)
        print("  try    --device cuda-emu, a dry run of all that can be emulated", file=sys.stderr)
        return NO_GPU
    selected = [p for p in PARTS if options.only is None or p.name in options.only]
    report = run_suite(plan, selected, write)
    print(table(report, selected))
    return int(any(result["status"] in (FAILED, LATE) for result in report["parts"].values()))


if __name__ == "__main__":
    sys.exit(main())
