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
    """What ONNX's evaluator computes, or ONNX Runtime."""
    names = [port.name for port in proto.graph.input]
    given = dict(zip(names, feeds, strict=True))
    if not runtime:
        with np.errstate(all="ignore"):
            return onnx.reference.ReferenceEvaluator(proto).run(None, given)
    session = pytest.importorskip("onnxruntime").InferenceSession(proto.SerializeToString())
    return session.run(None, given)


def _carrier(array: np.ndarray, element: Element | None) -> graphc.Tensor:
    assert element is not None
    return graphc.tensor(carried(array, element))


def check(
    op: str, *inputs: Any, rtol: float = 1e-5, atol: float = 1e-6, runtime: bool = False, **options: Any
) -> OnnxModule:
    """Asserts that a model of one operator gives the same as ONNX's evaluator or ONNX Runtime, eagerly and compiled;
    returns it as a module."""
    pytest.importorskip("onnx.reference")
    proto = model(op, *inputs, **options)
    known = options.get("known", ())
    feeds = [x for i, x in enumerate(inputs) if x is not None and i not in known]
    wanted = expected(proto, feeds, runtime)
    for found, one in zip(prepare(proto).run(feeds), wanted, strict=True):
        _same(found, one, rtol, atol)
    module = from_onnx(proto)
    ports = module.graph.inputs
    tensors = [_carrier(x, port.element) for x, port in zip(feeds, ports, strict=True)]
    with graphc.no_grad():
        compiled = graphc.compile(module, dims=module.dims)(*tensors)
    results = compiled if isinstance(compiled, tuple) else (compiled,)
    for found, one, port in zip(results, wanted, module.graph.outputs, strict=True):
        assert port.element is not None
        _same(found.numpy(), carried(np.asarray(one), port.element), rtol, atol)
    return module


def _same(found: np.ndarray, wanted: Any, rtol: float, atol: float) -> None:
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    if found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol)
