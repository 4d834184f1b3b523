"""``graphc bench --breakdown``: time every step from the model to the steady-state call."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from graphc.cli import console, sources, targets
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.example_arrays import example_arrays, expected_sizes
from graphc.compiler.ready import running_target
from graphc.runtime.call import Executable

STEPS = ("trace", "passes", "codegen", "load", "first", "steady")
"""Tracing or reading the file; graph passes and lowering; schedule, LLVM text and object code; linking; the first
call; the median of the calls after it."""
ALL = "all"
_PARTS = {"passes": ("optimized", "lowered"), "codegen": ("scheduled", "llvm", "object")}


def run(options: argparse.Namespace) -> int:
    """Print the table, or one row of it; ``options`` is the namespace of ``graphc bench``."""
    step_seconds, details, sizes = measure_steps(options)
    if options.json:
        steps = step_seconds if options.breakdown == ALL else {options.breakdown: step_seconds[options.breakdown]}
        console.emit_json({"sizes": sizes, "steps": steps, "stages": details})
        return console.OK
    rows = [[console.with_sizes("at", sizes), ""]] if sizes else []
    for step in STEPS if options.breakdown == ALL else (options.breakdown,):
        rows.append([step, console.seconds_text(step_seconds[step])])
        rows += [
            [f"  {stage}", console.seconds_text(details[stage])] for stage in _PARTS.get(step, ()) if stage in details
        ]
    console.emit(console.table(rows))
    return console.OK


def measure_steps(options: argparse.Namespace) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    """Measure the seconds of each step in STEPS, and of each compiler stage, at sizes of named dimensions."""
    source_options = argparse.Namespace(source=options.model, input=options.input, weights=None, train=options.train)
    source = sources.open_source(source_options)
    with targets.compiling():
        stages = source.stages(running_target(options.machine), frozen=True)
        compiled = compile_stages(stages)
        inputs, weights = example_arrays(stages, source.weights)
        start = time.perf_counter()
        program = load_compiled(compiled)
        load = time.perf_counter() - start
    bound = tuple(np.array(weights[spec.path]) for spec in program.bound)
    first, steady = time_calls(program, inputs, bound, options.rounds, options.seconds)
    step_seconds = {"trace": source.seconds}
    for step, stage_names in _PARTS.items():
        step_seconds[step] = sum(stages.seconds.get(stage, 0.0) for stage in stage_names)
    step_seconds |= {"load": load, "first": first, "steady": steady}
    return step_seconds, dict(stages.seconds), expected_sizes(stages)


def time_calls(
    program: Executable, inputs: Sequence[np.ndarray], bound: tuple[np.ndarray, ...], rounds: int, seconds: float
) -> tuple[float, float]:
    """Return the seconds of the first call, and the median of ``rounds`` averages taking about ``seconds`` in all."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        program.run(inputs, bound)
        times.append(time.perf_counter() - start)
    calls = max(1, int(seconds / rounds / max(times[-1], 1e-7)))
    averages = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            program.run(inputs, bound)
        averages.append((time.perf_counter() - start) / calls)
    return times[0], float(np.median(averages))
