"""The net of ONNX graphs with open sizes: one compiled program against ONNX Runtime at five sets of sizes.

``python -m tools.nets.onnx_sizes --count 2000 --seed 1 --results onnx_sizes.jsonl``. Outcomes of this net alone:
``branched``: right, by one program for each side of an order of sizes, as ``Min`` and slices ask for; ``specialised``:
right, by more programs for another reason; ``dropped``: ONNX Runtime refuses the graph.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

import graphc
from graphc.base.errors import GraphcError
from tools.nets import run
from tools.nets.builder import Unfit
from tools.nets.onnx_graphs import SETS, STEPS, OnnxBuilder, drawn, names
from tools.nets.onnx_parts import PARTS
from tools.nets.sized import quiet

BRANCHED, SPECIALISED, DROPPED = "branched", "specialised", "dropped"
_TOLERANCE = 2e-4
"""Largest difference, as a fraction of the largest element."""


def judge(name: str) -> run.Outcome:
    """Draw the graph of a name and run it at all sets of sizes."""
    seed, number = map(int, name.split("/"))
    try:
        builder = drawn(seed, number, (*STEPS, *PARTS))
        model = builder.model()
    except Unfit:
        return run.Outcome(DROPPED, "no step fits")
    data = model.SerializeToString()
    try:
        expected = _expected(builder, data)
    except Exception as error:
        return run.Outcome(DROPPED, f"{type(error).__name__}: {error}"[:300])
    with quiet() as logged:
        try:
            outcome = judged(builder, data, expected, logged)
        except GraphcError as error:
            outcome = run.Outcome(run.REFUSED, f"{type(error).__name__}: {error}")
        except Exception as error:
            outcome = run.Outcome(run.FAILED, f"{type(error).__name__}: {error}")
    return outcome if outcome.kind == run.EQUAL else outcome._replace(detail=f"{outcome.detail} [{_steps(builder)}]")


def judged(
    builder: OnnxBuilder, data: bytes, expected: list[list[np.ndarray]], logged: list[str] | None = None
) -> run.Outcome:
    """Compare one compiled function with the expected results at all sets of sizes."""
    module = graphc.from_onnx(data)
    call = graphc.compile(module, dims=module.dims)
    for number in range(SETS):
        with graphc.no_grad():
            results = call(*builder.feeds(number).values())
        for actual, wanted in zip(results if isinstance(results, tuple) else (results,), expected[number], strict=True):
            if why := _difference(actual.numpy(), wanted):
                return run.Outcome(run.DIFFERENT, f"{why} at set {number}")
    if len(call.programs) > 1:
        return _several(call, logged or [])
    return run.Outcome(run.EQUAL)


def _expected(builder: OnnxBuilder, data: bytes) -> list[list[np.ndarray]]:
    """Return the results of ONNX Runtime at all sets of sizes."""
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return [[np.asarray(a) for a in session.run(None, builder.feeds(number))] for number in range(SETS)]


def _difference(actual: np.ndarray, expected: np.ndarray) -> str:
    """Return how two results differ, or an empty text."""
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, not {expected.shape}"
    largest = np.abs(actual - expected).max(initial=0)
    limit = _TOLERANCE * max(1.0, float(np.abs(expected).max(initial=0)))
    return "" if largest <= limit else f"largest difference {largest:.3g} of {limit:.3g}"


def _several(call: Any, logged: list[str]) -> run.Outcome:
    """Return the outcome of a function with several programs: the assumptions that differ between its traces, and why
    there is no program for all sizes."""
    per_size = [text for text in logged if "is compiled for each size" in text]
    assumed = [set(trace.traced.assumptions.found.values()) for trace in call._traces]
    differing = sorted(set.union(*assumed) - set.intersection(*assumed), key=str)
    orders = bool(differing) and not per_size and all(a.relation == "<=" for a in differing)
    reasons = "; ".join([*dict.fromkeys(per_size), *map(str, differing)]) or "no reason"
    return run.Outcome(BRANCHED if orders else SPECIALISED, f"{len(call.programs)} programs: {reasons}"[:2000])


def _steps(builder: OnnxBuilder) -> str:
    return " ".join(builder.steps)


NET = run.Net("onnx_sizes", (__doc__ or "").partition("\n")[0], names, judge, isolated=True)

if __name__ == "__main__":
    sys.exit(run.main(NET))
