"""Arguments that are written to, and share memory in one call otherwise than in another."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from graphc.errors import FallbackWarning

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def add_and_double(x: Any, y: Any) -> Any:
    x.add_(1)
    return y * 2


def made(kind: str) -> tuple[Any, Any]:
    memory, other = torch.arange(6.0), torch.arange(8.0)
    return {
        "apart": (memory[:4].clone(), other[:4].clone()),
        "same": (memory[:4], memory[:4]),
        "two on": (memory[:4], memory[2:]),
        "one on": (memory[:4], memory[1:5]),
        "two back": (memory[2:], memory[:4]),
        "side by side": (other[:4], other[4:]),
    }[kind]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "kinds",
    [
        ("apart", "two on", "same"),
        ("two on", "one on", "two back", "apart"),
        ("side by side", "two on", "side by side"),
        ("same", "apart", "two on"),
    ],
)
@pytest.mark.filterwarnings("ignore::graphc.errors.FallbackWarning")
def test_what_is_written_is_read_where_arguments_share_it(kinds: tuple[str, ...], dynamic: bool):
    compiled = torch.compile(add_and_double, backend="graphc", dynamic=dynamic)
    for kind in kinds:
        given, plain = made(kind), made(kind)
        torch.testing.assert_close(compiled(*given), add_and_double(*plain))
        torch.testing.assert_close(given, plain)


def test_a_call_that_pytorch_computes_for_that_is_told_and_others_are_not():
    compiled = torch.compile(add_and_double, backend="graphc", dynamic=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            compiled(*made("apart"))
    with pytest.warns(FallbackWarning, match="shares memory with others"):
        compiled(*made("two on"))


def test_gradients_go_through_a_call_that_pytorch_computes():
    def scaled(x: Any, y: Any, weight: Any) -> Any:
        x.add_(1)
        return y * weight

    compiled, weight = torch.compile(scaled, backend="graphc", dynamic=False), torch.ones(4, requires_grad=True)
    compiled(*made("apart"), weight)
    with pytest.warns(FallbackWarning):
        compiled(*made("two on"), weight).sum().backward()
    torch.testing.assert_close(weight.grad, torch.tensor([3.0, 4.0, 4.0, 5.0]))


def test_memory_that_is_shared_and_not_written_to_may_be_shared_in_any_way():
    def count(calls: Any, x: Any, y: Any) -> Any:
        calls.add_(1)
        return x + y

    compiled, calls, data = torch.compile(count, backend="graphc", dynamic=False), torch.zeros(()), torch.arange(9.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(3):
            x, y = data[i : i + 4], data[i + 1 : i + 5]
            torch.testing.assert_close(compiled(calls, x, y), x + y)
    assert calls.item() == 3
