"""Three ways to compute a quantized graph: graphc's compiled code, ONNX's evaluator, and ONNX Runtime.

The evaluator computes in the graph's own f32, or with all scales in f64, where nothing but codes is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

import graphc
from tools.nets.quantized.definitions import OPERATORS

Arrays = Mapping[str, np.ndarray]


def compiled(model: Any, feeds: Arrays, target: str = "host") -> dict[str, np.ndarray]:
    """Return the results of a model that graphc compiles, for this machine or another target."""
    module = graphc.from_onnx(model)
    with graphc.no_grad():
        results = graphc.compile(module, target=target)(*(feeds[p.name] for p in model.graph.input))
    return _named(model, [r.numpy() for r in (results if isinstance(results, tuple) else (results,))])


def _named(model: Any, arrays: Any) -> dict[str, np.ndarray]:
    return {port.name: np.asarray(array) for port, array in zip(model.graph.output, arrays, strict=True)}


def evaluated(model: Any, feeds: Arrays) -> dict[str, np.ndarray]:
    """Return the results of ONNX's evaluator."""
    return _named(model, ReferenceEvaluator(model, new_ops=list(OPERATORS)).run(None, dict(feeds)))


_SCALES = {
    **{"QuantizeLinear": 1, "QLinearConv": 6, "QLinearMatMul": 6, "QGemm": 7, "QLinearConcat": 0},
    **{"QLinearAdd": 6, "QLinearMul": 6, "QLinearWhere": 7},
    **dict.fromkeys(["Sigmoid", "LeakyRelu", "Softmax", "AveragePool", "GlobalAveragePool", "ReduceMean"], 3),
}
"""Number of the input that is the scale of the result. Names of operators with three are those after ``QLinear``."""


def widened(model: Any, last_scale: float = 1.0) -> Any:
    """Return a model for the evaluator with constants of f64 in place of f32.

    The scale of the last node's result is multiplied by ``last_scale``.
    """
    wide = ModelProto()
    wide.CopyFrom(model)
    last = model.graph.node[-1]
    number = _SCALES.get(last.op_type, _SCALES.get(last.op_type.removeprefix("QLinear")))
    scale = "" if number is None else last.input[number]
    for constant in wide.graph.initializer:
        if constant.data_type == TensorProto.FLOAT:
            array, name = numpy_helper.to_array(constant).astype(np.float64), constant.name
            constant.CopyFrom(numpy_helper.from_array(array * last_scale if name == scale else array, name))
    return wide


def runtime(model: Any, feeds: Arrays) -> dict[str, np.ndarray] | None:
    """Return the results of ONNX Runtime without optimizations, or None where it refuses the model."""
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return _named(model, session.run(None, dict(feeds)))
    except Exception:  # what it raises has no common base
        return None
