"""Compiled programs called natively: each element type and rank, and what happens where there are no native calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.base.dtypes import ALL, elements, numbers
from graphc.compiler import native_call
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.errors import CompileError
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.pointwise import elementwise
from graphc.runtime import fast_call
from graphc.runtime.call import Executable


def doubled(dtype: Any, shape: tuple[int, ...]) -> Executable:
    graph = Graph("doubled")
    x = graph.add_input(TensorType(dtype, shape), "x")
    with dispatch.use(dispatch.GraphDispatcher(graph)):
        y = elementwise.logical_not(x) if dtype.name == "bool" else elementwise.add(x, x)
    graph.set_outputs([y])
    return load_compiled(compile_graph(graph))


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("the call went through Python")


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 1, 4, 3, 2)], ids=str)
def test_every_element_type_and_rank(dtype: Any, shape: tuple[int, ...]):
    program = doubled(dtype, shape)
    x = np.asarray(np.random.default_rng(0).integers(0, 2, shape))
    x = elements(x, dtype)
    call = native_call.native(program, (), refuse, None)
    expected = ~x if dtype.name == "bool" else elements(numbers(x) + numbers(x), dtype)
    np.testing.assert_array_equal(call(x), expected)
    out = np.empty(shape, dtype.numpy)
    assert call(x, out=out) is out
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(AssertionError, match="went through Python"):
        call(np.zeros((*shape, 1), dtype.numpy))


def test_without_native_calls_the_fallback_is_the_callable(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any, **__: Any) -> bytes:
        raise CompileError("no code today")

    native_call.caller.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(native_call, "small_object", broken)
            assert native_call.native(doubled(ALL[0], (2,)), (), refuse) is refuse
        native_call.caller.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(fast_call, "layout", lambda: None)
            assert native_call.caller() is None
    finally:
        native_call.caller.cache_clear()
    assert native_call.caller() is not None
