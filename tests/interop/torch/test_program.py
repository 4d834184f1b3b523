"""Programs that take and give tensors of PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.interop.aten.graph import AtenGraph, Ref, Step

torch = pytest.importorskip("torch")
program: Any = pytest.importorskip("graphc.interop.torch.program")


def test_arguments_are_taken_and_results_given_without_torch_in_between():
    graph = AtenGraph("main", ["x"], [Step("y", "aten.mul.Tensor", (Ref("x"), 3))], [None, Ref("y")])
    x = torch.arange(6.0).reshape(2, 3)
    run = program.Program(graph, [x], [None, x], (), "live")
    given = [x.T.contiguous().T]
    nothing, found = run(given)
    assert nothing is None and torch.equal(found, x * 3) and not given


def test_the_order_of_dimensions_in_memory():
    x = torch.zeros(2, 3, 4)
    assert program.order_of(x) is None and program.order_of(x.permute(1, 2, 0)) == (2, 0, 1)
    assert program.order_of(x[:1].expand(5, 3, 4)) is None
