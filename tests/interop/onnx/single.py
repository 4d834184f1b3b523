"""Models of one operator, which graphc computes eagerly and compiled as ONNX's evaluator, or ONNX Runtime, does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.interop.onnx.backend import prepare
from graphc.interop.onnx.elements import Element, carried
from graphc.interop.onnx.module import OnnxModule, from_onnx

onnx = pytest.importorskip("onnx")

VERSION = 23
MICROSOFT = "com.microsoft"


def model(
    op: str,
    *inputs: Any,
    version: int = VERSION,
    domain: str = "",
    known: Sequence[int] = (),
    results: Sequence[Any] = (np.float32,),
    open_rows: bool = False,
    **attributes: Any,
) -> Any:
    """A ModelProto. Inputs are arrays or None; those of the numbers in ``known`` are initializers. ``results`` are the
    element types of the results; with ``open_rows`` the first size of each input with dimensions is called ``n``."""
    helper = onnx.helper
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    ports, constants = [], []
    for i, x in enumerate(inputs):
        if x is None:
            continue
        if i in known:
            constants.append(onnx.numpy_helper.from_array(x, names[i]))
        else:
            shape = ["n", *x.shape[1:]] if open_rows and x.ndim else x.shape
            ports.append(helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(x.dtype), shape))
    outputs = [
        helper.make_tensor_value_info(f"y{i}", helper.np_dtype_to_tensor_dtype(np.dtype(d)), None)
        for i, d in enumerate(results)
    ]
    node = helper.make_node(op, names, [o.name for o in outputs], domain=domain, **attributes)
    imports = [helper.make_opsetid("", version), *([helper.make_opsetid(domain, 1)] if domain else [])]
    graph = helper.make_graph([node], "single", ports, outputs, constants)
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def expected(proto: Any, feeds: Sequence[np.ndarray], runtime: bool = False) -> list[np.ndarray]:
    """Return the results of ONNX's evaluator, or of ONNX Runtime."""
    names = [port.name for port in proto.graph.input]
    feeds_by_name = dict(zip(names, feeds, strict=True))
    if not runtime:
        with np.errstate(all="ignore"):
            return onnx.reference.ReferenceEvaluator(proto).run(None, feeds_by_name)
    session = pytest.importorskip("onnxruntime").InferenceSession(proto.SerializeToString())
    return session.run(None, feeds_by_name)


def _carrier(array: np.ndarray, element: Element | None) -> graphc.Tensor:
    assert element is not None
    return graphc.tensor(carried(array, element))


def check(
    op: str, *inputs: Any, rtol: float = 1e-5, atol: float = 1e-6, runtime: bool = False, **options: Any
) -> OnnxModule:
    """Check that a model of one operator agrees with ONNX's evaluator or ONNX Runtime, eagerly and compiled. Return its
    module."""
    pytest.importorskip("onnx.reference")
    proto = model(op, *inputs, **options)
    known = options.get("known", ())
    feeds = [x for i, x in enumerate(inputs) if x is not None and i not in known]
    expected_outputs = expected(proto, feeds, runtime)
    for result, one in zip(prepare(proto).run(feeds), expected_outputs, strict=True):
        _same(result, one, rtol, atol)
    module = from_onnx(proto)
    ports = module.graph.inputs
    tensors = [_carrier(x, port.element) for x, port in zip(feeds, ports, strict=True)]
    with graphc.no_grad():
        compiled = graphc.compile(module, dims=module.dims)(*tensors)
    results = compiled if isinstance(compiled, tuple) else (compiled,)
    for result, one, port in zip(results, expected_outputs, module.graph.outputs, strict=True):
        assert port.element is not None
        _same(result.numpy(), carried(np.asarray(one), port.element), rtol, atol)
    return module


def _same(result: np.ndarray, expected_outputs: Any, rtol: float, atol: float) -> None:
    expected_outputs = np.asarray(expected_outputs)
    assert result.shape == expected_outputs.shape
    assert result.dtype == expected_outputs.dtype
    if result.dtype.kind in "iub":
        np.testing.assert_array_equal(result, expected_outputs)
    else:
        np.testing.assert_allclose(result.astype(np.float64), expected_outputs.astype(np.float64), rtol=rtol, atol=atol)
