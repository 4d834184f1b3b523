"""Memory and time of training steps under budgets, and with PyTorch's checkpoints: ``python -m benchmarks.memory``."""

from __future__ import annotations

import argparse
import gc
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.harness.framework import build_model, convert_inputs, make_eager_step, make_loss, make_optimizer
from benchmarks.harness.process import ROOT
from benchmarks.harness.sweep import find_library
from benchmarks.workloads import WORKLOADS, Workload

MODELS = ("train_resnet50_b4", "train_gpt_b8_t128")
BUDGETS = ("100%", "70%", "50%")
PEERS = ("torch", "torch+checkpoint")
_BLOCK = re.compile(r"Block|Bottleneck|Layer$")
"""Classes of modules whose calls PyTorch's checkpoint goes around."""
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print a table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument(
        "models", nargs="*", default=list(MODELS), help=f"models, among {', '.join(MODELS)}, or any workload train_..."
    )
    parser.add_argument("--budgets", default=",".join(BUDGETS), help="graphc's memory budgets, separated by commas")
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds; the table shows medians")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--worker", metavar="CONTENDER", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        return work(WORKLOADS[options.models[0]], options.worker)
    budgets = [b.strip() for b in options.budgets.split(",")]
    peers = PEERS if find_library("torch") else ()
    rows = [row for model in options.models for row in measure(model, (*budgets, *peers), options.rounds)]
    print(json.dumps(rows, indent=1) if options.json else table(rows))
    return 0


def measure(model: str, contenders: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    """Return a row for each contender: a process each, which take turns."""
    workers = {name: _start(model, name) for name in contenders}
    rows = {name: {"model": model, "contender": name, **_answer(worker)} for name, worker in workers.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, worker in workers.items():
            if "problem" not in rows[name]:
                worker.stdin.write("step\n")
                worker.stdin.flush()
                answer = _answer(worker)
                times[name].append(answer["ms"])
                rows[name]["resident_mb"] = answer["resident_mb"]
    for name, worker in workers.items():
        worker.stdin.close()
        worker.wait()
        rows[name]["ms"] = statistics.median(times[name]) if times[name] else None
    return list(rows.values())


def _start(model: str, contender: str) -> Any:
    command = [sys.executable, "-m", "benchmarks.memory", model, "--worker", contender]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _answer(worker: Any) -> dict[str, Any]:
    line = worker.stdout.readline()
    return json.loads(line) if line else {"problem": f"its process ended with {worker.wait()}"}


def work(workload: Workload, contender: str) -> int:
    """Run as the worker: prepare, print the plan, and run a step for every input line."""
    start = time.perf_counter()
    try:
        step, facts = (_peer_step if contender in PEERS else _own_step)(workload, contender)
        step()
    except MemoryError as error:
        print(json.dumps({"problem": str(error).partition("\n")[0]}), flush=True)
        return 0
    gc.collect()
    print(json.dumps({**facts(), "first_s": time.perf_counter() - start}), flush=True)
    _RESET.write_text("5")  # the largest resident size is counted from here on
    for _ in sys.stdin:
        begin = time.perf_counter()
        step()
        elapsed = 1000 * (time.perf_counter() - begin)
        print(json.dumps({"ms": elapsed, "resident_mb": _resident_peak() / 1e6}), flush=True)
    return 0


def _resident_peak() -> int:
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def _own_step(workload: Workload, budget: str) -> tuple[Callable[[], Any], Callable[[], dict[str, Any]]]:
    library = find_library("graphc")
    assert library is not None
    model = build_model(library, workload).train()
    x, y = convert_inputs(library, workload)
    optimizer = make_optimizer(library, workload, model)
    step = library.compile_step(model, make_loss(library, workload), optimizer, memory=budget)

    def facts() -> dict[str, Any]:
        (report,) = step.memory_report()
        again = sum(piece.nbytes for piece in report.again)
        return {"planned_mb": step.plan()[0].arena / 1e6, "again_mb": again / 1e6, "again_ms": report.nanoseconds / 1e6}

    return lambda: float(step(x, y)), facts


def _peer_step(workload: Workload, contender: str) -> tuple[Callable[[], Any], Callable[[], dict[str, Any]]]:
    library = find_library("torch")
    assert library is not None
    model = build_model(library, workload).train()
    if contender != "torch":
        checkpoint_blocks(library, model)
    x, y = convert_inputs(library, workload)
    step = make_eager_step(library, workload, model)
    return lambda: float(step(x, y)), dict


def checkpoint_blocks(library: ModuleType, model: Any) -> int:
    """Put PyTorch's checkpoint around the calls of the blocks of a model; return how many there are."""
    checkpoint = library.utils.checkpoint.checkpoint
    blocks = [m for m in model.modules() if m is not model and _BLOCK.search(type(m).__name__)]
    for block in blocks:
        block.forward = _checkpointed(checkpoint, block.forward)
    return len(blocks)


def _checkpointed(checkpoint: Callable[..., Any], forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: checkpoint(forward, *args, use_reentrant=False)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as text."""
    lines = [f"{'model':20} {'contender':18} {'planned':>10} {'resident':>10} {'step':>10} {'again':>10} {'first':>8}"]
    for row in rows:
        head = f"{row['model']:20} {row['contender']:18}"
        if "problem" in row:
            lines.append(f"{head} {row['problem']}")
            continue
        cells = [
            *(_cell(row.get("planned_mb"), "MB", 10), _cell(row.get("resident_mb"), "MB", 10)),
            *(_cell(row.get("ms"), "ms", 10), _cell(row.get("again_mb"), "MB", 10), _cell(row.get("first_s"), "s", 8)),
        ]
        lines.append(" ".join((head, *cells)))
    return "\n".join(lines)


def _cell(value: float | None, unit: str, width: int) -> str:
    return f"{'-' if value is None else f'{value:.1f} {unit}':>{width}}"


if __name__ == "__main__":
    sys.exit(main())
