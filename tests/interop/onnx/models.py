"""Small ONNX models for tests, built by ``onnx.helper`` from operators of every version."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

FLOAT = onnx.TensorProto.FLOAT
INT64 = onnx.TensorProto.INT64
SCALE = np.arange(1, 4, dtype=np.float32)
SHIFT = np.array([0.5, -1.0, 0.25], np.float32)


def port(name: str, *shape: Any, element: int = FLOAT) -> Any:
    """An input or output of tensors of this shape."""
    return helper.make_tensor_value_info(name, element, shape)


def weight(name: str, values: Any) -> Any:
    """An initializer."""
    return numpy_helper.from_array(np.asarray(values), name)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """Return an operator; ``_`` marks an omitted input or output."""
    names = [[n.replace("_", "") if n == "_" else n for n in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op, *names, **attributes)


def model(graph: Any, version: int = 17, functions: Any = (), ir_version: int = 8, **domains: int) -> Any:
    """A ModelProto."""
    versions = [helper.make_opsetid("", version), *[helper.make_opsetid(d, v) for d, v in domains.items()]]
    return helper.make_model(graph, opset_imports=versions, functions=functions, ir_version=ir_version)


def scaled(*shape: Any, version: int = 17) -> Any:
    """relu(x * scale + shift) of tensors of a shape that ends with 3, by initializers ``fc.scale`` and ``fc.shift``."""
    nodes = [node("Mul", "x fc.scale", "m"), node("Add", "m fc.shift", "a"), node("Relu", "a", "y")]
    weights = [weight("fc.scale", SCALE), weight("fc.shift", SHIFT)]
    shape = shape or ("batch", 3)
    return model(helper.make_graph(nodes, "scaled", [port("x", *shape)], [port("y", *shape)], weights), version)


def expected(x: np.ndarray) -> np.ndarray:
    """Return the result of ``scaled``."""
    return np.maximum(x * SCALE + SHIFT, 0)


def graph_of(*nodes: Any, inputs: Any = None, outputs: str = "y", weights: Any = ()) -> Any:
    """A GraphProto of x: f32[2] unless other inputs are given."""
    ports = [port("x", 2)] if inputs is None else inputs
    return helper.make_graph(list(nodes), "g", ports, [port(n, 2) for n in outputs.split()], list(weights))
