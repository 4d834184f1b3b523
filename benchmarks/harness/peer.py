"""The peer of a child process: functions that ``Child.ask`` calls to prepare a workload there and to time it."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import framework as fw
from benchmarks.harness.memory import begin_peak, peak
from benchmarks.harness.prepared import Prepared
from benchmarks.harness.results import first_line
from benchmarks.harness.timing import measure_calls
from benchmarks.workloads import ALL, Workload

_current: list[Prepared] = []
"""The workload of the last ``setup``."""


def hello(library: str) -> dict[str, Any]:
    """Return the version of a peer's library, or why it cannot be used."""
    try:
        return {"version": str(importlib.import_module(library).__version__)}
    except Exception as error:  # a library may be missing or broken; both are told
        return {"absent": first_line(error)}


def setup(function: str, workload: str, folder: str, threads: int, variant: str) -> dict[str, Any]:
    """Prepare a workload by ``package.module:function``, write its numbers into the folder, and return facts."""
    _current.clear()
    gc.collect()
    module, _, name = function.partition(":")
    prepare = getattr(importlib.import_module(module), name)
    prepared: Prepared = prepare(ALL[workload], Path(folder), threads, variant)
    _current.append(prepared)
    numbers = Path(folder) / f"{module}.{name}.{variant}.npy"
    np.save(numbers, prepared.numbers)
    begin_peak()
    return {"numbers": str(numbers), "facts": {"first s": prepared.first_call_s, **prepared.facts}}


def time_calls(seconds: float) -> dict[str, Any]:
    """Return the median milliseconds of a call of the current workload, and the largest resident size."""
    if not _current:
        raise ValueError("no workload is set up")
    times = measure_calls(_current[0].call, seconds)
    return {**times, "resident MB": peak() / 1e6}


def write_reference(workload: str, folder: str, onnx: bool) -> dict[str, Any]:
    """Write weights, reference numbers and, on request, the ONNX file; return why that is missing, if it is. The
    reference is eager torch, or eager graphc where torch is not installed."""
    name = "torch" if importlib.util.find_spec("torch") else "graphc"
    framework = importlib.import_module(name)
    fw.write_reference(framework, ALL[workload], Path(folder))
    described = ALL[workload]
    if not onnx or not isinstance(described, Workload):
        return {"onnx": None}
    return {"onnx": _write_onnx(framework, described, folder) if name == "torch" else "torch is not installed"}


def _write_onnx(torch: ModuleType, workload: Workload, folder: str) -> str | None:
    model, inputs = fw.build_model(torch, workload, Path(folder)), tuple(fw.convert_inputs(torch, workload))
    options: dict[str, Any] = {"dynamo": True, "external_data": False, "verbose": False}
    if workload.dims:
        first = dict.fromkeys(workload.dims, torch.export.Dim.DYNAMIC)
        options["dynamic_shapes"] = (first, *[None] * (len(inputs) - 1))
    warnings.simplefilter("ignore")
    try:
        torch.onnx.export(model, inputs, Path(folder) / fw.ONNX, **options)
    except Exception as error:  # the exporter's many layers can raise anything
        return first_line(error)
    return None
