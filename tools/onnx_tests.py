"""ONNX's own backend tests by their stock runner: ``python -m tools.onnx_tests [--only TEXT] [--backend NAME]``.

The runner comes with the ``onnx`` package (extra ``onnx``), and so do models, inputs and expected outputs.
``--backend`` runs another one in the place of graphc: ``reference`` (ONNX's evaluator) or ``onnxruntime``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import unittest
import warnings
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import onnx
from onnx.backend.test import BackendTest
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator

_TYPES = onnx.TensorProto
_SMALL = {getattr(_TYPES, n) for n in ("UINT4", "INT4", "FLOAT4E2M1", "UINT2", "INT2") if hasattr(_TYPES, n)}
_RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


def backend_of(name: str) -> Any:
    """What the runner calls."""
    if name == "graphc":
        return import_module("graphc.interop.onnx")
    if name == "reference":
        return _Sessions(lambda model: ReferenceEvaluator(model))
    runtime = import_module("onnxruntime")

    def session(model: Any) -> Any:
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    return _Sessions(session)


class _Sessions:
    """Evaluators with ``run(None, feeds)`` as a backend."""

    def __init__(self, make: Any):
        self._make = make

    def supports_device(self, device: str) -> bool:
        return device == "CPU"

    def prepare(self, model: Any, device: str = "CPU", **kwargs: Any) -> Any:
        session = self._make(model)
        given = {i.name for i in model.graph.initializer}
        names = [v.name for v in model.graph.input if v.name not in given]
        return SimpleNamespace(run=lambda inputs: session.run(None, dict(zip(names, inputs, strict=False))))


def kinds_of(model: Any) -> set[str]:
    """What sets the test of a model apart from the core: string, sequence, training, ml, preview, random, image and
    small (types of less than a byte)."""
    found: set[str] = set()
    for node in _nodes(model.graph.node):
        domain = node.domain
        found |= {"ml"} if domain == "ai.onnx.ml" else {"training"} if "training" in domain else set()
        found |= {"preview"} if domain.startswith("ai.onnx.preview") else set()
        found |= {"random"} if node.op_type in _RANDOM else set()
        found |= {"image"} if node.op_type == "ImageDecoder" else set()
        found |= {"sequence"} if "Sequence" in node.op_type or "Optional" in node.op_type else set()
    for port in (*model.graph.input, *model.graph.output):
        kind = port.type.WhichOneof("value")
        found |= {"sequence"} if kind in ("sequence_type", "optional_type") else set()
        if kind == "tensor_type":
            element = port.type.tensor_type.elem_type
            found |= {"string"} if element == _TYPES.STRING else {"small"} if element in _SMALL else set()
    return found


def _nodes(nodes: Any) -> Any:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _nodes(graph.node)


def kinds_by_test() -> dict[str, set[str]]:
    """What sets each test apart, by its name without the device; those without a file are models of other packages."""
    found = {}
    for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            model = case.model
            if model is None and case.model_dir is not None:
                model = onnx.load(f"{case.model_dir}/model.onnx")
            if model is not None:
                found[case.name] = kinds_of(model)
    return found


class _Result(unittest.TestResult):
    """Collects outcomes by the name of the test."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def addSuccess(self, test: Any) -> None:
        self.found[_name(test)] = ""

    def addFailure(self, test: Any, err: Any) -> None:
        self.found[_name(test)] = _shown(err)

    addError = addFailure

    def addSkip(self, test: Any, reason: str) -> None:
        self.found[_name(test)] = f"skipped: {reason}"


def _name(test: Any) -> str:
    return test.id().rpartition(".")[2].removesuffix("_cpu")


def _shown(err: Any) -> str:
    text = str(err[1]).strip()
    differing = re.search(r"Max absolute difference[^\n]*", text)
    lines = text.splitlines() or [""]
    return f"{err[0].__name__}: {' | '.join(lines[:3])[:240]} {differing.group(0) if differing else ''}".strip()


def run(name: str = "graphc", only: str = "") -> dict[str, str]:
    """The outcome of each test, empty where it passed."""
    tests = BackendTest(backend_of(name), __name__)
    tests.include(f"test_.*{only}.*_cpu")
    result = _Result()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in tests.test_cases.values():
            for name in unittest.TestLoader().getTestCaseNames(case):
                if name.endswith("_cpu") and only in name:
                    case(name).run(result)
    return result.found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="tests whose name contains this text")
    parser.add_argument("--backend", default="graphc", choices=("graphc", "reference", "onnxruntime"))
    parser.add_argument("--json", action="store_true", help="outcomes by test")
    options = parser.parse_args()
    found = run(options.backend, options.only)
    kinds = kinds_by_test()
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    for name, outcome in found.items():
        if outcome:
            print(f"{name} [{' '.join(sorted(kinds.get(name, set())))}]: {outcome}")
    core = {n: o for n, o in found.items() if not kinds.get(n, set())}
    for title, part in (("core", core), ("all", found)):
        print(f"{title}: {sum(not o for o in part.values())} of {len(part)} pass")
    return 0


if __name__ == "__main__":
    sys.exit(main())
