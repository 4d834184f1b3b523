"""Sizes that differ from call to call: ``python -m benchmarks.sizes [--fixed | --calls | --memory]``."""

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.framework import read_weights
from benchmarks.harness.sweep import (
    arrays_of,
    difference,
    find_library,
    make_onnx_session,
    make_openvino_request,
    make_parser,
    parse_with,
    restart_on_one_thread,
    tell,
    torch_on_one_thread,
)
from benchmarks.models import more, standard
from benchmarks.workers.peer import first_line
from graphc.base.sizes.size import hint

Array = np.ndarray[Any, Any]
Run = Callable[[Array], Any]
"""One call of a contender with the input of some sizes."""
PEERS = ("torch", "onnxruntime", "openvino")
OWN = "graphc"
_STEADY = 3
"""Rounds of a stream after the first."""
_FEW = 10
"""Calls after which memory is looked at for the first time."""
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
        """Return the sizes of ``count`` calls."""
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


CASES = {
    case.name: case
    for case in (
        Case("mlp", standard.build_mlp, ("batch", 1024), {"batch": (1, 128, 1)}),
        Case("net", standard.build_net, ("batch", 1, 28, 28), {"batch": (1, 128, 1)}),
        Case("minilm", standard.build_minilm, (1, "time"), {"time": (1, 512, 1)}, 30000),
        Case(
            "minilm_batches", standard.build_minilm, ("batch", "time"), {"batch": (1, 8, 1), "time": (1, 512, 1)}, 30000
        ),
        Case("gpt", lambda nn: standard.build_gpt(nn, 512), (1, "time"), {"time": (1, 512, 1)}, 256),
        Case("gpt_batches", standard.build_gpt, ("batch", 16), {"batch": (1, 257, 1)}, 256),
        Case("lstm", standard.build_lstm, (1, "time", 64), {"time": (1, 512, 1)}),
        Case("gru", more.build_gru, (1, "time", 64), {"time": (1, 512, 1)}),
        Case("resnet50", standard.build_resnet50, ("batch", 3, 224, 224), {"batch": (1, 16, 1)}),
        Case("unet", more.build_unet, (1, 3, "high", "wide"), {"high": (32, 256, 16), "wide": (32, 256, 16)}),
    )
}


@dataclass
class Setting:
    """The contenders of a case, all with the same weights."""

    case: Case
    largest: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.largest = {name: high for name, (_, high, _) in self.case.dims.items()}

    @property
    def expected(self) -> dict[str, int]:
        """Return the sizes that decisions about speed are made for."""
        return {name: hint(_dimension(name, *d)) for name, d in self.case.dims.items()}

    @cached_property
    def model(self) -> Any:
        """Return graphc's model."""
        graphc.manual_seed(0)
        return self.case.build(graphc.nn).eval()

    def spec(self) -> tuple[Any, ...]:
        """Return the sizes of the input as graphc's ``dims`` takes them."""
        dims = {name: _dimension(name, *d) for name, d in self.case.dims.items()}
        return tuple(dims[s] if isinstance(s, str) else s for s in self.case.shape)

    def for_all(self) -> Any:
        """Return graphc's contender, one program for all sizes."""
        return graphc.compile(self.model, dims=[self.spec()])

    def own(self) -> Run:
        """Return the call of ``for_all``."""
        return called(self.for_all())

    @cached_property
    def torch_model(self) -> tuple[ModuleType, Any]:
        """Return torch, and its model."""
        torch = torch_on_one_thread()
        if torch is None:
            raise ImportError("torch is not installed")
        model = self.case.build(torch.nn).eval()
        model.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in read_weights(self.model).items()})
        return torch, model

    def torch(self) -> Run:
        """Return torch.compile's contender, with dynamic sizes."""
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

    def onnxruntime(self) -> Run:
        """Return a session of onnxruntime."""
        library = find_library("onnxruntime")
        if library is None:
            raise ImportError("onnxruntime is not installed")
        session = make_onnx_session(library, self.onnx)
        return lambda x: session.run(None, {"x": x})[0]

    def openvino(self) -> Run:
        """Return a request of openvino, in float32."""
        openvino = find_library("openvino")
        if openvino is None:
            raise ImportError("openvino is not installed")
        request = make_openvino_request(openvino, self.onnx)
        return lambda x: request.infer([x], share_inputs=True, share_outputs=True)[0]


def _dimension(name: str, low: int, high: int, step: int) -> Any:
    if step == 1:
        return graphc.Dim(name, low, high)
    return step * graphc.Dim(name, low // step, high // step)


def called(compiled: Any) -> Run:
    """Return the call of a compiled function."""

    def run(x: Array) -> Any:
        with graphc.no_grad():
            return compiled(graphc.from_numpy(x))

    return run


def seconds_of(run: Run, inputs: Sequence[Array]) -> float:
    """Return the total seconds of the calls."""
    start = time.perf_counter()
    for x in inputs:
        run(x)
    return time.perf_counter() - start


def resident() -> int:
    """Return the resident bytes of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_stream(case: Case, peers: Sequence[str], count: int) -> dict[str, Any]:
    """Return seconds of each contender for a stream of mixed sizes: the time until its first result, the first stream
    with it, and the median of later ones, in turns."""
    setting, inputs = Setting(case), [case.input(sizes) for sizes in case.draw(count)]
    runs: dict[str, Run] = {}
    rows: dict[str, dict[str, Any]] = {}
    reference: list[Array] | None = None
    for name in (*peers, OWN):
        try:
            # The time to build a model does not count in its first call.
            _ = setting.torch_model if name == "torch" else setting.model
            if name in PEERS[1:]:
                _ = setting.onnx
            start = time.perf_counter()
            run = getattr(setting, "own" if name == OWN else name)()
            results = arrays_of(run(inputs[0]))
            first = time.perf_counter() - start
            before = resident()
            total = first + seconds_of(run, inputs[1:])
        except Exception as error:  # whatever a contender raises is a result of the measurement
            rows[name] = {"problem": first_line(error)}
            continue
        reference = reference or results
        runs[name] = run
        rows[name] = {
            "first_call_s": first,
            "first_stream_s": total,
            "error": difference(results, reference),
            "grown_mb": (resident() - before) / 1e6,
            "rounds_s": [],
        }
        tell(f"{case.name} {name}: {first:.2f} s to the first result, {total:.2f} s")
    for _ in range(_STEADY):
        for name, run in runs.items():
            rows[name]["rounds_s"].append(seconds_of(run, inputs))
    for name in runs:
        rows[name]["steady_s"] = statistics.median(rows[name]["rounds_s"])
    return rows


def _warm_up() -> None:
    """Compile something small: one-time work of a process is not part of any measured compile."""
    rows = graphc.Dim("rows", 1, 8)
    called(graphc.compile(graphc.nn.Linear(4, 4), dims=[(rows, 4)]))(np.zeros((2, 4), np.float32))


def _first_call(setting: Setting, compiled: Any) -> tuple[Any, dict[str, Any]]:
    """Return a compiled model after its first call at the expected sizes: how long that took, bytes of code, and how
    many kernels have versions."""
    x = setting.case.input(setting.expected)
    start = time.perf_counter()
    called(compiled)(x)
    seconds, plan = time.perf_counter() - start, compiled.programs[-1]
    return compiled, {"compile_s": seconds, "code": plan.code, "chosen": plan.chosen}


def run_fixed(case: Case, fixed_sizes: Sequence[dict[str, int]], rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Return one program for all sizes beside the program for each, in alternating rounds; errors are against eager
    mode."""
    setting = Setting(case)
    _warm_up()
    program, compiled = _first_call(setting, setting.for_all())
    alone = Setting(case)  # a model of its own, so that no weights are packed yet
    compiled |= {f"fixed_{name}": value for name, value in _first_call(alone, graphc.compile(alone.model))[1].items()}
    own = called(program)
    rows: list[dict[str, Any]] = []
    for sizes in fixed_sizes:
        x, of_size = case.input(sizes), graphc.compile(setting.model)
        fixed = called(of_size)
        fixed(x)
        with graphc.no_grad():
            expected = arrays_of(setting.model(graphc.from_numpy(x)))
        row: dict[str, Any] = {"sizes": sizes, "error": difference(arrays_of(own(x)), expected)}
        repeats = max(1, int(seconds / max(1e-6, min(seconds_of(fixed, [x]) for _ in range(3)))))
        times: dict[str, list[float]] = {"one": [], "fixed": []}
        for _ in range(rounds):
            for name, run in (("one", own), ("fixed", fixed)):
                times[name].append(seconds_of(run, [x] * repeats) / repeats * 1e3)
        row |= {f"{name}_ms": statistics.median(seconds_each) for name, seconds_each in times.items()}
        row["ratio"] = statistics.median(b / a for a, b in zip(times["one"], times["fixed"], strict=True))
        rows.append(row | compiled)
        tell(f"{case.name} {sizes}: {row['ratio']:.2f}")
    return rows


def run_memory(case: Case, count: int) -> dict[str, Any]:
    """Return megabytes of the process after a call at the largest sizes and few or all of ``count`` at random ones."""
    setting = Setting(case)
    run = setting.own()
    run(case.input(setting.largest))
    figures: dict[str, Any] = {"count": count}
    for number, sizes in enumerate(case.draw(count), 1):
        run(case.input(sizes))
        if number in (_FEW, count):
            figures["few_mb" if number < count else "all_mb"] = resident() / 1e6
    return figures


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
            streams = {"same": [x] * _CALLS, "other": [x, y] * (_CALLS // 2)}
            seconds_of(run, streams["other"])
            times = {kind: [] for kind in streams}
            for _ in range(rounds):
                for kind, inputs in streams.items():
                    times[kind].append(seconds_of(run, inputs) / _CALLS * 1e6)
            result[name] = {f"{kind}_us": statistics.median(seconds_each) for kind, seconds_each in times.items()}
    return result


def format_memory(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a row for each case."""
    lines = [f"| model | calls | MB after {_FEW} | MB after all |", "|" + "---|" * 4]
    lines += [f"| {case} | {r['count']} | {r['few_mb']:.2f} | {r['all_mb']:.2f} |" for case, r in results.items()]
    return "\n".join(lines)


def format_calls(results: Mapping[str, Mapping[str, float]]) -> str:
    """Return a row for each way to call."""
    lines = ["| call | the same size, us | another size, us |", "|" + "---|" * 3]
    lines += [f"| {name} | {r['same_us']:.2f} | {r['other_us']:.2f} |" for name, r in results.items()]
    return "\n".join(lines)


def format_streams(results: Mapping[str, Mapping[str, Any]], peers: Sequence[str]) -> str:
    """Return a row for each case and contender."""
    lines = [
        "| stream | engine | first call | first stream | later ones | error | times the best peer |",
        "|" + "---|" * 7,
    ]
    for case, rows in results.items():
        steady = [rows[p]["steady_s"] for p in peers if "steady_s" in rows[p]]
        for name, row in rows.items():
            if "problem" in row:
                lines.append(f"| {case} | {name} | {row['problem']} | | | | |")
                continue
            ratio = f"{min(steady) / row['steady_s']:.2f}" if steady and name == OWN else ""
            cells = [f"{row[k]:.2f} s" for k in ("first_call_s", "first_stream_s", "steady_s")]
            cells += [f"{row['error']:.0e}", ratio]
            lines.append(f"| {' | '.join([case, name, *cells])} |")
    return "\n".join(lines)


def format_fixed(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return a row for each case and size."""
    lines = ["| model | sizes | one program, ms | fixed, ms | fixed / one | error |", "|" + "---|" * 6]
    for case, rows in results.items():
        for row in rows:
            sizes = ", ".join(f"{k} {v}" for k, v in row["sizes"].items())
            cells = [f"{row['one_ms']:.3f}", f"{row['fixed_ms']:.3f}", f"{row['ratio']:.2f}", f"{row['error']:.0e}"]
            lines.append(f"| {' | '.join([case, sizes, *cells])} |")
        first = rows[0]
        both = f"{first['compile_s']:.2f} s", f"{first['fixed_compile_s']:.2f} s"
        lines.append(f"| {case} | first call at the expected sizes | {both[0]} | {both[1]} | | |")
        bytes_of = f"code, bytes ({first['chosen']} kernels in versions)"
        lines.append(f"| {case} | {bytes_of} | {first['code']} | {first['fixed_code']} | | |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = make_parser(__doc__ or "", PEERS)
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="measure the case of this name, or cases whose name contains it"
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--fixed", action="store_true", help="compare one program with a program for each size")
    kind.add_argument("--calls", action="store_true", help="measure the cost of a call of another size")
    kind.add_argument("--memory", action="store_true", help="measure the memory over calls of random sizes")
    number = parser.add_mutually_exclusive_group()
    number.add_argument(
        "--count",
        type=int,
        default=0,
        metavar="N",
        help="number of calls of a stream (200) or for memory (1000), or of sizes (20)",
    )
    number.add_argument(
        "--sizes", nargs="+", metavar="N", help="sizes for --fixed, such as 1 17, or 64x176 for two dimensions"
    )
    options = parse_with(parser, argv, PEERS)
    named = [CASES[options.only]] if options.only in CASES else []
    cases = named or [case for name, case in CASES.items() if options.only in name]
    if not cases or (options.sizes and not options.fixed):
        parser.error("nothing to measure" if not cases else "--sizes needs --fixed")
    try:
        sizes = {case.name: [case.read(text) for text in options.sizes or ()] for case in cases}
    except ValueError as error:
        parser.error(f"--sizes: {error}")
    os.environ["GRAPHC_CACHE"] = "off"  # only compiled code counts
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
    elif options.memory:
        results = {c.name: run_memory(c, max(_FEW + 1, options.count or 1000)) for c in cases}
        text = format_memory(results)
    else:
        results = {c.name: run_stream(c, options.peers, options.count or 200) for c in cases}
        text = format_streams(results, options.peers)
    print(json.dumps(results, indent=1) if options.json else text)


if __name__ == "__main__":
    restart_on_one_thread("benchmarks.sizes")
    sys.exit(main())
