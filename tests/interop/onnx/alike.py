"""Graphs in ONNX's text, computed eagerly, compiled, and compiled with named dimensions, which must all be right."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.interop.onnx import OnnxModule, from_onnx

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")
HEAD = '<ir_version: 10, opset_import: ["": {opset}, "ai.onnx.ml": {ml}, "ai.onnx.preview.training": 1]> g '


def proto_of(text: str, opset: int = 21, ml: int = 3) -> Any:
    """A ModelProto of a graph in ONNX's text: inputs, results and nodes."""
    return onnx.parser.parse_model(HEAD.format(opset=opset, ml=ml) + text)


def module_of(text: str, opset: int = 21, ml: int = 3) -> OnnxModule:
    """The same as a module."""
    return from_onnx(proto_of(text, opset, ml))


def arrays_of(found: Any) -> list[np.ndarray]:
    """The results of a call as arrays."""
    results = found if isinstance(found, tuple) else (found,)
    return [r if isinstance(r, np.ndarray) else r.detach().numpy() for r in results]


def check(
    text: str,
    *inputs: np.ndarray,
    expected: Sequence[Any] | None = None,
    opset: int = 21,
    ml: int = 3,
    eager: bool = False,
) -> None:
    """Compares with ``expected``, without with ONNX's evaluator. With ``eager`` nothing is compiled."""
    proto = proto_of(text, opset, ml)
    if expected is None:
        feeds = dict(zip([i.name for i in proto.graph.input], inputs, strict=True))
        expected = reference.ReferenceEvaluator(proto).run(None, feeds)
    module = from_onnx(proto)
    calls: list[Any] = [module]
    if not eager:
        calls.append(gc.compile(module))
        calls += [gc.compile(module, dims=module.dims)] if module.dims is not None else []
    for call in calls:
        found = arrays_of(call(*inputs))
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert a.shape == np.shape(b)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def refused(text: str, *inputs: np.ndarray, opset: int = 21) -> str:
    """Return the message of a trace about a result whose size depends on values. Eager mode has a result."""
    module = module_of(text, opset)
    module(*inputs)
    with pytest.raises(gc.errors.TraceError) as raised:
        gc.trace(module, *inputs)
    return str(raised.value)
