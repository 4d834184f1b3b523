"""Quantized models beside their f32 form, compiled and in ONNX Runtime: ``python -m benchmarks.quantization``."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

import graphc as gc
from benchmarks.harness.process import pin
from benchmarks.harness.results import OWN, Result, format_ms, format_table
from benchmarks.harness.timing import Call, alternate, measure_calls, no_grad
from benchmarks.peers.onnx_calls import onnx_run
from graphc import nn

FLOAT, RUNTIME, RUNTIME_FLOAT = "f32", "ONNX Runtime", "ONNX Runtime, f32"


class Case(NamedTuple):
    """A model, and the shape of its input."""

    build: Callable[[], nn.Module]
    shape: tuple[int, ...]


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024))


def _convolutions() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)),
    )


def _separable() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU()]
    for inputs, outputs, stride in ((32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1)):
        layers += [nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs), nn.BatchNorm2d(inputs), nn.ReLU()]
        layers += [nn.Conv2d(inputs, outputs, 1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000))


CASES = {
    "linear layers 1024-1024-1024, batch of 32": Case(_perceptron, (32, 1024)),
    "linear layers 1024-1024-1024, one row": Case(_perceptron, (1, 1024)),
    "four 3x3 convolutions, 3x56x56": Case(_convolutions, (1, 3, 56, 56)),
    "depthwise separable net, 3x112x112": Case(_separable, (1, 3, 112, 112)),
}


def main(arguments: list[str] | None = None) -> int:
    """Time the cases and print a table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quantization", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="measure the cases whose name contains TEXT")
    parser.add_argument("--rounds", type=int, default=15, help="alternating rounds (default: 15)")
    parser.add_argument("--seconds", type=float, default=0.1, help="seconds of a round of one kind (default: 0.1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    pin(1)
    cases = {name: case for name, case in CASES.items() if options.only in name}
    results = [
        _measure(name, case, options.rounds, options.seconds)
        for name, case in tqdm(cases.items(), disable=not sys.stderr.isatty())
    ]
    if options.json:
        print(json.dumps([r.as_json() for r in results], indent=2))
        return 0
    kinds = (FLOAT, OWN, RUNTIME_FLOAT, RUNTIME)
    rows = [(r.name, *(format_ms(ms) if (ms := r.ms(kind)) else "" for kind in kinds)) for r in results]
    print(format_table(("model", FLOAT, "int8", RUNTIME_FLOAT, f"{RUNTIME}, int8"), rows))
    return 0


def _measure(name: str, case: Case, rounds: int, seconds: float) -> Result:
    gc.manual_seed(0)
    model, x = case.build().eval(), gc.randn(*case.shape)
    quantized = gc.quantize(model, [gc.randn(4, *case.shape[1:]) for _ in range(4)])
    calls: dict[str, Call] = {
        FLOAT: no_grad(gc, gc.compile(model), x),
        OWN: no_grad(gc, gc.compile(quantized), x),
    }
    if find_spec("onnxruntime"):
        calls |= {RUNTIME_FLOAT: _runtime(model, x), RUNTIME: _runtime(quantized, x)}
    result = Result(name)
    alternate(result, list(calls), rounds, lambda kind: measure_calls(calls[kind], seconds, time.thread_time))
    return result


def _runtime(model: nn.Module, x: Any) -> Call:
    """Return a call of the model in ONNX Runtime on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        gc.export(model, x, path=path)
        run = onnx_run("onnxruntime", path)
    arrays = [x.numpy()]
    return lambda: run(arrays)


if __name__ == "__main__":
    sys.exit(main())
