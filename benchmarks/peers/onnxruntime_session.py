"""ONNX Runtime on the model that torch exported."""

from __future__ import annotations

import time
from pathlib import Path

import onnxruntime

from benchmarks.harness import framework as fw
from benchmarks.harness.prepared import NotProvidedError, Prepared
from benchmarks.workloads import Workload

VERSION = onnxruntime.__version__


def prepare(workload: Workload, folder: Path, threads: int) -> Prepared:
    """Open a session with every graph optimisation and the given number of threads."""
    if workload.train:
        raise NotProvidedError("the inference package does not train")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    arrays = workload.draw_inputs()
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(folder / fw.ONNX, options, providers=["CPUExecutionProvider"])
    feeds = {value.name: array for value, array in zip(session.get_inputs(), arrays, strict=True)}
    numbers = session.run(None, feeds)[0]
    first_call_s = time.perf_counter() - start
    return Prepared(lambda: session.run(None, feeds), numbers, first_call_s)
