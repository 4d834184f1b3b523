"""ONNX Runtime and OpenVINO on ONNX models, as torch exports them or of one node."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import framework as fw
from benchmarks.harness.prepared import NotProvidedError, Prepared
from benchmarks.harness.process import TARGET
from benchmarks.harness.timing import Call
from benchmarks.workloads import Workload

Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
"""A call of a model with arrays."""
RUNTIMES = ("onnxruntime", "openvino")


def onnx_run(runtime: str, model: bytes | Path, threads: int = 1, precision: str = "f32") -> Run:
    """Return a model of one of RUNTIMES, on some threads; OpenVINO shares inputs and outputs with numpy, and may be
    allowed another precision."""
    if runtime == "onnxruntime":
        session = onnx_session(model, threads)
        names = [value.name for value in session.get_inputs()]
        return lambda arrays: session.run(None, dict(zip(names, arrays, strict=True)))
    core = import_module("openvino").Core()
    source = core.read_model(model, b"") if isinstance(model, bytes) else core.read_model(model)
    infer = openvino_infer(core, source, threads, precision)[1]
    return lambda arrays: list(infer(arrays).values())


def onnx_session(model: bytes | Path, threads: int = 1) -> Any:
    """Return a session of ONNX Runtime with every optimisation."""
    library = import_module("onnxruntime")
    options = library.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    return library.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def openvino_infer(core: Any, source: Any, threads: int, precision: str = "f32") -> tuple[Any, Callable[..., Any]]:
    """Return a compiled model of OpenVINO, for latency, and a call of it that returns a dictionary."""
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,
    }
    model = core.compile_model(source, "CPU", settings)
    request = model.create_infer_request()
    return model, lambda arrays: request.infer(arrays, share_inputs=True, share_outputs=True)


def one_node_call(
    op: str,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray],
    opset: int = 18,
    result: str = "FLOAT",
) -> Call:
    """Return a call of a model of one node by ONNX Runtime; ``result`` is the element type of its result."""
    onnx = import_module("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    kinds = {np.dtype(np.float32): types.FLOAT, np.dtype(np.int64): types.INT64}
    node = helper.make_node(op, [*inputs, *constants], ["y"], **attributes)
    arguments = [helper.make_tensor_value_info(name, kinds[a.dtype], a.shape) for name, a in inputs.items()]
    results = [helper.make_tensor_value_info("y", getattr(types, result), None)]
    stored = [onnx.numpy_helper.from_array(a, name) for name, a in constants.items()]
    graph = helper.make_graph([node], "g", arguments, results, stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    session = onnx_session(model.SerializeToString())
    return lambda: session.run(None, inputs)


def prepare_onnxruntime(workload: Workload, folder: Path, threads: int, variant: str) -> Prepared:
    """Open a session with every graph optimisation and the given number of threads."""
    if workload.train:
        raise NotProvidedError("the inference package does not train")
    arrays = workload.draw_inputs()
    start = time.perf_counter()
    session = onnx_session(folder / fw.ONNX, threads)
    feeds = {value.name: array for value, array in zip(session.get_inputs(), arrays, strict=True)}
    numbers = session.run(None, feeds)[0]
    return Prepared(lambda: session.run(None, feeds), numbers, time.perf_counter() - start)


def prepare_openvino(workload: Workload, folder: Path, threads: int, variant: str) -> Prepared:
    """Compile for latency in float32 with the given number of threads."""
    if workload.train:
        raise NotProvidedError("the library does not train")
    arrays = workload.draw_inputs()
    start = time.perf_counter()
    core = import_module("openvino").Core()
    source = core.read_model(folder / fw.ONNX)
    if os.environ.get(TARGET, "host") != "host":
        keep_to_onednn(source)
    model, infer = openvino_infer(core, source, threads)
    numbers = infer(arrays)[0].copy()
    return Prepared(lambda: infer(arrays), numbers, time.perf_counter() - start, {"unlimited": find_unlimited(model)})


def keep_to_onednn(model: Any) -> None:
    """Append a clamp to all finite numbers to each product. OpenVINO gives a product with a follower to oneDNN, which
    can be limited to fewer instructions, and a bare one to MLAS, which detects the processor itself."""
    opset = import_module("openvino.opset13")
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


def find_unlimited(model: Any) -> str:
    """Return how many products run by MLAS all the same; empty where the machine is used as it is."""
    if os.environ.get(TARGET, "host") == "host":
        return ""
    layers = [node.get_rt_info() for node in model.get_runtime_model().get_ops()]
    kernels = [layer["primitiveType"].astype(str) for layer in layers if "primitiveType" in layer]
    products = [kernel for kernel in kernels if "gemm" in kernel or "conv" in kernel]
    free = [kernel for kernel in products if "mlas" in kernel]
    return f"{len(free)} of {len(products)} products (MLAS, which no switch limits)" if free else ""
