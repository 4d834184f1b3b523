"""Models of one operator, compared eagerly and compiled with ONNX's evaluator or a test's results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import graphc as gc
from graphc.codegen.machine.target import host_target

MICROSOFT = "com.microsoft"
needs_runtime = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
needs_exact_bytes = pytest.mark.skipif(
    host_target().triple.startswith("x86_64") and not (host_target().has("avx512vnni") or host_target().has("avxvnni")),
    reason="onnxruntime's sums of products of bytes saturate on x86-64 without VNNI",
)


def model_of(
    op: str,
    arrays: Sequence[np.ndarray | None],
    *,
    opset: int = 22,
    outputs: int | Sequence[str] = 1,
    domain: str = "",
    constants: Sequence[int] = (),
    open_sizes: Mapping[int, Sequence[Any]] | None = None,
    **attributes: Any,
) -> Any:
    """The ModelProto. ``constants`` are the numbers of inputs that are initializers, ``open_sizes`` shapes with names
    by the numbers of inputs; ``opset`` is the version of the operator's domain."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(arrays)]
    results = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    ports, initializers = [], []
    for i, (name, array) in enumerate(zip(names, arrays, strict=True)):
        if array is None:
            continue
        if i in constants:
            initializers.append(numpy_helper.from_array(array, name))
        else:
            shape = (open_sizes or {}).get(i, array.shape)
            ports.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
    collected = [helper.make_empty_tensor_value_info(name) for name in results if name]
    versions = [helper.make_opsetid("", opset if not domain else 22)]
    versions += [helper.make_opsetid(domain, 1)] if domain else []
    graph = helper.make_graph([node], "one", ports, collected, initializers)
    return helper.make_model(graph, opset_imports=versions, ir_version=10)


def check(
    op: str,
    *arrays: np.ndarray | None,
    expected: Sequence[np.ndarray] | None = None,
    tolerance: float = 1e-5,
    runtime: bool = False,
    **options: Any,
) -> list[np.ndarray]:
    """Asserts that eager and compiled results are those of ONNX's evaluator, of onnxruntime (``runtime``), or what is
    expected, with sizes that are known and, for ``open_sizes``, with named dimensions; returns the eager ones."""
    model = model_of(op, arrays, **options)
    given = [a for i, a in enumerate(arrays) if a is not None and i not in options.get("constants", ())]
    if expected is None:
        expected = evaluated(model, given, runtime)
    module = gc.from_onnx(model)
    eager = _results(module(*given))
    _agree(eager, expected, tolerance, "eager")
    options.pop("open_sizes", None)
    fixed = gc.from_onnx(model_of(op, arrays, **options))
    _agree(_results(gc.compile(fixed)(*given)), expected, tolerance, "compiled")
    if module.dims is not None:
        _agree(_results(gc.compile(module, dims=module.dims)(*given)), expected, tolerance, "compiled with named dims")
    return eager


def evaluated(model: Any, arrays: Sequence[np.ndarray], runtime: bool = False) -> list[np.ndarray]:
    """Return the results of ONNX's evaluator, or of onnxruntime with one thread."""
    feeds = dict(zip([p.name for p in model.graph.input], arrays, strict=True))
    if not runtime:
        return ReferenceEvaluator(model).run(None, feeds)  # type: ignore[return-value]
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # NOTE: with more, DynamicQuantizeLSTM scales the states of each thread apart
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def _results(result: Any) -> list[Any]:
    every = result if isinstance(result, tuple) else (result,)
    return [None if t is None else t.detach().numpy() for t in every]


def _agree(result: Sequence[Any], expected: Sequence[Any], tolerance: float, how: str) -> None:
    assert len(result) == len(expected), how
    for ours, theirs in zip(result, expected, strict=True):
        assert ours.shape == np.shape(theirs), how
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=how)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
