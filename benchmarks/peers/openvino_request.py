"""OpenVINO on the model that torch exported, inputs and outputs shared with numpy."""

from __future__ import annotations

import time
from pathlib import Path

import openvino
from openvino import properties
from openvino.properties import hint

from benchmarks import framework as fw
from benchmarks.prepared import NotProvidedError, Prepared
from benchmarks.workloads import Workload

VERSION = openvino.__version__


def prepare(workload: Workload, folder: Path, threads: int) -> Prepared:
    """Compile for latency in float32 with the given number of threads."""
    if workload.train:
        raise NotProvidedError("the library does not train")
    settings = {
        properties.inference_num_threads(): threads,
        hint.performance_mode(): hint.PerformanceMode.LATENCY,
        hint.inference_precision(): openvino.Type.f32,
    }
    arrays = workload.draw_inputs()
    start = time.perf_counter()
    request = openvino.Core().compile_model(folder / fw.ONNX, "CPU", settings).create_infer_request()

    def call() -> object:
        return request.infer(arrays, share_inputs=True, share_outputs=True)

    call()
    numbers = request.get_output_tensor(0).data.copy()
    return Prepared(call, numbers, time.perf_counter() - start)
