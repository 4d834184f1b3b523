"""OpenVINO on the model that torch exported, inputs and outputs shared with numpy."""

from __future__ import annotations

import os
import time
from pathlib import Path

import openvino
from openvino import properties
from openvino.properties import hint

from benchmarks import framework as fw
from benchmarks.prepared import NotProvidedError, Prepared
from benchmarks.process import TARGET
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
    model = openvino.Core().compile_model(folder / fw.ONNX, "CPU", settings)
    request = model.create_infer_request()

    def call() -> object:
        return request.infer(arrays, share_inputs=True, share_outputs=True)

    call()
    numbers = request.get_output_tensor(0).data.copy()
    return Prepared(call, numbers, time.perf_counter() - start, find_unlimited(model))


def find_unlimited(model: openvino.CompiledModel) -> str:
    """Return how many layers run by MLAS, which asks the processor itself and so uses AVX-512 where oneDNN is held to
    less; empty where the machine is used as it is."""
    if os.environ.get(TARGET, "host") == "host":
        return ""
    layers = [node.get_rt_info() for node in model.get_runtime_model().get_ops()]
    kernels = [layer["primitiveType"].astype(str) for layer in layers if "primitiveType" in layer]
    products = [kernel for kernel in kernels if "gemm" in kernel or "conv" in kernel]
    free = [kernel for kernel in products if "mlas" in kernel]
    return f"{len(free)} of {len(products)} products (MLAS, which no switch limits)" if free else ""
