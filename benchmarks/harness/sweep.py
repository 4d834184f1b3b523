"""The runner of sweeps: cases with contenders of one process, called in turns, and the command that prints them."""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness.process import THREADS, pin
from benchmarks.harness.results import OWN, Result, format_results
from benchmarks.harness.timing import Call, Clock, Makers, measure
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.native_call import native
from graphc.compiler.profile import measure_machine
from graphc.compiler.stages import Stages
from graphc.runtime.profile import copy_bandwidth

# ---- contenders


def limited_torch() -> ModuleType:
    """Return torch, limited to the threads of this process; raises ImportError where it is not installed."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(thread_count())
    return torch


def limited_jax() -> ModuleType:
    """Return jax with f64, limited to one thread, whose calls return when they are done; raises ImportError where it is
    not installed."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    jax = importlib.import_module("jax")  # reads the variable when it is loaded
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    return jax


def thread_count() -> int:
    """Return the number of threads to which ``restart`` has limited this process."""
    return int(os.environ.get(THREADS[0], "1"))


def native_call(stages: Stages, inputs: Sequence[np.ndarray]) -> Call:
    """Return the program of a compile as a loaded model calls it, with arrays for the results."""
    program = load_compiled(compile_stages(stages))
    out = program.run(inputs)
    call = native(program, (), lambda *arrays, out: program.run(arrays, (), out), list)
    return lambda: call(*inputs, out=out)


@functools.cache
def copy_seconds(nbytes: int) -> float:
    """Return the seconds to move ``nbytes``, read and written together, by copying a block of half the size, so that
    data that a cache holds between calls of a kernel stay there for the copy too."""
    half = max(64, nbytes // 2)
    return 2 * half / copy_bandwidth(half)


def add_floor(result: Result, nbytes: int, flops: int, double: bool = False) -> None:
    """Add to the facts the speed of graphc, and the share of the least time that one core needs to move the bytes and
    to do the operations."""
    result.facts |= {"flops": flops, "bytes": nbytes}
    if (ms := result.ms(OWN)) is not None:
        floor = max(copy_seconds(nbytes), flops / (measure_machine().flops / (2 if double else 1)))
        bound = "memory" if copy_seconds(nbytes) >= floor else "peak"
        result.facts |= {"GFLOP/s": f"{flops / ms / 1e6:.1f}", "of floor": f"{1e3 * floor / ms:.0%}", "bound": bound}


def fill(shape: Sequence[int], seed: int, dtype: Any = np.float32) -> np.ndarray:
    """Return normal numbers in an array of this shape."""
    return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(dtype)


# ---- command line


def restart(module: str, threads: int = 1, variables: Mapping[str, str] | None = None) -> None:
    """Start the program again with every library held to some threads, which they read from the environment when they
    are loaded, and with other variables; do nothing the second time."""
    settings = {**dict.fromkeys(THREADS, str(threads)), **(variables or {})}
    if any(os.environ.get(name) != value for name, value in settings.items()):
        os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], {**os.environ, **settings})


def pick(choices: Sequence[str]) -> Callable[[str], list[str]]:
    """Return a parser of comma-separated names out of `choices`."""

    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in choices]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(choices)}")
        return names

    return parse


def make_parser(module: str, doc: str | None, peers: Sequence[str] = (), **defaults: Any) -> argparse.ArgumentParser:
    """Return the options that every command has; ``defaults`` of rounds and seconds."""
    parser = argparse.ArgumentParser(f"python -m {module}", description=(doc or "").partition("\n\n")[0])
    if peers:
        parser.add_argument("--peers", type=pick(peers), default=list(peers), metavar=",".join(peers))
    rounds, seconds = defaults.get("rounds", 5), defaults.get("seconds", 0.1)
    parser.add_argument("--rounds", type=int, default=rounds, metavar="R", help="number of rounds")
    parser.add_argument("--seconds", type=float, default=seconds, help="length of one contender's turn in a round")
    parser.add_argument("--json", action="store_true", help="print all measurements as JSON")
    return parser


def select(
    parser: argparse.ArgumentParser, names: Sequence[str], argv: Sequence[str] | None, default: Sequence[str] = ()
) -> argparse.Namespace:
    """Parse the options, and as ``cases`` the names that are given without an option, or contain ``--only``, or are the
    default (all); end the command with an error where there are none."""
    among = ", ".join(names[:50]).replace("%", "%%")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"cases, among {among}{' ...' * (len(names) > 50)}")
    parser.add_argument("--only", default="", metavar="TEXT", help="measure only cases whose name contains this")
    options = parser.parse_args(argv)
    unknown = [name for name in options.cases if name not in names]
    offered = names if options.only else default or names
    options.cases = options.cases or [name for name in offered if options.only in name]
    if unknown or not options.cases or options.rounds < 1:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(names)}" if unknown else "nothing to measure")
    return options


def tell(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Sweep:
    """A command: cases, each with contenders of this process that are called in turns on pinned cores."""

    module: str
    doc: str | None
    cases: Mapping[str, Any]
    peers: Sequence[str]
    """Contenders other than graphc's, which options can select."""
    makers: Callable[[Any, Result], Makers] | None = None
    """Function of a case that returns its contenders, graphc's and all peers'; they may add facts to the result. By
    default they are the case itself, or its methods of these names."""
    columns: Sequence[str] = ()
    """Facts that are printed."""
    finish: Callable[[Any, Result], None] = lambda case, result: None
    """Adds facts after the case was timed."""
    own: Sequence[str] = (OWN,)
    """Contenders that are always measured."""
    rounds: int = 5
    seconds: float = 0.1
    warm: int = 0
    """Calls of each contender before any is timed."""
    unit_ms: float = 1.0
    clock: Clock = time.perf_counter
    compare: bool = True
    """Whether results of contenders are compared: not where they draw other weights, or signs are free."""
    notes: Callable[[Sequence[Result]], Sequence[str]] = lambda results: ()
    """Lines below the table."""
    page: Path | None = None
    """Page of the documentation that holds the table."""

    def run_case(self, name: str, peers: Sequence[str], rounds: int, seconds: float) -> Result:
        """Return one case, measured with some of the peers."""
        case, result = self.cases[name], Result(name)
        names = [*self.own, *(name for name in self.peers if name in peers)]
        if self.makers is not None:
            makers = self.makers(case, result)
        else:
            makers = case if isinstance(case, dict) else {n: getattr(case, n) for n in names}
        makers = {n: make for n, make in makers.items() if n in names}
        measure(result, makers, rounds, seconds, self.clock, self.warm, self.compare)
        self.finish(case, result)
        return result

    def main(self, argv: Sequence[str] | None = None) -> int:
        parser = make_parser(self.module, self.doc, self.peers, rounds=self.rounds, seconds=self.seconds)
        if self.page:
            parser.add_argument("--write", action="store_true", help=f"write the table into docs/{self.page.name}")
        parser.add_argument("--threads", type=int, default=1, metavar="N", help="number of threads (default: 1)")
        options = select(parser, list(self.cases), argv)
        if argv is None:
            restart(self.module, options.threads)
        pin(options.threads)
        results, peers = [], getattr(options, "peers", ())
        for name in options.cases:
            tell(name)
            results.append(self.run_case(name, peers, options.rounds, options.seconds))
        if options.json:
            print_json(results)
            return 0
        unit, names = "Milliseconds" if self.unit_ms == 1 else "Microseconds", [*self.own, *peers]
        note = (
            f"{unit} per call, {options.threads} thread(s) of {platform.machine()}, medians of {options.rounds} rounds."
        )
        text = f"{note}\n\n{format_results(results, names, self.columns, self.unit_ms)}"
        print("\n".join([text, *self.notes(results)]))
        if self.page and options.write:
            write_table(self.page, self.module, text)
        return 0


def write_table(page: Path, module: str, text: str) -> None:
    """Replace what a page of the documentation says between the comments ``table of`` the module and ``end``."""
    before, begin, rest = page.read_text("utf-8").partition(f"<!-- table of {module} -->\n")
    page.write_text(f"{before}{begin}{text}\n<!-- end -->{rest.partition('<!-- end -->')[2]}", "utf-8")


def print_json(results: Sequence[Result], **facts: Any) -> None:
    """Print the results and facts about all of them as JSON."""
    machine = {"cpu": platform.processor(), "threads": thread_count()}
    json.dump({"machine": machine, **facts, "rows": [r.as_json() for r in results]}, sys.stdout, indent=1)
    print()
