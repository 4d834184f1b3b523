"""One model file in a process of its own: ``python -m tools.zoo.one_file NAME WAY FOLDER`` prints a JSON object.

The ways are ``all``, which compares eager mode, compiled calls, exported files and libraries with ONNX Runtime, and
``first-graphc`` and ``first-onnxruntime``, which measure the first result and the memory of one of both.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import graphc as gc
from benchmarks.harness.memory import begin_peak, peak, resident
from benchmarks.harness.timing import Call
from benchmarks.peers.onnx_calls import onnx_session
from tools.zoo import page, rounding
from tools.zoo.catalogue import CASES, fetch, packages

Arguments = Mapping[str, np.ndarray]
Results = list[np.ndarray]
SECONDS = 0.1
"""Time of one measurement of a call."""
ROUNDS = 5
"""Measurements of both, in turn."""
NOTHING = 1e-6
"""Differences that count as none: ONNX Runtime's sigmoid is that far from the right value."""


def main(words: Sequence[str]) -> int:
    """Examine one file, print what was found, and return the exit status."""
    name, way, folder = words
    package = next(p for p in packages() for f in p.files if f.name == name)
    file = next(f for f in package.files if f.name == name)
    path = fetch(package, Path(folder)) / file.path
    cases = [file.arguments(onnx.load(path, load_external_data=False), case) for case in range(CASES)]
    with gc.no_grad():
        if way == "all":
            found = _all_ways(path, cases, Path(os.environ["GRAPHC_CACHE_DIR"]))
        else:
            found = _first(way.removeprefix("first-"), path, cases[0])
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


def _all_ways(path: Path, cases: Sequence[Arguments], place: Path) -> dict[str, Any]:
    start = time.perf_counter()
    session = onnx_session(path)
    expected = [session.run(None, dict(cases[0]))]
    first_s = time.perf_counter() - start
    expected += [session.run(None, dict(case)) for case in cases[1:]]
    found: dict[str, Any] = {"onnxruntime_first_s": first_s, "kind": _kind(path, expected[0])}
    allowed = page.LARGEST.get(found["kind"], page.OTHERWISE)
    if found["kind"] == "int8":
        found["own"] = _own(path, cases, expected, allowed)
    start = time.perf_counter()
    try:
        model = gc.from_onnx(path)
    except Exception as error:  # any error is an outcome to report
        return found | {"read": _text(error)}
    fast = gc.compile(model, dims=model.dims)
    found["compile"] = _way(lambda case: _results(fast(*_tensors(case))), cases, expected, place, allowed)
    found["first_s"] = time.perf_counter() - start - found["compile"].pop("later_s", 0.0)
    found["export"] = _way(_exported(model, cases[0], place), cases, expected, place, allowed)
    found["eager"] = _way(lambda case: _results(model(*_tensors(case))), cases[:1], expected, place, allowed)
    if "error" not in found["compile"]:
        found["ratios"] = [
            ratio(partial(fast, *_tensors(case)), partial(session.run, None, dict(case))) for case in cases
        ]
    if found["kind"] == "int8":
        found["codes"] = rounding.codes(path, cases[0], _compiled)
    return found


def _own(path: Path, cases: Sequence[Arguments], expected: Sequence[Results], allowed: float) -> dict[str, Any]:
    """Return how far ONNX Runtime's results differ from each other after numbers moved by a unit in the last place."""
    pairs = [pair for results in rounding.moved_results(path, cases) for pair in zip(results, expected, strict=True)]
    return {
        "difference": max(_difference(results, right) for results, right in pairs),
        "same": all(_decides_alike(results, right, allowed) for results, right in pairs),
    }


def _compiled(model: bytes, operands: Sequence[np.ndarray]) -> Results:
    """Return the results of a compiled model."""
    return _results(gc.compile(gc.from_onnx(model))(*[gc.from_numpy(array) for array in operands]))


def _kind(path: Path, results: Sequence[Any]) -> str:
    """Return ``int8`` of a model with quantised parts, else the type of the first result."""
    nodes = onnx.load(path, load_external_data=False).graph.node
    if any("uantize" in node.op_type or "Integer" in node.op_type for node in nodes):
        return "int8"
    return _results(results)[0].dtype.name


def ratio(ours: Call, theirs: Call) -> float:
    """Return how many times faster a call is than another, measured in turn."""
    count = max(1, int(SECONDS / max(_seconds(ours, 1), _seconds(theirs, 1), 1e-6)))
    pairs = [(_seconds(ours, count), _seconds(theirs, count)) for _ in range(ROUNDS)]
    return float(np.median([theirs / ours for ours, theirs in pairs]))


def _seconds(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


def _tensors(case: Arguments) -> list[Any]:
    return [a if a.dtype == object else gc.from_numpy(a) for a in case.values()]


def _exported(model: Any, example: Arguments, place: Path) -> Callable[[Arguments], Results]:
    """Return calls of the model as a file that is exported with the first of them."""
    loaded: list[Any] = []

    def call(case: Arguments) -> Results:
        if not loaded:
            gc.export(model, *_tensors(example), path=place / "model.gcm", dims=model.dims)
            loaded.append(gc.load(place / "model.gcm"))
        return _results(loaded[0](*case.values()))

    return call


def _way(
    call: Callable[[Arguments], Results],
    cases: Sequence[Arguments],
    expected: Sequence[Results],
    place: Path,
    allowed: float,
) -> dict[str, Any]:
    """Call a way with each case: the error or its largest difference, whether it decides alike, and its
    programs, of which the first counts as one."""
    found: dict[str, Any] = {"difference": 0.0, "same": True, "later_s": 0.0}
    first = 0
    for number, (case, right) in enumerate(zip(cases, expected, strict=False)):
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = call(case)
        except Exception as error:  # any error is an outcome to report
            return {"error": f"case {number}: {_text(error)}"}
        first = first if number else _programs(place)
        found["later_s"] += time.perf_counter() - start if number else 0.0
        found["difference"] = max(found["difference"], _difference(results, right))
        found["same"] = found["same"] and _decides_alike(results, right, allowed)
    return found | {"programs": 1 + _programs(place) - first}


def _programs(place: Path) -> int:
    return len(list(place.glob("**/*.program")))


def _results(value: Any) -> Results:
    """Return all arrays of a result, in order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in _results(part)]
    return [value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)]


def _difference(results: Results, expected: Sequence[Any]) -> float:
    """Return the largest difference, as a fraction of the largest expected number."""
    largest = 0.0
    for result, right in zip(results, _results(expected), strict=True):
        if result.shape != right.shape:
            return np.inf
        if right.dtype.kind != "f":
            largest = max(largest, 0.0 if np.array_equal(result, right) else np.inf)
        elif right.size:
            with np.errstate(all="ignore"):
                apart = np.abs(result.astype(np.float64) - right.astype(np.float64))
            alike = (result == right) | (np.isnan(result) & np.isnan(right)) | (apart < NOTHING)
            apart = np.where(alike, 0, apart)
            finite = np.abs(right[np.isfinite(right)].astype(np.float64))
            largest = max(largest, float(np.nan_to_num(apart, nan=np.inf).max()) / (finite.max(initial=0) or 1.0))
    return largest


def _decides_alike(results: Results, expected: Sequence[Any], allowed: float) -> bool:
    """Return whether the largest of each row lies at the same place, or is as large within the allowed difference;
    other types are equal."""
    for result, right in zip(results, _results(expected), strict=True):
        if result.shape != right.shape:
            return False
        if right.dtype.kind != "f":
            if not np.array_equal(result, right):
                return False
        elif right.size and right.ndim and right.shape[-1] > 1:
            chosen = np.take_along_axis(right, result.argmax(-1)[..., None], -1)[..., 0]
            best = right.max(-1)
            if not np.allclose(chosen, best, rtol=1e-3, atol=allowed * np.abs(best).max(), equal_nan=True):
                return False
    return True


def _first(engine: str, path: Path, case: Arguments) -> dict[str, Any]:
    """Return the time until the first result, from the call that reads the file, and the growth of resident
    memory to its peak, in bytes."""
    if engine == "graphc":
        gc.compile(lambda x: x + 1)(gc.ones(1))
    before = resident()
    begin_peak()
    start = time.perf_counter()
    if engine == "graphc":
        model = gc.from_onnx(path)
        gc.compile(model, dims=model.dims)(*_tensors(case))
    else:
        onnx_session(path).run(None, dict(case))
    seconds = time.perf_counter() - start
    return {"first_s": seconds, "memory": peak() - before}


def _text(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:300]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
