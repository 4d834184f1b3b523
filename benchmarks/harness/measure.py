"""Measure one workload: set every peer up, compare their numbers, then time them in turns."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.harness.framework import NUMBERS, ONNX
from benchmarks.harness.process import ROOT, WorkerProcess
from benchmarks.peers import NEED_ONNX, OWN
from benchmarks.workloads import WORKLOADS, Array

Tell = Callable[[str], None]


@dataclass
class Figures:
    """Measurements of one peer on one workload."""

    rounds_ms: list[float] = field(default_factory=list)
    """Median milliseconds of a call, one per round."""
    first_call_s: float | None = None
    error: float | None = None
    """Largest absolute difference from the reference over the reference's largest magnitude."""
    unlimited: str = ""
    """Kernels that ran with more instructions than the target has."""
    problem: str = ""
    """Reason for missing times: an error's first line, or a missing package."""

    @property
    def ms(self) -> float | None:
        """Return median over the rounds."""
        return statistics.median(self.rounds_ms) if self.rounds_ms else None


@dataclass
class Row:
    """One workload with every peer's figures."""

    workload: str
    peers: dict[str, Figures]

    @property
    def best_peer(self) -> str | None:
        """Return the fastest peer other than graphc."""
        timed = {name: figures.ms for name, figures in self.peers.items() if name not in OWN and figures.ms is not None}
        return min(timed, key=lambda name: timed[name]) if timed else None

    @property
    def ratio(self) -> float | None:
        """Return median over the rounds of the best peer's time over graphc's in the same round: above 1 graphc is
        faster."""
        best = self.best_peer
        if best is None or "graphc" not in self.peers:
            return None
        pairs = zip(self.peers[best].rounds_ms, self.peers["graphc"].rounds_ms, strict=False)
        ratios = [theirs / own for theirs, own in pairs]
        return statistics.median(ratios) if ratios else None


def relative_error(numbers: Array, reference: Array) -> float:
    """Return max |numbers - reference| over max |reference|; infinite for another shape or a NaN."""
    if numbers.shape != reference.shape or not np.isfinite(numbers).all():
        return float("inf")
    scale = float(np.abs(reference).max(initial=0.0)) or 1.0
    return float(np.abs(numbers.astype(np.float64) - reference).max(initial=0.0)) / scale


def prepare_reference(workload: str, folder: Path, onnx: bool, environment: Mapping[str, str]) -> dict[str, str | None]:
    """Write weights, reference numbers and, on request, the ONNX file into `folder`; return the process's answer."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.workers.reference",
        workload,
        str(folder),
        *(["--onnx"] if onnx else []),
    ]
    done = subprocess.run(command, cwd=ROOT, env=dict(environment), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise RuntimeError(f"the reference of {workload} can not be made: {lines[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def set_up(process: WorkerProcess, workload: str, folder: Path, reference: Array) -> Figures:
    """Let one peer build the workload, and compare its numbers."""
    answer = process.ask({"cmd": "setup", "workload": workload, "folder": str(folder)})
    problem = answer.get("error") or answer.get("not_provided")
    if problem:
        return Figures(problem=str(problem))
    error = relative_error(np.load(answer["numbers"]), reference)
    return Figures(first_call_s=answer["first_call_s"], error=error, unlimited=answer.get("unlimited", ""))


def alternate(
    processes: Mapping[str, WorkerProcess], figures: Mapping[str, Figures], rounds: int, seconds: float
) -> None:
    """Time the peers in turns, each round starting with another one, and add the times to `figures`."""
    names = [name for name, result in figures.items() if not result.problem]
    for index in range(rounds):
        shift = index % len(names) if names else 0
        for name in names[shift:] + names[:shift]:
            if figures[name].problem:
                continue
            answer = processes[name].ask({"cmd": "time", "seconds": seconds})
            if "error" in answer:
                figures[name].problem = str(answer["error"])
                figures[name].rounds_ms.clear()
            else:
                figures[name].rounds_ms.append(answer["ms"])


def measure(
    workload: str,
    processes: Mapping[str, WorkerProcess],
    folder: Path,
    environment: Mapping[str, str],
    rounds: int,
    seconds: float,
    tell: Tell,
) -> Row:
    """Return the row of one workload; `folder` must be empty and holds its files."""
    onnx = any(name in NEED_ONNX for name in processes) and not WORKLOADS[workload].train
    tell(f"{workload}: reference")
    try:
        written = prepare_reference(workload, folder, onnx, environment)
    except RuntimeError as error:  # reported in the table, so that earlier rows are not lost
        return Row(workload, {name: Figures(problem=str(error)) for name in processes})
    reference = np.load(folder / NUMBERS)
    figures: dict[str, Figures] = {}
    for name, process in processes.items():
        if name in NEED_ONNX and onnx and not (folder / ONNX).exists():
            figures[name] = Figures(problem=f"no ONNX file: {written['onnx']}")
            continue
        tell(f"{workload}: {name}")
        figures[name] = set_up(process, workload, folder, reference)
    tell(f"{workload}: {rounds} rounds")
    alternate(processes, figures, rounds, seconds)
    return Row(workload, figures)


def describe_rows(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return the rows as plain data for JSON."""
    return [
        {
            "workload": row.workload,
            "best_peer": row.best_peer,
            "ratio": row.ratio,
            "peers": {
                name: {
                    "ms": result.ms,
                    "rounds_ms": result.rounds_ms,
                    "first_call_s": result.first_call_s,
                    "error": result.error,
                    "unlimited": result.unlimited,
                    "problem": result.problem,
                }
                for name, result in row.peers.items()
            },
        }
        for row in rows
    ]
