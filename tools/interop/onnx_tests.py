"""ONNX's backend tests with their stock runner.

``python -m tools.interop.onnx_tests [--only TEXT] [--backends NAMES]``. The runner comes with the ``onnx`` package
(extra ``onnx``), and so do models, inputs and expected outputs. Other backends beside graphc are ``reference`` (ONNX's
evaluator) and ``onnxruntime``. ``--operators`` prints a row for each operator, with the largest error in units of the
precision of the results' type at their largest element.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import unittest
import warnings
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx.backend.test import BackendTest
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator
from tqdm import tqdm

from benchmarks.harness.results import format_table

_TYPES = onnx.TensorProto
_SMALL = {getattr(_TYPES, n) for n in ("UINT4", "INT4", "FLOAT4E2M1", "UINT2", "INT2") if hasattr(_TYPES, n)}
_RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


def backend_of(name: str) -> Any:
    """Return the module that the runner calls."""
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
        initialized = {i.name for i in model.graph.initializer}
        names = [v.name for v in model.graph.input if v.name not in initialized]
        return SimpleNamespace(run=lambda inputs: session.run(None, dict(zip(names, inputs, strict=False))))


def kinds_of(model: Any) -> set[str]:
    """Return the features of a model outside of the core: string, sequence, training, ml, preview, random, image and
    small (types of less than a byte)."""
    kinds: set[str] = set()
    for node in _nodes(model.graph.node):
        domain = node.domain
        kinds |= {"ml"} if domain == "ai.onnx.ml" else {"training"} if "training" in domain else set()
        kinds |= {"preview"} if domain.startswith("ai.onnx.preview") else set()
        kinds |= {"random"} if node.op_type in _RANDOM else set()
        kinds |= {"image"} if node.op_type == "ImageDecoder" else set()
        kinds |= {"sequence"} if "Sequence" in node.op_type or "Optional" in node.op_type else set()
    for port in (*model.graph.input, *model.graph.output):
        kind = port.type.WhichOneof("value")
        kinds |= {"sequence"} if kind in ("sequence_type", "optional_type") else set()
        if kind == "tensor_type":
            element = port.type.tensor_type.elem_type
            kinds |= {"string"} if element == _TYPES.STRING else {"small"} if element in _SMALL else set()
    return kinds


def _nodes(nodes: Any) -> Any:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _nodes(graph.node)


def _known_tests() -> tuple[dict[str, set[str]], dict[str, str]]:
    """Return the features of each test of operators, and its operator, by the test's name without the device."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [(case.name, case.model) for case in load_model_tests(kind="node") if case.model is not None]
    kinds, operators = {}, {}
    for name, model in sorted(cases, key=lambda case: case[0]):
        kinds[name] = kinds_of(model)
        stem = name.split("_expanded")[0]
        operators[name] = operators.get(stem) or model.graph.node[-1].op_type
    return kinds, operators


KINDS, OPERATORS = _known_tests()


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


class _Recorded(BackendTest):
    """The stock runner, which notes how far results are apart before it compares them."""

    units: ClassVar[list[float]] = []

    @classmethod
    def assert_similar_outputs(cls, ref_outputs: Any, outputs: Any, *args: Any, **kwargs: Any) -> None:
        cls.units += [units_between(a, b) for a, b in zip(ref_outputs, outputs, strict=False)]
        super().assert_similar_outputs(ref_outputs, outputs, *args, **kwargs)


def units_between(expected: Any, result: Any) -> float:
    """Return the largest difference in units of the precision of the results' type at their largest finite element; 0
    for results that are not real numbers, and for different shapes."""
    if not isinstance(expected, np.ndarray) or expected.dtype not in (np.float16, np.float32, np.float64):
        return 0.0
    if np.shape(result) != expected.shape:
        return 0.0
    a, b = expected.astype(np.float64), np.asarray(result).astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.any():
        return 0.0
    largest = np.abs(a[finite]).max()
    return float(np.abs(a - b)[finite].max() / (np.finfo(expected.dtype).eps * largest)) if largest else 0.0


@dataclass
class BackendOutcome:
    """Outcome of one test."""

    message: str
    """Empty where it passed."""
    units: float


def run(name: str = "graphc", only: str = "", progress: bool = False) -> dict[str, dict[str, BackendOutcome]]:
    """Return the outcomes of all tests by group and name."""
    tests = _Recorded(backend_of(name), __name__)
    outcomes: dict[str, dict[str, BackendOutcome]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in tests.test_cases.values():
            group = case.__name__.removeprefix("OnnxBackend").removesuffix("ModelTest")
            names = [n for n in unittest.TestLoader().getTestCaseNames(case) if n.endswith("_cpu") and only in n]
            for test in tqdm(names, f"{name} {group}", disable=not progress, leave=False):
                _Recorded.units = []
                result = _Result()
                case(test).run(result)
                message = result.found.get(test.removesuffix("_cpu"), "no outcome")
                outcome = BackendOutcome(message, max(_Recorded.units, default=0.0))
                outcomes.setdefault(group, {})[test.removesuffix("_cpu")] = outcome
    return outcomes


def counts(outcomes: dict[str, dict[str, BackendOutcome]]) -> dict[str, tuple[int, int]]:
    """Return how many tests pass, and how many there are: of the core, of all operators, of converted models and
    others."""
    groups = {"core": {n: o for n, o in outcomes.get("Node", {}).items() if not KINDS.get(n)}, **outcomes}
    return {g: (sum(not o.message for o in tests.values()), len(tests)) for g, tests in groups.items()}


def by_operator(outcomes: dict[str, BackendOutcome]) -> dict[str, tuple[int, int, float]]:
    """Return how many tests pass, how many there are, and the largest error, by operator."""
    rows: dict[str, tuple[int, int, float]] = {}
    for name, outcome in outcomes.items():
        title = OPERATORS.get(name, "?")
        passed, count, units = rows.get(title, (0, 0, 0.0))
        rows[title] = (
            passed + (not outcome.message),
            count + 1,
            units if outcome.message else max(units, outcome.units),
        )
    return dict(sorted(rows.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run only tests whose name contains this text")
    parser.add_argument(
        "--backends", default="graphc", help="backends, separated by commas: graphc,reference,onnxruntime"
    )
    parser.add_argument("--operators", action="store_true", help="print a row for each operator")
    parser.add_argument("--json", action="store_true", help="print the outcome of each test as JSON")
    options = parser.parse_args()
    every = {name: run(name, options.only, sys.stderr.isatty()) for name in options.backends.split(",")}
    if options.json:
        print(json.dumps({b: {g: {n: vars(o) for n, o in p.items()} for g, p in f.items()} for b, f in every.items()}))
        return 0
    for name, groups in every.items():
        for test, outcome in [pair for tests in groups.values() for pair in tests.items()] if len(every) == 1 else ():
            if outcome.message:
                print(f"{test} [{' '.join(sorted(KINDS.get(test, set())))}]: {outcome.message}")
        for group, (passed, count) in counts(groups).items():
            print(f"{name} {group}: {passed} of {count} pass")
        if options.operators:
            rows = by_operator(groups.get("Node", {})).items()
            cells = [(title, str(passed), str(count), f"{units:.2g}") for title, (passed, count, units) in rows]
            print(format_table(("operator", "passed", "of", "largest error, units"), cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
