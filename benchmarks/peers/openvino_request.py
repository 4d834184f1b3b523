"""OpenVINO on the model that torch exported, inputs and outputs shared with numpy."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import openvino
from openvino import opset13 as opset
from openvino import properties
from openvino.properties import hint

from benchmarks.harness import framework as fw
from benchmarks.harness.prepared import NotProvidedError, Prepared
from benchmarks.harness.process import TARGET
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
    core = openvino.Core()
    source = core.read_model(folder / fw.ONNX)
    if os.environ.get(TARGET, "host") != "host":
        keep_to_onednn(source)
    model = core.compile_model(source, "CPU", settings)
    request = model.create_infer_request()

    def call() -> object:
        return request.infer(arrays, share_inputs=True, share_outputs=True)

    call()
    numbers = request.get_output_tensor(0).data.copy()
    return Prepared(call, numbers, time.perf_counter() - start, find_unlimited(model))


def keep_to_onednn(model: openvino.Model) -> None:
    """Append a clamp to all finite numbers to each product. OpenVINO gives a product with a follower to oneDNN, which
    can be limited to fewer instructions, and a bare one to MLAS, which detects the processor itself."""
    largest = float(np.finfo(np.float32).max)
    for node in model.get_ordered_ops():
        if node.get_type_name() != "MatMul":
            continue
        users = [user.get_node() for user in node.output(0).get_target_inputs()]
        bias = users[0] if len(users) == 1 and users[0].get_type_name() == "Add" else None
        if bias is not None and not any(i.get_node().get_type_name() == "Constant" for i in bias.input_values()):
            bias = None
        last = (bias or node).output(0)
        targets = last.get_target_inputs()
        clamped = opset.clamp(last, -largest, largest).output(0)
        for target in targets:
            target.replace_source_output(clamped)


def find_unlimited(model: openvino.CompiledModel) -> str:
    """Return how many products run by MLAS all the same; empty where the machine is used as it is."""
    if os.environ.get(TARGET, "host") == "host":
        return ""
    layers = [node.get_rt_info() for node in model.get_runtime_model().get_ops()]
    kernels = [layer["primitiveType"].astype(str) for layer in layers if "primitiveType" in layer]
    products = [kernel for kernel in kernels if "gemm" in kernel or "conv" in kernel]
    free = [kernel for kernel in products if "mlas" in kernel]
    return f"{len(free)} of {len(products)} products (MLAS, which no switch limits)" if free else ""
