"""Results that look at the same memory, as they do in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
aliases: Any = pytest.importorskip("graphc.interop.torch.aliases")

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def views(x: Any) -> Any:
    y = x * 2
    first, second = (y[:2], y[2:]) if x.requires_grad else y.split([2, y.shape[0] - 2])
    return x + 1, y.view(-1), first.T, second, y.view(-1)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_results_that_share_memory_in_pytorch_share_it(dynamic: bool, grad: bool):
    compiled = torch.compile(views, backend="graphc", dynamic=dynamic)
    for rows in (5, 7):
        x = torch.arange(3.0 * rows).reshape(rows, 3).requires_grad_(grad)
        with torch.set_grad_enabled(grad):
            found, expected = compiled(x), views(x)
        torch.testing.assert_close(found, expected)
        assert [f.stride() for f in found] == [e.stride() for e in expected]
        with torch.no_grad():
            for results in (found, expected):
                results[1].mul_(2)
        torch.testing.assert_close(found, expected)


def test_a_graph_in_which_no_two_results_share_memory_is_left_as_it_is():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.ops.aten.mul.Tensor, (x, 2))
    graph.output(
        (graph.call_function(torch.ops.aten.t.default, (y,)), graph.call_function(torch.ops.aten.t.default, (x,)))
    )
    module = torch.fx.GraphModule({}, graph)
    assert aliases.without_views(module) == (module, None)
