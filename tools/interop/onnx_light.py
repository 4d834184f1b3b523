"""Image models of the ``onnx`` package with random weights, compiled by graphc, against another evaluator.

``python -m tools.interop.onnx_light [--only TEXT] [--against onnxruntime|reference] [--seed N] [--json]``

The package holds nine classifiers (AlexNet, DenseNet-121, two Inceptions, ResNet-50, ShuffleNet, SqueezeNet, VGG-19,
ZFNet) without their weights: operators create constants of the right shapes. This tool replaces the constants by random
initializers and drops a final softmax, which would hide differences. A difference is relative to the largest result;
more than 1e-4 is a failure. For batch norms of version 9, ONNX's own evaluator differs from graphc and ONNX Runtime
alike.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import graphc as gc

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
TOLERANCE = 1e-4


class ModelRow(NamedTuple):
    """Outcome of one model."""

    name: str
    difference: float
    """Largest difference of a result over the largest one."""
    first_s: float
    """Reading, compiling and the first call."""
    problem: str


def names() -> list[str]:
    """Return the names of the models in the package."""
    return sorted(path.stem.removeprefix("light_") for path in FOLDER.glob("light_*.onnx"))


def load(name: str, seed: int = 0) -> Any:
    """Return a model with random weights in the place of constants of a shape."""
    model = onnx.load(FOLDER / f"light_{name}.onnx")
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    shapes = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            values = random_weight(tuple(shapes[node.input[0]].tolist()), rng)
            model.graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
        else:
            nodes.append(node)
    if nodes[-1].op_type == "Softmax":
        model.graph.output[0].name = nodes.pop().input[0]
    initialized = {i.name for i in model.graph.initializer}
    ports = [port for port in model.graph.input if port.name not in initialized]
    del model.graph.node[:], model.graph.input[:]
    model.graph.node.extend(nodes)
    model.graph.input.extend(ports)
    model.ir_version = max(model.ir_version, 4)
    return model


def random_weight(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return weights that preserve the size of activations (He et al., 2015); vectors are scales, shifts or variances,
    in 0.5 .. 1."""
    if len(shape) < 2:
        return rng.uniform(0.5, 1.0, shape).astype(np.float32)
    deviation = (2.0 / np.prod(shape[1:])) ** 0.5
    return (rng.standard_normal(shape) * deviation).astype(np.float32)


def feeds_of(model: Any, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random images for the inputs."""
    rng = np.random.default_rng(seed)
    shapes = {p.name: [d.dim_value for d in p.type.tensor_type.shape.dim] for p in model.graph.input}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def reference(model: Any, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the results of ONNX's own evaluator."""
    results: Any = ReferenceEvaluator(model).run(None, feeds)
    return results


def onnxruntime(model: Any, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the results of ONNX Runtime."""
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


EVALUATORS: dict[str, Callable[..., list[np.ndarray]]] = {"onnxruntime": onnxruntime, "reference": reference}


def compare(name: str, against: str = "onnxruntime", seed: int = 0) -> ModelRow:
    """Return a model's row."""
    model = load(name, seed)
    feeds = feeds_of(model, seed)
    try:
        start = time.perf_counter()
        compiled = gc.compile(gc.from_onnx(model).requires_grad_(False))
        results = compiled(*map(gc.from_numpy, feeds.values()))
        first = time.perf_counter() - start
    except gc.errors.GraphcError as error:
        return ModelRow(name, float("inf"), 0.0, str(error).splitlines()[0])
    (expected,) = EVALUATORS[against](model, feeds)
    difference = float(np.abs(results.numpy() - expected).max() / np.abs(expected).max())
    return ModelRow(name, difference, first, "" if difference <= TOLERANCE else "differs")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run only models whose name contains this text")
    parser.add_argument("--against", default="onnxruntime", choices=EVALUATORS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [compare(name, options.against, options.seed) for name in names() if options.only in name]
    if options.json:
        print(json.dumps([row._asdict() for row in rows], indent=1))
    else:
        print("| model | difference | first call s | |\n|---|---|---|---|")
        for row in rows:
            print(f"| {row.name} | {row.difference:.1e} | {row.first_s:.2f} | {row.problem} |")
    return int(any(row.problem for row in rows))


if __name__ == "__main__":
    sys.exit(main())
