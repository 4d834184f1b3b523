"""Graphs of torch.fx are read as they are."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.base import dtypes
from graphc.errors import GraphcError

torch = pytest.importorskip("torch")
fx: Any = pytest.importorskip("graphc.interop.torch.fx")


def graph_of(function: Any, *args: Any) -> Any:
    return fx.read_fx(torch.fx.experimental.proxy_tensor.make_fx(function)(*args))


def test_operators_arguments_and_constants_are_read():
    graph = graph_of(
        lambda x: (x.to(torch.float64, memory_format=torch.contiguous_format) + torch.tensor([2.0]),), torch.ones(2)
    )
    targets = [s.target for s in graph.steps]
    assert "aten._to_copy.default" in targets and "aten.add.Tensor" in targets
    copy = graph.steps[targets.index("aten._to_copy.default")]
    assert copy.kwargs == {"dtype": dtypes.float64}
    assert [t.tolist() for t in graph.constants.values()] == [[2.0]]


def test_strides_are_those_of_dense_tensors_only():
    graph_of(lambda x: torch.as_strided(x, (2,), (2,)), torch.ones(4))
    with pytest.raises(GraphcError, match="needs a contiguous tensor"):
        graph_of(lambda x: torch.as_strided(x.t(), (2,), (2,)), torch.ones(2, 3))


def test_element_types_that_graphc_lacks_are_refused_with_the_node():
    with pytest.raises(GraphcError, match=r"torch\.float8_e4m3fn") as found:
        graph_of(lambda x: x.to(torch.float8_e4m3fn), torch.ones(2))
    assert "_to_copy" in str(found.value.where)
