"""Sizes that differ from call to call: ``python -m benchmarks.sizes [--fixed | --calls]``."""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.framework import read_weights
from benchmarks.harness.memory import resident
from benchmarks.harness.process import pin
from benchmarks.harness.results import OWN, arrays_of, cell, difference, first_line, format_table
from benchmarks.harness.sweep import limited_torch, make_parser, restart, tell
from benchmarks.models import more, standard
from benchmarks.peers.onnx_calls import onnx_run
from graphc.base.sizes.size import hint

Array = np.ndarray[Any, Any]
Run = Callable[[Array], Any]
"""One call of a contender with the input of some sizes."""
PEERS = ("torch", "onnxruntime", "openvino")
_STEADY = 3
"""Rounds of a stream after the first."""
_CALLS = 2_000
"""Consecutive calls of a model so small that its kernels cost next to nothing."""


@dataclass(frozen=True)
class Case:
    """A model of one input, some sizes of which differ from call to call."""

    name: str
    build: Callable[[ModuleType], Any]
    shape: tuple[str | int, ...]
    """Shape of the input, with the names of dimensions."""
    dims: Mapping[str, tuple[int, int, int]]
    """Least and greatest size, and their common divisor, by name."""
    below: int | None = None
    """The number of indices to draw from, of an input of indices."""

    def input(self, sizes: Mapping[str, int]) -> Array:
        """Return the input for sizes, the same ones for all contenders."""
        shape = [sizes[s] if isinstance(s, str) else s for s in self.shape]
        generator = np.random.default_rng(sum(shape))
        if self.below is not None:
            return generator.integers(0, self.below, shape)
        return generator.standard_normal(shape, dtype=np.float32)

    def draw(self, count: int, seed: int = 0) -> list[dict[str, int]]:
        generator = random.Random(seed)
        return [
            {name: generator.randrange(low, high + 1, step) for name, (low, high, step) in self.dims.items()}
            for _ in range(count)
        ]

    def limits(self, count: int) -> list[dict[str, int]]:
        """Return about ``count`` sizes: the least and the greatest ones, and some between them."""
        ends = [{name: d[i] for name, d in self.dims.items()} for i in (0, 1)]
        return [*ends, *self.draw(max(0, count - 2), 1)]

    def read(self, text: str) -> dict[str, int]:
        """Parse sizes: a number for each dimension, with ``x`` between them. Raise ValueError for other texts."""
        sizes = dict(zip(self.dims, map(int, text.split("x")), strict=True))
        for name, (low, high, step) in self.dims.items():
            if sizes[name] not in range(low, high + 1, step):
                raise ValueError(f"{name} of {self.name} is {low} to {high} by {step}, not {sizes[name]}")
        return sizes


_TOKENS, _BATCHES = 30000, {"batch": (1, 8, 1), "time": (1, 512, 1)}
CASES = {
    case.name: case
    for case in (
        Case("mlp", standard.build_mlp, ("batch", 1024), {"batch": (1, 128, 1)}),
        Case("net", standard.build_net, ("batch", 1, 28, 28), {"batch": (1, 128, 1)}),
        Case("minilm", standard.build_minilm, (1, "time"), {"time": (1, 512, 1)}, _TOKENS),
        Case("minilm_batches", standard.build_minilm, ("batch", "time"), _BATCHES, _TOKENS),
        Case("gpt", lambda nn: standard.build_gpt(nn, 512), (1, "time"), {"time": (1, 512, 1)}, 256),
        Case("gpt_batches", standard.build_gpt, ("batch", 16), {"batch": (1, 257, 1)}, 256),
        Case("lstm", standard.build_lstm, (1, "time", 64), {"time": (1, 512, 1)}),
        Case("gru", more.build_gru, (1, "time", 64), {"time": (1, 512, 1)}),
        Case("resnet50", standard.build_resnet50, ("batch", 3, 224, 224), {"batch": (1, 16, 1)}),
        Case("unet", more.build_unet, (1, 3, "high", "wide"), {"high": (32, 256, 16), "wide": (32, 256, 16)}),
    )
}


class Setting:
    """The contenders of a case, all with the same weights."""

    def __init__(self, case: Case):
        self.case = case
        self.largest = {name: high for name, (_, high, _) in case.dims.items()}
        self.dims = {name: _dimension(name, *d) for name, d in case.dims.items()}
        self.expected = {name: hint(dim) for name, dim in self.dims.items()}
        """Sizes that decisions about speed are made for."""

    @cached_property
    def model(self) -> Any:
        graphc.manual_seed(0)
        return self.case.build(graphc.nn).eval()

    @property
    def spec(self) -> tuple[Any, ...]:
        """Return the shape of the input with its dimensions."""
        return tuple(self.dims[s] if isinstance(s, str) else s for s in self.case.shape)

    def for_all(self, **options: Any) -> Any:
        return graphc.compile(self.model, dims=[self.spec], **options)

    @cached_property
    def torch_model(self) -> tuple[ModuleType, Any]:
        torch = limited_torch()
        model = self.case.build(torch.nn).eval()
        model.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in read_weights(self.model).items()})
        return torch, model

    def torch(self) -> Run:
        torch, model = self.torch_model
        torch._dynamo.reset()
        compiled = torch.compile(model, dynamic=True)

        def run(x: Array) -> Any:
            with torch.inference_mode():
                return compiled(torch.from_numpy(x))

        return run

    @cached_property
    def onnx(self) -> bytes:
        """Return the model as torch exports it, with dynamic axes."""
        torch, model = self.torch_model
        x = torch.from_numpy(self.case.input({n: max(2, h // 4 // s * s) for n, (_, h, s) in self.case.dims.items()}))
        axes = {i: name for i, name in enumerate(self.case.shape) if isinstance(name, str)}
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model, (x,), file, input_names=["x"], dynamic_axes={"x": axes}, dynamo=False)
        return file.getvalue()

    def prepare(self, name: str) -> None:
        """Build the model of a contender, whose time does not count in its first call."""
        _ = self.model if name == OWN else self.torch_model if name == "torch" else self.onnx

    def contender(self, name: str) -> Run:
        if name in (OWN, "torch"):
            return called(self.for_all()) if name == OWN else self.torch()
        run = onnx_run(name, self.onnx)
        return lambda x: run([x])[0]


def _dimension(name: str, low: int, high: int, step: int) -> Any:
    if step == 1:
        return graphc.Dim(name, low, high)
    return step * graphc.Dim(name, low // step, high // step)


def called(compiled: Any) -> Run:

    def run(x: Array) -> Any:
        with graphc.no_grad():
            return compiled(graphc.from_numpy(x))

    return run


def seconds_of(run: Run, inputs: Iterable[Array]) -> float:
    start = time.perf_counter()
    for x in inputs:
        run(x)
    return time.perf_counter() - start


def in_turns(streams: Mapping[str, tuple[Run, Sequence[Any]]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each stream of calls in rounds in which all take turns, by name."""
    values: dict[str, list[float]] = {name: [] for name in streams}
    for _ in range(rounds):
        for name, (run, inputs) in streams.items():
            values[name].append(seconds_of(run, inputs))
    return values


def run_stream(case: Case, peers: Sequence[str], count: int) -> dict[str, Any]:
    """Return seconds of each contender for a stream of mixed sizes: the time until its first result, the first stream
    with it, and the median of later ones, in turns."""
    setting, inputs = Setting(case), [case.input(sizes) for sizes in case.draw(count)]
    streams: dict[str, tuple[Run, Sequence[Array]]] = {}
    rows: dict[str, dict[str, Any]] = {}
    reference: list[Array] | None = None
    for name in (*peers, OWN):
        try:
            setting.prepare(name)
            start = time.perf_counter()
            run = setting.contender(name)
            results = arrays_of(run(inputs[0]))
            first = time.perf_counter() - start
            before = resident()
            total = first + seconds_of(run, inputs[1:])
        except Exception as error:  # whatever a contender raises is a result of the measurement
            rows[name] = {"problem": first_line(error)}
            continue
        reference = reference or results
        streams[name] = run, inputs
        grown = (resident() - before) / 1e6
        rows[name] = {"first_call_s": first, "first_stream_s": total, "grown_mb": grown}
        rows[name]["error"] = difference(results, reference)
        tell(f"{case.name} {name}: {first:.2f} s to the first result, {total:.2f} s")
    for name, rounds in in_turns(streams, _STEADY).items():
        rows[name] |= {"rounds_s": rounds, "steady_s": statistics.median(rounds)}
    return rows


def _first_call(setting: Setting, compiled: Any) -> dict[str, Any]:
    """Call a compiled model at the expected sizes; return how long that took, bytes of code, and how many kernels have
    versions."""
    x = setting.case.input(setting.expected)
    seconds, plan = seconds_of(called(compiled), [x]), compiled.programs[-1]
    return {"compile_s": seconds, "code": plan.code, "chosen": plan.chosen}


def run_fixed(case: Case, fixed_sizes: Sequence[dict[str, int]], rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Return one program for all sizes beside the program for each, in alternating rounds; errors are against eager
    mode."""
    # One-time work of a process is not part of any measured compile.
    small = graphc.compile(graphc.nn.Linear(4, 4), dims=[(graphc.Dim("rows", 1, 8), 4)])
    called(small)(np.zeros((2, 4), np.float32))
    setting, alone = Setting(case), Setting(case)  # a model of its own, so that no weights are packed yet
    program = setting.for_all()
    compiled = _first_call(setting, program)
    compiled |= {f"fixed_{name}": value for name, value in _first_call(alone, graphc.compile(alone.model)).items()}
    own, rows = called(program), []
    for sizes in fixed_sizes:
        x, fixed = case.input(sizes), called(graphc.compile(setting.model))
        fixed(x)
        with graphc.no_grad():
            expected = arrays_of(setting.model(graphc.from_numpy(x)))
        repeats = max(1, int(seconds / max(1e-6, min(seconds_of(fixed, [x]) for _ in range(3)))))
        times = in_turns({"one": (own, [x] * repeats), "fixed": (fixed, [x] * repeats)}, rounds)
        row: dict[str, Any] = {"sizes": sizes, "error": difference(arrays_of(own(x)), expected)}
        row |= {f"{name}_ms": 1e3 * statistics.median(seconds_each) / repeats for name, seconds_each in times.items()}
        row["ratio"] = statistics.median(b / a for a, b in zip(times["one"], times["fixed"], strict=True))
        rows.append(row | compiled)
        tell(f"{case.name} {sizes}: {row['ratio']:.2f}")
    return rows


def run_calls(rounds: int) -> dict[str, dict[str, float]]:
    """Return microseconds of a call of a perceptron, 4-8-2, of the size of the call before, or of another one, in
    turns."""
    graphc.manual_seed(0)
    nn, dims = graphc.nn, [(graphc.Dim("batch", 1, 64),)]
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    arrays = [np.ones((rows, 4), np.float32) for rows in (3, 5)]
    tensors = [graphc.from_numpy(x) for x in arrays]
    result: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, graphc.no_grad():
        graphc.export(model, tensors[0], path=Path(folder) / "model.gcm", dims=dims)
        kinds = {
            "compiled": (graphc.compile(model, dims=dims), tensors),
            "compiled, a tuple of results": (graphc.compile(lambda x: (model(x), x * 2), dims=dims), tensors),
            "model file": (graphc.load(Path(folder) / "model.gcm"), arrays),
        }
        for name, (run, (x, y)) in kinds.items():
            streams = {"same": (run, [x] * _CALLS), "other": (run, [x, y] * (_CALLS // 2))}
            seconds_of(*streams["other"])
            times = in_turns(streams, rounds)
            result[name] = {f"{k}_us": statistics.median(t) / _CALLS * 1e6 for k, t in times.items()}
    return result


# ---- printing


def format_calls(results: Mapping[str, Mapping[str, float]]) -> str:
    rows = [[name, f"{r['same_us']:.2f}", f"{r['other_us']:.2f}"] for name, r in results.items()]
    return format_table(["call", "the same size, us", "another size, us"], rows)


def format_streams(results: Mapping[str, Mapping[str, Any]], peers: Sequence[str]) -> str:
    lines = []
    for case, rows in results.items():
        steady = [rows[p]["steady_s"] for p in peers if "steady_s" in rows[p]]
        for name, row in rows.items():
            if "problem" in row:
                lines.append([case, name, row["problem"], *[""] * 4])
                continue
            ratio = f"{min(steady) / row['steady_s']:.2f}" if steady and name == OWN else ""
            cells = [f"{row[k]:.2f} s" for k in ("first_call_s", "first_stream_s", "steady_s")]
            lines.append([case, name, *cells, f"{row['error']:.0e}", ratio])
    columns = ["stream", "engine", "first call", "first stream", "later ones", "error", "times the best peer"]
    return format_table(columns, lines)


def format_fixed(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    lines = []
    for case, rows in results.items():
        for row in rows:
            sizes = ", ".join(f"{k} {v}" for k, v in row["sizes"].items())
            cells = [f"{row['one_ms']:.3f}", f"{row['fixed_ms']:.3f}", f"{row['ratio']:.2f}", f"{row['error']:.0e}"]
            lines.append([case, sizes, *cells])
        first, rest = rows[0], ["", ""]
        both = [f"{cell(first[name])} s" for name in ("compile_s", "fixed_compile_s")]
        lines.append([case, "first call at the expected sizes", *both, *rest])
        bytes_of = f"code, bytes ({first['chosen']} kernels in versions)"
        lines.append([case, bytes_of, str(first["code"]), str(first["fixed_code"]), *rest])
    return format_table(["model", "sizes", "one program, ms", "fixed, ms", "fixed / one", "error"], lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = make_parser("benchmarks.sizes", __doc__, PEERS)
    only = "measure the case of this name, or cases whose name contains it"
    parser.add_argument("--only", default="", metavar="TEXT", help=only)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--fixed", action="store_true", help="compare one program with a program for each size")
    kind.add_argument("--calls", action="store_true", help="measure the cost of a call of another size")
    number = parser.add_mutually_exclusive_group()
    count = "number of calls of a stream (200), or of sizes (20)"
    number.add_argument("--count", type=int, default=0, metavar="N", help=count)
    chosen = "sizes for --fixed, such as 1 17, or 64x176 for two dimensions"
    number.add_argument("--sizes", nargs="+", metavar="N", help=chosen)
    options = parser.parse_args(argv)
    named = [CASES[options.only]] if options.only in CASES else []
    cases = named or [case for name, case in CASES.items() if options.only in name]
    if not cases or (options.sizes and not options.fixed):
        parser.error("nothing to measure" if not cases else "--sizes needs --fixed")
    try:
        sizes = {case.name: [case.read(text) for text in options.sizes or ()] for case in cases}
    except ValueError as error:
        parser.error(f"--sizes: {error}")
    os.environ["GRAPHC_CACHE"] = "off"  # only compiled code counts
    pin(1)
    report(options, cases, sizes)
    return 0


def report(
    options: argparse.Namespace, cases: Sequence[Case], chosen_sizes: Mapping[str, Sequence[dict[str, int]]]
) -> None:
    """Measure the cases at the sizes on the command line, if any, and print JSON or a table."""
    if options.fixed:
        sizes = {c.name: chosen_sizes[c.name] or c.limits(options.count or 20) for c in cases}
        results: Any = {c.name: run_fixed(c, sizes[c.name], options.rounds, options.seconds) for c in cases}
        text = format_fixed(results)
    elif options.calls:
        results = run_calls(options.rounds)
        text = format_calls(results)
    else:
        results = {c.name: run_stream(c, options.peers, options.count or 200) for c in cases}
        text = format_streams(results, options.peers)
    print(json.dumps(results, indent=1) if options.json else text)


if __name__ == "__main__":
    restart("benchmarks.sizes")
    sys.exit(main())
