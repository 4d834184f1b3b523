"""Weights stored narrow against float32 weights, time and error side by side: ``python -m benchmarks.precision``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence

import graphc
from benchmarks.harness.sweep import (
    OWN,
    Call,
    Result,
    arrays_of,
    difference,
    native_call,
    parse,
    restart_on_one_thread,
    tell,
)
from benchmarks.workloads import WORKLOADS, Spec, Workload
from graphc.compiler.freeze import freeze, freeze_narrow
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph
from graphc.passes.precision import PRECISIONS

_MODELS = ("mlp_b1", "mlp_b64", "minilm_b1_t128", "lstm_b1_t64", "resnet50_b1")
_LAYERS = (
    Workload("layers_4096x4096", lambda nn: nn.Linear(4096, 4096, bias=False), (Spec((1, 4096)),)),
    Workload("layers_768x3072", lambda nn: nn.Linear(768, 3072, bias=False), (Spec((1, 768)),)),
    Workload(
        "layers_768x3072x768", lambda nn: nn.Sequential(nn.Linear(768, 3072), nn.Linear(3072, 768)), (Spec((1, 768)),)
    ),
)
CASES = {row.name: row for row in (*(WORKLOADS[name] for name in _MODELS), *_LAYERS)}


def graphs_of(workload: Workload, precisions: Sequence[str]) -> dict[str, Graph]:
    """Return the workload's model with its weights as constants: as they are, and stored narrow."""
    graphc.manual_seed(0)
    model = workload.build(graphc.nn).eval()
    examples = [graphc.tensor(a) for a in workload.draw_inputs()]
    with graphc.no_grad():
        graph = graphc.trace(model, *examples)
    weights = {name: t.detach().numpy() for name, t in model.state_dict().items()}
    narrow = {p: freeze_narrow(graph, weights, p).graph for p in precisions}
    return {OWN: freeze(graph, weights), **narrow}


def run_case(workload: Workload, precisions: Sequence[str], rounds: int, seconds: float) -> Result:
    """Return one workload: the fastest call in each of several turns; facts are megabytes of constants and errors."""
    inputs = workload.draw_inputs()
    result = Result(workload.name, {})
    stages = {name: Stages(graph) for name, graph in graphs_of(workload, precisions).items()}
    calls = {name: native_call(program, inputs) for name, program in stages.items()}
    expected = arrays_of(calls[OWN]())
    for name, call in calls.items():
        constants = [s for s in stages[name].scheduled.storages if s.cls == "constant"]
        error = difference(arrays_of(call()), expected)
        result.facts[name] = {"MB": sum(s.nbytes for s in constants) / 1e6, "error": error}
    for _ in range(rounds):
        for name, call in calls.items():
            result.rounds_ms.setdefault(name, []).append(1000 * fastest(call, seconds))
    return result


def fastest(call: Call, seconds: float) -> float:
    """Return processor seconds of the fastest of the calls that fit into some seconds: little of it is the machine's
    other work."""
    end = time.perf_counter() + seconds
    best = float("inf")
    while best == float("inf") or time.perf_counter() < end:
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def format_row(result: Result, precisions: Sequence[str]) -> str:
    """Return one line of the table."""
    best = {name: min(times) for name, times in result.rounds_ms.items()}
    cells = [result.name]
    for name in (OWN, *precisions):
        facts = result.facts[name]
        text = f"{best[name]:.3g} ms, {facts['MB']:.3g} MB"
        cells.append(text if name == OWN else f"{text}, {best[OWN] / best[name]:.2f}x, {facts['error']:.1e}")
    return "| " + " | ".join(cells) + " |"


def report(options: argparse.Namespace, results: Mapping[str, Result]) -> None:
    """Print the results as JSON or as a table."""
    if options.json:
        print(json.dumps({"rows": [vars(r) for r in results.values()]}, indent=1))
        return
    print(
        f"One core, the fastest call of {options.rounds} rounds: processor milliseconds, megabytes of constants, "
        "times as fast as f32, largest error over the largest magnitude.\n"
    )
    print(f"| workload | f32 | {' | '.join(options.peers)} |\n" + "|---" * (len(options.peers) + 2) + "|")
    for result in results.values():
        print(format_row(result, options.peers))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = parse(argv, __doc__ or "", list(CASES), tuple(PRECISIONS))
    results: dict[str, Result] = {}
    for name in options.cases:
        tell(name)
        results[name] = run_case(CASES[name], options.peers, options.rounds, options.seconds)
    report(options, results)
    return 0


if __name__ == "__main__":
    restart_on_one_thread("benchmarks.precision")
    sys.exit(main())
