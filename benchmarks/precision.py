"""Weights stored narrow against float32 weights, time and error side by side: ``python -m benchmarks.precision``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

import graphc
from benchmarks.sweep import OWN, Call, Result, difference, measure, native_call, parse, restart_on_one_thread, tell
from benchmarks.workloads import WORKLOADS, Workload
from graphc.compiler.freeze import freeze, freeze_narrow
from graphc.compiler.stages import Stages
from graphc.ir.graph import Graph
from graphc.passes.precision import PRECISIONS

CASES = ("mlp_b1", "mlp_b64", "minilm_b1_t128", "lstm_b1_t64", "resnet50_b1")


def graphs_of(workload: Workload, precisions: Sequence[str]) -> dict[str, Graph]:
    """The workload's model with its weights as constants: as they are, and stored narrow."""
    graphc.manual_seed(0)
    model = workload.build(graphc.nn).eval()
    examples = [graphc.tensor(a) for a in workload.draw_inputs()]
    with graphc.no_grad():
        graph = graphc.trace(model, *examples)
    weights = {name: t.detach().numpy() for name, t in model.state_dict().items()}
    narrow = {p: freeze_narrow(graph, weights, p).graph for p in precisions}
    return {OWN: freeze(graph, weights), **narrow}


def run_case(workload: Workload, precisions: Sequence[str], rounds: int, seconds: float) -> Result:
    """One workload, measured in turns; its facts are megabytes of constants and errors, by precision."""
    inputs = workload.draw_inputs()
    stages = {name: Stages(graph) for name, graph in graphs_of(workload, precisions).items()}
    calls: dict[str, Call] = {}

    def make(name: str) -> Call:
        calls[name] = native_call(stages[name], inputs)
        return calls[name]

    result = measure(Result(workload.name, {}), {n: partial(make, n) for n in stages}, rounds, seconds)
    expected = [np.array(a, np.float64) for a in calls[OWN]()]
    for name, call in calls.items():
        constants = [s for s in stages[name].scheduled.storages if s.cls == "constant"]
        error = difference([np.array(a, np.float64) for a in call()], expected)
        result.facts[name] = {"MB": sum(s.nbytes for s in constants) / 1e6, "error": error}
    return result


def format_row(result: Result, precisions: Sequence[str]) -> str:
    """One line of the table."""
    base = result.ms(OWN)
    cells = [result.name]
    for name in (OWN, *precisions):
        ms, facts = result.ms(name), result.facts.get(name)
        if ms is None or base is None or facts is None:
            cells.append(result.problems.get(name, "-"))
            continue
        text = f"{ms:.4g} ms, {facts['MB']:.3g} MB"
        cells.append(text if name == OWN else f"{text}, {base / ms:.2f}x, {facts['error']:.1e}")
    return "| " + " | ".join(cells) + " |"


def report(options: argparse.Namespace, results: Mapping[str, Result]) -> None:
    """Prints the results as JSON or as a table."""
    if options.json:
        rows = [{**vars(r), "ms": {n: r.ms(n) for n in r.rounds_ms}} for r in results.values()]
        print(json.dumps({"rows": rows}, indent=1))
        return
    print(
        f"One core; medians of {options.rounds} rounds: milliseconds per call, megabytes of constants, times as fast as "
        "f32, largest error over the largest magnitude of the output.\n"
    )
    print(f"| workload | f32 | {' | '.join(options.peers)} |\n" + "|---" * (len(options.peers) + 2) + "|")
    for result in results.values():
        print(format_row(result, options.peers))


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    options = parse(argv, __doc__ or "", CASES, tuple(PRECISIONS))
    results: dict[str, Result] = {}
    for name in options.cases:
        tell(name)
        results[name] = run_case(WORKLOADS[name], options.peers, options.rounds, options.seconds)
    report(options, results)
    return 0


if __name__ == "__main__":
    restart_on_one_thread("benchmarks.precision")
    sys.exit(main())
