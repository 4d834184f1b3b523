"""Shared parts of the sweeps over kernels, products and convolutions: cases, measuring in turns, floors, tables."""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness.process import pin
from benchmarks.workers.peer import first_line, measure_calls
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.native_call import native
from graphc.compiler.profile import measure_machine
from graphc.compiler.stages import Stages
from graphc.runtime.profile import copy_bandwidth

Call = Callable[[], Any]
OWN = "graphc"


@dataclass
class Result:
    """One case, measured."""

    name: str
    facts: dict[str, Any]
    """Description of the case: shapes, bytes, operations, and derived figures."""
    rounds_ms: dict[str, list[float]] = field(default_factory=dict)
    """Milliseconds per call of each contender, one per round."""
    problems: dict[str, str] = field(default_factory=dict)
    """Reasons for missing times, by contender."""
    errors: dict[str, float] = field(default_factory=dict)
    """Largest relative difference from the reference."""

    def ms(self, name: str) -> float | None:
        """Return median of a contender."""
        rounds = self.rounds_ms.get(name)
        return statistics.median(rounds) if rounds else None

    @property
    def best_peer(self) -> str | None:
        """Return the fastest contender other than graphc."""
        times = {name: statistics.median(r) for name, r in self.rounds_ms.items() if name != OWN and r}
        return min(times, key=times.__getitem__) if times else None

    @property
    def ratio(self) -> float | None:
        """Return median over the rounds of the best peer's time over graphc's: above 1 graphc is faster."""
        best = self.best_peer
        if best is None or not self.rounds_ms.get(OWN):
            return None
        pairs = zip(self.rounds_ms[best], self.rounds_ms[OWN], strict=True)
        return statistics.median(theirs / own for theirs, own in pairs)


def find_library(name: str) -> ModuleType | None:
    """Return a peer's library, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def torch_on_one_thread() -> ModuleType | None:
    """Return torch, limited to one thread, or None."""
    torch = find_library("torch")
    if torch is not None:
        torch.set_num_threads(1)
    return torch


def make_onnx_session(onnxruntime: ModuleType, model: bytes) -> Any:
    """Return a session on one thread with every optimisation."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def make_openvino_request(openvino: ModuleType, model: bytes, precision: str = "f32") -> Any:
    """Return a request on one thread, in float32 or another precision that is allowed."""
    settings = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision}
    core = openvino.Core()
    return core.compile_model(core.read_model(model, b""), "CPU", settings).create_infer_request()


def native_call(stages: Stages, inputs: Sequence[np.ndarray]) -> Call:
    """Return the program of a compile as a loaded model calls it, with arrays for the results."""
    program = load_compiled(compile_stages(stages))
    out = program.run(inputs)
    call = native(program, (), lambda *arrays, out: program.run(arrays, (), out), list)
    return lambda: call(*inputs, out=out)


def measure(result: Result, makers: Mapping[str, Callable[[], Call]], rounds: int, seconds: float) -> Result:
    """Build every contender, compare their results with the first peer's (graphc's own without a peer), and time them
    in turns; each round starts with another one."""
    calls: dict[str, Call] = {}
    numbers: dict[str, list[np.ndarray]] = {}
    for name, make in makers.items():
        try:
            calls[name] = make()
            numbers[name] = arrays_of(calls[name]())
        except Exception as error:  # whatever a contender raises is a result of the measurement
            calls.pop(name, None)
            result.problems[name] = first_line(error)
    reference = next((n for n in numbers if n != OWN), OWN)
    for name, arrays in numbers.items():
        if name != reference:
            result.errors[name] = difference(arrays, numbers[reference])
    names = list(calls)
    for index in range(rounds):
        for name in names[index % len(names) :] + names[: index % len(names)]:
            result.rounds_ms.setdefault(name, []).append(measure_calls(calls[name], seconds)["ms"])
    return result


def arrays_of(value: Any) -> list[np.ndarray]:
    """Copy the arrays and tensors in a result, in order, including those in fields of named records."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [array for item in value for array in arrays_of(item)]
    if value is None:
        return []
    array = value.detach().numpy() if hasattr(value, "detach") else value
    return [np.array(array, np.float64)]


def difference(results: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> float:
    """Return the largest absolute difference over the largest finite magnitude; infinite for different shapes, and
    where one side has a non-finite value that the other does not equal."""
    if [a.shape for a in results] != [a.shape for a in reference]:
        return float("inf")
    worst = 0.0
    for a, b in zip(results, reference, strict=True):
        finite = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return float("inf")
        scale = float(np.abs(b[finite]).max(initial=0.0)) or 1.0
        worst = max(worst, float(np.abs(a[finite] - b[finite]).max(initial=0.0)) / scale)
    return worst


@functools.cache
def copy_seconds(nbytes: int) -> float:
    """Return the seconds to move ``nbytes``, read and written together, by copying a block of half the size, so that
    data that a cache holds between calls of a kernel stay there for the copy too."""
    half = max(64, nbytes // 2)
    return 2 * half / copy_bandwidth(half)


def floor_seconds(nbytes: int, flops: int, double: bool = False) -> float:
    """Return the least time that one core needs to move the bytes and to do the operations."""
    peak = measure_machine().flops / (2 if double else 1)
    return max(copy_seconds(nbytes), flops / peak)


def fill(shape: Sequence[int], seed: int, dtype: Any = np.float32) -> np.ndarray:
    """Return normal numbers in an array of this shape."""
    return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(dtype)


# ---- command line


LIMITED = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GRAPHC_THREADS")


def restart_on_one_thread(module: str) -> None:
    """Start the program again with every library held to one thread, which they read from the environment when they are
    loaded; do nothing the second time."""
    if any(os.environ.get(name) != "1" for name in LIMITED):
        environment = {**os.environ, **dict.fromkeys(LIMITED, "1")}
        os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], environment)


def make_parser(doc: str, peers: Sequence[str]) -> argparse.ArgumentParser:
    """Return the options that every sweep has."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--peers", default=",".join(peers), metavar=",".join(peers))
    parser.add_argument("--rounds", type=int, default=5, metavar="R")
    parser.add_argument("--seconds", type=float, default=0.1, help="length of one contender's turn in a round")
    parser.add_argument("--json", action="store_true", help="print all measurements as JSON")
    return parser


def parse_with(parser: argparse.ArgumentParser, argv: Sequence[str] | None, peers: Sequence[str]) -> argparse.Namespace:
    """Parse with a parser of ``make_parser``, and pin this process to one core."""
    options = parser.parse_args(argv)
    options.peers = [name for name in options.peers.split(",") if name]
    unknown = set(options.peers) - set(peers)
    if unknown or options.rounds < 1:
        parser.error(f"unknown: {', '.join(sorted(unknown))}" if unknown else "nothing to measure")
    pin(1)
    return options


def parse(argv: Sequence[str] | None, doc: str, names: Sequence[str], peers: Sequence[str]) -> argparse.Namespace:
    """Return the options of a sweep over cases with these names."""
    parser = make_parser(doc, peers)
    parser.add_argument("--only", default="", metavar="TEXT", help="measure only cases whose name contains this")
    options = parse_with(parser, argv, peers)
    options.cases = [name for name in names if options.only in name]
    if not options.cases:
        parser.error("nothing to measure")
    return options


def tell(text: str) -> None:
    """Print progress to stderr."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def report(options: argparse.Namespace, results: Sequence[Result], columns: Sequence[str]) -> None:
    """Print the results as JSON or as a table with the given facts, then each contender's time."""
    machine = measure_machine()
    if options.json:
        rows = [
            {**vars(r), "ms": {n: r.ms(n) for n in r.rounds_ms}, "best_peer": r.best_peer, "ratio": r.ratio}
            for r in results
        ]
        head = {"cpu": platform.processor(), "peak_flops": machine.flops, "copy_bytes": machine.bandwidth}
        json.dump({"machine": head, "rows": rows}, sys.stdout, indent=1)
        print()
        return
    print(
        f"One core; peak {machine.flops / 1e9:.0f} GFLOP/s (f32), copy {machine.bandwidth / 1e9:.1f} GB/s. "
        f"Milliseconds per call, medians of {options.rounds} rounds; "
        "ratio above 1: graphc is faster than the best peer.\n"
    )
    print(format_table(results, columns, [OWN, *options.peers]))


def format_table(results: Sequence[Result], columns: Sequence[str], names: Sequence[str]) -> str:
    """Return the table, a summary of the ratios, and the missing rows."""
    lines = [f"| case | {' | '.join([*columns, *names, 'ratio'])} |", "|" + "---|" * (len(columns) + len(names) + 2)]
    for r in results:
        cells = [r.name, *(str(r.facts.get(c, "-")) for c in columns)]
        for name in names:
            ms = r.ms(name)
            mark = "!" if r.errors.get(name, 0.0) > 1e-3 else ""
            text = "-" if ms is None else f"{ms:.4g}{mark}"
            cells.append(f"**{text}**" if name == r.best_peer else text)
        cells.append("-" if r.ratio is None else f"{r.ratio:.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    ratios = sorted(r.ratio for r in results if r.ratio is not None)
    if ratios:
        behind = sum(x < 1 for x in ratios)
        lines += [
            "",
            f"{len(ratios)} compared, {behind} behind the best peer, median ratio {statistics.median(ratios):.2f}",
        ]
    problems: dict[tuple[str, str], list[str]] = {}
    for r in results:
        for name, problem in r.problems.items():
            problems.setdefault((name, problem), []).append(r.name)
    lines += [f"{name}: {problem}: {', '.join(where)}" for (name, problem), where in sorted(problems.items())]
    return "\n".join(lines)
