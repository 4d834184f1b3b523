"""Public models through ``torch.compile(backend="graphc")``: ``python -m benchmarks.hub [--only TEXT]``.

Each model runs in a process of its own, with its own empty caches: one that crashes or takes too long loses its row
only.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness.process import call_in_child, make_environment, pin
from benchmarks.harness.results import OWN, Result, arrays_of, cell, difference, format_problems, format_table
from benchmarks.harness.sweep import limited_torch, make_parser, print_json, restart
from benchmarks.harness.timing import Call, Makers, find_library, measure
from graphc.base.installation import group_command

torch: Any = find_library("torch")
hub_models: Any = find_library("benchmarks.models.hub")
"""None where torch is not installed."""
COLLECTIONS = ("torchvision", "timm", "transformers")
EAGER, INDUCTOR = "eager", "inductor"
PEERS = (EAGER, INDUCTOR)
TOLERANCE = 1e-4
"""Relative to the largest value of a result."""
MOST_ON_TORCH = 0.02
"""Share of the nodes and of the time; a model with more on PyTorch counts as failed."""
FIRST_CALL = 0.2
"""Allowed ratio of graphc's first call to Inductor's."""


def agrees(result: Result) -> bool:
    """Return whether graphc agrees with eager PyTorch: within TOLERANCE of f32 or of f64, or nearer to f64 than eager's
    f32 if that is inexact itself; and with little work left on PyTorch."""
    error = result.errors.get(OWN)
    if error is None or torch_share(result) > MOST_ON_TORCH:
        return False
    exact, eager = result.facts.get("f64_error", math.inf), result.facts.get("f64_error_eager", 0.0)
    return error <= TOLERANCE or exact <= max(TOLERANCE, eager)


def torch_share(result: Result) -> float:
    """Return PyTorch's share of a model: the larger of its shares of the nodes and of the time."""
    nodes = result.facts.get("nodes", {})
    total = sum(nodes.values())
    return max(result.facts.get("torch_share", 0.0), nodes.get("torch", 0) / total if total else 0.0)


def first_ratio(result: Result) -> float | None:
    """Return the ratio of graphc's first call to Inductor's."""
    first = result.facts.get("first_s", {})
    return first[OWN] / first[INDUCTOR] if OWN in first and INDUCTOR in first else None


# ---- one model, in its own process

_WITHOUT_WORK = {
    *("alias", "as_strided", "contiguous", "detach", "empty", "empty_strided", "expand"),
    *("lift_fresh", "numpy_T", "permute", "reshape", "resolve_conj", "resolve_neg", "select"),
    *("slice", "t", "to", "transpose", "unsqueeze", "view"),
}
"""Operators that look at memory in another way, or take some."""


class Counted:
    """A backend that counts the graphs which Dynamo gives it and their nodes."""

    def __init__(self, backend: str, options: Mapping[str, str]):
        self._backend = torch._dynamo.lookup_backend(backend)
        self._options = {"options": dict(options)} if options else {}
        self.graphs = self.nodes = 0

    def __call__(self, module: Any, examples: Any, **named: Any) -> Any:
        """Call the backend and count its work."""
        self.graphs += 1
        self.nodes += sum(node.op.startswith("call_") for node in module.graph.nodes)
        return self._backend(module, examples, **named, **self._options)


class Contenders:
    """The ways to call a model with one set of arguments."""

    def __init__(self, key: str, weights: str):
        """Load the model; ``weights`` is the option of graphc's backend."""
        self.weights = weights
        self.module, self.args, self.kwargs = hub_models.MODELS[key].build()
        self.result = Result(key, {"first_s": {}, "weights": weights})

    def eager(self) -> Call:
        """Return PyTorch's contender, without a compiler."""
        return lambda: self.module(*self.args, **self.kwargs)

    def compiled(self, name: str) -> Call:
        """Return a backend of ``torch.compile``, called once, which is timed; its own preparations are not."""
        torch.compile(lambda x: x + 1, backend=name)(torch.ones(2))
        backend = Counted(name, {"weights": self.weights} if name == OWN else {})
        function = torch.compile(self.module, backend=backend, dynamic=False)
        start = time.perf_counter()
        function(*self.args, **self.kwargs)
        facts = self.result.facts
        facts["first_s"][name] = time.perf_counter() - start
        if name == OWN:
            count, share = on_torch(lambda: function(*self.args, **self.kwargs))
            facts |= {"graphs": backend.graphs, "nodes": {OWN: backend.nodes, "torch": count}, "torch_share": share}
        return lambda: function(*self.args, **self.kwargs)

    def makers(self, peers: Sequence[str]) -> Makers:
        """Return functions that build each contender, by name; graphc follows eager, the reference."""
        compiled = {name: partial(self.compiled, name) for name in (OWN, INDUCTOR) if name == OWN or name in peers}
        return {EAGER: self.eager, **compiled}

    def compare_double(self) -> None:
        """Compare graphc and eager with eager in f64, where both differ in f32."""
        facts = self.result.facts
        own, plain = arrays_of(self._call(OWN)), arrays_of(self._call(EAGER))
        self.module.double()
        args, kwargs = double((self.args, self.kwargs))
        exact = arrays_of(self.module(*args, **kwargs))
        facts |= {"f64_error": difference(own, exact), "f64_error_eager": difference(plain, exact)}

    def _call(self, name: str) -> Any:
        if name == EAGER:
            return self.eager()()
        return torch.compile(self.module, backend=name, dynamic=False)(*self.args, **self.kwargs)


def on_torch(call: Call) -> tuple[int, float]:
    """Return how many PyTorch operators compute something in a call, and their share of its time. A profiler watches
    the call, so that operators outside of Dynamo's graphs count like those that a backend hands back."""
    call()
    with torch.autograd.profiler.profile() as watched:
        start = time.perf_counter()
        call()
        seconds = time.perf_counter() - start
    return part_of(watched.function_events, seconds)


def part_of(events: Iterable[Any], seconds: float) -> tuple[int, float]:
    """Return how many of a profiler's events are operators that compute something, without nested ones, and their share
    of ``seconds``."""
    work = [e for e in events if _is_work(e.name) and not _is_part(e)]
    return len(work), min(1.0, 1e-6 * sum(e.cpu_time_total for e in work) / seconds)


def _is_work(name: str) -> bool:
    return name.startswith("aten::") and name.removeprefix("aten::") not in _WITHOUT_WORK


def _is_part(event: Any) -> bool:
    """Return whether an event belongs to a counted operator."""
    parent = event.cpu_parent
    while parent is not None and not _is_work(parent.name):
        parent = parent.cpu_parent
    return parent is not None


def double(values: Any) -> Any:
    """Return nested arguments with every floating-point tensor in f64."""

    def convert(value: Any) -> Any:
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    return torch.utils._pytree.tree_map(convert, values)


def measure_model(key: str, peers: Sequence[str], rounds: int, seconds: float, weights: str = "live") -> dict[str, Any]:
    limited_torch()
    contenders = Contenders(key, weights)
    result = contenders.result
    with torch.no_grad():
        measure(result, contenders.makers(peers), rounds, seconds)
        if result.errors.get(OWN, 0.0) > TOLERANCE:
            contenders.compare_double()
    return vars(result)


# ---- all models


@dataclass(frozen=True)
class Command:
    """A command that measures models, each by a function in a process of its own, and prints a table of them."""

    module: str
    doc: str | None
    models: str
    """Name of the models' dictionary in ``benchmarks.models.hub``."""
    function: str
    """``package.module:function`` that measures one."""
    agrees: Callable[[Result], bool]
    format_rows: Callable[[Sequence[Result]], str]
    timed: bool = True
    """Whether there are times of calls, and options for them."""
    exempt: Callable[[Result], bool] = lambda result: False
    """Says of a model that its failure is not graphc's."""

    def parse(self, argv: Sequence[str] | None, models: Mapping[str, Any]) -> argparse.Namespace:
        """Parse the options; ``keys`` are the selected models."""
        parser = make_parser(self.module, self.doc, PEERS)
        add = parser.add_argument
        add("--weights", choices=("live", "frozen"), default="live", help="weights option of the backend")
        add("--agreement", action="store_true", help="check agreement and graphc's first call, without other times")
        add("--only", default="", metavar="TEXT", help="measure only models whose name contains this")
        add("--collection", choices=COLLECTIONS, help="measure only models of this collection")
        add("--limit", type=float, default=900, metavar="SECONDS", help="time limit for one model in seconds")
        kept = "file of JSON lines, one per model: keep its rows from runs with the same options, add missing ones"
        add("--results", type=Path, metavar="FILE", help=kept)
        options = parser.parse_args(argv)
        if options.agreement or not self.timed:
            options.peers, options.rounds = [EAGER], 0
        options.keys = [k for k in models if options.collection in (None, k.partition("/")[0]) and options.only in k]
        if not options.keys:
            parser.error("nothing to measure")
        return options

    def run_all(self, options: argparse.Namespace) -> list[Result]:
        """Return the rows of the models: those in the file of results, and new measurements, which are added to it."""
        rows = read_results(options.results)
        for key in progress([key for key in options.keys if key not in rows]):
            rows[key] = self.run_model(key, options)
            if options.results is not None:
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(vars(rows[key])) + "\n")
        return [rows[key] for key in options.keys]

    def run_model(self, key: str, options: argparse.Namespace) -> Result:
        """Return one model's row."""
        with tempfile.TemporaryDirectory(prefix="graphc-hub-") as folder:
            environment = make_environment(1, Path(folder)) | {"HF_HUB_OFFLINE": "1"}
            arguments = {name: getattr(options, name) for name in ("peers", "rounds", "seconds", "weights")}
            answer = call_in_child(self.function, environment, options.limit, key=key, **arguments)
        return Result(key, problems={OWN: answer["error"]}) if "error" in answer else Result(**answer)

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run the models; the status is 1 where one does not agree."""
        if argv is None:
            restart(self.module)
        if hub_models is None:
            print(f"torch is not installed: {group_command('hub')}", file=sys.stderr)
            return 2
        options = self.parse(argv, getattr(hub_models, self.models))
        pin(1)
        results = self.run_all(options)
        if options.json:
            print_json(results, agree=[r.name for r in results if self.agrees(r)])
        else:
            print(self.format_rows(results))
        return 0 if all(self.agrees(r) or self.exempt(r) for r in results) else 1


def read_results(path: Path | None) -> dict[str, Result]:
    """Return the rows of a file of JSON lines; the later one of a model counts."""
    if path is None or not path.exists():
        return {}
    rows = [Result(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row.name: row for row in rows}


def progress(keys: Sequence[str]) -> Iterable[str]:
    """Return the keys, with a bar on stderr where tqdm is installed."""
    tqdm = find_library("tqdm")
    return keys if tqdm is None else tqdm.tqdm(keys, unit="model", file=sys.stderr)


# ---- printing

COLUMNS = ("model", "error", "graphs", "nodes graphc", "torch", "share torch", OWN, *PEERS, "vs eager", "vs inductor")
FIRST = ("first s", "inductor", "ratio")


def format_rows(results: Sequence[Result]) -> str:
    lines = format_table([*COLUMNS, *FIRST], map(format_row, results))
    return "\n".join([lines, "", *summary(results), *format_problems(results)])


def format_row(result: Result) -> list[str]:
    facts = result.facts
    nodes, first = facts.get("nodes", {}), facts.get("first_s", {})
    error = result.errors.get(OWN)
    shown = "-" if error is None else f"{error:.1e}{'' if agrees(result) else '!'}"
    if "f64_error" in facts:
        shown += f" (f64: {facts['f64_error']:.1e}, eager {facts['f64_error_eager']:.1e})"
    return [
        *(result.name, shown, cell(facts.get("graphs"), "d")),
        *(cell(nodes.get(where), "d") for where in (OWN, "torch")),
        cell(torch_share(result) if nodes else None, ".1%"),
        *(cell(result.ms(name), ".3g") for name in (OWN, *PEERS)),
        *(cell(result.over(peer), ".2f") for peer in PEERS),
        *(cell(first.get(name), ".2f") for name in (OWN, INDUCTOR)),
        cell(first_ratio(result), ".2f"),
    ]


def summary(results: Sequence[Result]) -> list[str]:
    """Count and geometric means."""
    lines = [f"{sum(map(agrees, results))} of {len(results)} agree", *ratios(results)]
    firsts = {r.name: ratio for r in results if (ratio := first_ratio(r)) is not None}
    if firsts:
        slow = [name for name, ratio in firsts.items() if ratio > FIRST_CALL]
        lines.append(
            f"first call over Inductor's: geometric mean {statistics.geometric_mean(firsts.values()):.2f}; "
            f"above {FIRST_CALL}: {', '.join(slow) or 'none'}"
        )
    return lines


def ratios(results: Sequence[Result]) -> list[str]:
    """Return each peer's geometric mean, and before whom it is."""
    lines = []
    for peer in PEERS:
        by_name = {r.name: ratio for r in results if (ratio := r.over(peer)) is not None}
        if by_name:
            behind = [name for name, ratio in by_name.items() if ratio < 1]
            lines.append(
                f"{peer}: geometric mean of its time over graphc's {statistics.geometric_mean(by_name.values()):.2f} "
                f"over {len(by_name)}; below 1: {', '.join(behind) or 'none'}"
            )
    return lines


HUB = Command("benchmarks.hub", __doc__, "MODELS", "benchmarks.hub:measure_model", agrees, format_rows)

if __name__ == "__main__":
    sys.exit(HUB.main())
