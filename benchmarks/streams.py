"""Streams beside ONNX Runtime and C loops written by hand: ``python -m benchmarks.streams [NET...] [--json]``.

A net of sequences becomes a step with states by ``graphc.stream``. Its library is called from C in a loop. The peers
are ONNX Runtime (one thread, bound inputs and outputs or a plain call, whichever is faster), which gets the states of
the same step as inputs and outputs and shifts histories, and, for the amplifiers, ``streams_peer.c``, compiled by
``cc`` with each of some options, of which the fastest counts. All outputs are compared with the model's on the
sequence. Times are the least of alternating rounds; ``--ticks N`` calls each library N times and prints its memory.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.results import difference, format_table
from benchmarks.harness.timing import Call, find_library
from benchmarks.models.streams import NETS, LstmAmplifier, Net
from benchmarks.peers.onnx_calls import onnx_session
from graphc.c_library.build import Library
from graphc.func import functional_call
from graphc.streams import plan
from graphc.streams.stream import Stream

CALLS, ROUNDS, TICKS = 20_000, 5, 64
"""Calls of a round, rounds, and ticks of the compared sequence (more where a tick is few samples)."""
TOLERANCE = 1e-4
_OWN, _ONNX, _LOOP = "graphc", "onnxruntime", "C loop"
_FLAGS = ("-O3", "-march=native", "-Wall")
OPTIONS = (
    *product(("-ffast-math",), ("-DSHORT_TANH", "-DLIBRARY_TANH"), ("-mprefer-vector-width=512", "-mtune=native")),
    ("-DSHORT_TANH",),
)
"""Options for the loop by hand, which are tried."""
_HERE = Path(__file__).parent
Figures = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    parser.add_argument("nets", nargs="*", metavar="NET", help=f"of {', '.join(NETS)} (default: all)")
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--ticks", type=int, default=0, metavar="N", help="run N ticks, and print memory")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.nets if name not in NETS]:
        parser.error(f"unknown net {unknown[0]!r}: choose from {', '.join(NETS)}")
    if shutil.which("cc") is None:
        print("a C compiler (cc) is needed", file=sys.stderr)
        return 2
    figures = []
    for name in options.nets or NETS:
        for step in NETS[name].steps:
            with tempfile.TemporaryDirectory(prefix="graphc-streams-") as folder:
                case = Case(name, NETS[name], step, Path(folder))
                rows = case.measure(options.rounds, options.calls) if not options.ticks else case.endure(options.ticks)
                figures += rows
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        columns = list(dict.fromkeys(key for row in figures for key in row))
        print(format_table(columns, [[_cell(row.get(key)) for key in columns] for row in figures]))
    return 0


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1e}" if abs(value) < 1e-3 else f"{value:.3g}" if value < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


class Case:
    """A net with a step, and the sequence that all contenders compute."""

    def __init__(self, name: str, net: Net, step: int, folder: Path):
        self.name, self.net, self.step, self.folder = name, net, step, folder
        graphc.manual_seed(0)
        self.model = net.make().eval()
        self.stream = self.streamed()
        self.ticks = max(TICKS, 4096 // step) if net.rate > 1000 else TICKS
        shape = [self.ticks * step if i == net.dim else n for i, n in enumerate(net.shape)]
        self.sequence = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
        expected = self.model(graphc.tensor(self.sequence)).detach().numpy()
        axis = self.stream.axes[0]
        assert axis is not None and self.stream.delay == 0
        self.blocks, self.expected = self._blocks(self.sequence, net.dim), self._blocks(expected, axis)

    def _blocks(self, array: np.ndarray, axis: int) -> list[np.ndarray]:
        return [np.ascontiguousarray(block) for block in np.split(array, self.ticks, axis)]

    def streamed(self) -> Stream:
        """Return the stream of the model."""
        stream = graphc.stream(self.model, graphc.zeros(*self.net.shape), dim=self.net.dim, step=self.step)
        assert isinstance(stream, Stream)
        return stream

    # ---- contenders in C

    def library(self) -> Library:
        """Build the library of a tick in the folder, and prove it."""
        kinds = "o", "h"
        path = self.folder / "net.o"
        return graphc.build_library(
            self.stream.module, *self.stream.examples(), path=path, emit=kinds, name="net", realtime=True
        )

    def own(self) -> tuple[Path, Library]:
        """Return the program that calls the library."""
        library = self.library()
        return self._program("own", "net.o"), library

    def loops(self, options: Sequence[Sequence[str]]) -> list[Path]:
        """Return a program with the loop by hand for each of ``options``; none for a net without such a loop."""
        if not hasattr(self.model, "macros"):
            return []
        (self.folder / "weights").write_bytes(self.model.packed().tobytes())
        macros = {**self.model.macros, "BLOCK": self.step, "PEER": f'"{_HERE / "streams_peer.c"}"'}
        defined = [f"-D{name}={value}" for name, value in macros.items()]
        return [self._program(f"loop{i}", *defined, *chosen) for i, chosen in enumerate(options)]

    def _program(self, name: str, *arguments: str) -> Path:
        sizes = f"-DINPUTS={self.blocks[0].size}", f"-DOUTPUTS={self.expected[0].size}"
        np.concatenate([b.reshape(-1) for b in self.blocks]).tofile(self.folder / "inputs")
        source = _HERE / "streams.c"
        command = ["cc", *_FLAGS, "-I.", *sizes, str(source), *arguments, "-lm", "-Wl,-z,now", "-o", name]
        subprocess.run(command, check=True, cwd=self.folder)
        return self.folder / name

    def run(self, program: Path, *numbers: int) -> Figures:
        """Run a program, and compare its outputs with the model's."""
        command = [str(program), str(self.ticks), *map(str, numbers)]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=self.folder).stdout)
        outputs = np.fromfile(self.folder / "outputs", np.float32).reshape(-1, *self.expected[0].shape)
        return {**told, "error": self.compared(list(outputs))}

    def compared(self, outputs: Sequence[np.ndarray]) -> float:
        """Return the difference from the model. Raise AssertionError for a large one."""
        error = difference([np.stack(outputs)], [np.stack(self.expected)])
        if error > TOLERANCE:
            raise AssertionError(f"{self.name}: outputs differ by {error:.1e}")
        return error

    # ---- ONNX Runtime

    def onnx_session(self) -> tuple[Any, dict[str, np.ndarray]]:
        """Return a session of a tick with states as inputs and outputs, and the first states."""
        function, states = explicit_lstm(self.model) if isinstance(self.model, LstmAmplifier) else self.explicit()
        path = self.folder / "net.onnx"
        graphc.export(function, graphc.tensor(self.blocks[0]), *map(graphc.tensor, states), path=path)
        session = onnx_session(path)
        return session, dict(zip([v.name for v in session.get_inputs()][1:], states, strict=True))

    def explicit(self) -> tuple[Callable[..., Any], list[np.ndarray]]:
        """Return a tick as a function of the samples and the states, whose histories are shifted, and the first
        states."""
        ring_cost, plan._RING_COST = plan._RING_COST, plan.LONG
        try:
            module = self.streamed().module
        finally:
            plan._RING_COST = ring_cost
        names = [f"state_{name}" for name in module.states]

        def tick(x: Any, *states: Any) -> Any:
            new = {name: state.clone() for name, state in zip(names, states, strict=True)}
            return (functional_call(module, new, (x,)), *new.values())

        return tick, [getattr(module, name).numpy().copy() for name in names]

    def onnx_calls(self) -> dict[str, Call]:
        """Return calls of a tick with bound arrays, and with plain ones, once their outputs were compared."""
        session, states = self.onnx_session()
        inputs, outputs = ([v.name for v in ports] for ports in (session.get_inputs(), session.get_outputs()))
        now, found = states, []
        for block in self.blocks:
            result = session.run(None, {inputs[0]: block, **now})
            found.append(result[0])
            now = dict(zip(states, result[1:], strict=True))
        self.compared(found)
        feeds = {inputs[0]: self.blocks[0], **states}
        binding, value_of = session.io_binding(), find_library("onnxruntime").OrtValue.ortvalue_from_numpy
        for name, array in feeds.items():
            binding.bind_ortvalue_input(name, value_of(array))
        for name, array in zip(outputs, session.run(None, feeds), strict=True):
            binding.bind_ortvalue_output(name, value_of(array))
        return {"bound": lambda: session.run_with_iobinding(binding), "plain": lambda: session.run(None, feeds)}

    # ---- results

    def measure(self, rounds: int, calls: int) -> list[Figures]:
        """Return a row for each contender, timed in alternating rounds."""
        program, library = self.own()
        contenders = {(_OWN, ""): partial(self.run, program, calls)}
        for options, loop in zip(OPTIONS, self.loops(OPTIONS), strict=False):
            contenders[_LOOP, " ".join(options)] = partial(self.run, loop, calls)
        if find_library("onnxruntime"):
            for how, call in self.onnx_calls().items():
                contenders[_ONNX, how] = partial(time_call, call, calls // 10)
        times: dict[tuple[str, str], list[Figures]] = {who: [] for who in contenders}
        for _ in range(rounds):
            for who, run in contenders.items():
                times[who].append(run())
        (proof,) = library.realtime.values()
        rows: dict[str, Figures] = {}
        for (by, how), rounds_of in times.items():
            p50, p999 = (min(r[key] for r in rounds_of) for key in ("p50", "p999"))
            if by not in rows or p50 < rows[by]["p50 us"]:
                speed = 1e6 * self.step / self.net.rate / p50
                rows[by] = {"net": self.name, "step": self.step, "by": by, "p50 us": p50, "p99.9 us": p999}
                rows[by] |= {"times real time": speed, "how": how}
        facts = {"instructions": proof.instructions, "stack B": proof.stack_bytes, "context B": library.context_bytes}
        rows[_OWN] |= facts
        for row in rows.values():
            row["/ graphc"] = row["p50 us"] / rows[_OWN]["p50 us"]
        return [*rows.values()]

    def endure(self, ticks: int) -> list[Figures]:
        """Call the library many times; return its resident memory before and after, in bytes, the number of outputs
        that are not finite, and of those that differ once the context was reset after NaN."""
        program, _ = self.own()
        spoiled = self.run(program, 0)
        return [{"net": self.name, "step": self.step, **spoiled, **self.run(program, 0, ticks)}]


def explicit_lstm(model: LstmAmplifier) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """Return the amplifier with the states of its LSTM as inputs and outputs, and the first states."""

    def tick(x: Any, hidden: Any, cell: Any) -> Any:
        rows, after = model.lstm(x, (hidden, cell))
        return (model.linear(rows) + x, *after)

    return tick, [np.zeros((1, 1, model.hidden), np.float32) for _ in range(2)]


def time_call(call: Call, calls: int) -> Figures:
    """Return microseconds of a call from Python."""
    times = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1000)
    return {"p50": float(np.percentile(times, 50)), "p999": float(np.percentile(times, 99.9))}


if __name__ == "__main__":
    sys.exit(main())
