"""Repeated calls of compiled functions: native at once, and never stale after whatever may change in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.calls.bound_program import NO_SHORTCUT
from graphc.calls.function import Compiled
from graphc.tracing.reads import read_flag
from tests.base.test_mutation_epoch import CHANGES


def model() -> nn.Sequential:
    graphc.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()


def close(a: Any, b: Any) -> bool:
    return np.allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)


def warm(compiled: Compiled, *inputs: Any) -> None:
    with graphc.no_grad():
        for _ in range(2):
            compiled(*inputs)
    assert compiled._shortcut is not NO_SHORTCUT


def refuse(*_: Any) -> None:
    raise AssertionError("the call did not take the short way")


def test_the_second_call_takes_the_short_way(monkeypatch: pytest.MonkeyPatch):
    net = model()
    compiled = graphc.compile(net)
    x = graphc.randn(5, 3)
    warm(compiled, x)
    with graphc.no_grad():
        expected = net(x)
        monkeypatch.setattr(compiled, "_find_and_run", refuse)
        first, second = compiled(x), compiled(x[:])
        assert type(first) is graphc.Tensor and first.dtype is graphc.float32 and not first.requires_grad
        assert close(first, expected) and close(second, expected)
        first += 1
        assert close(compiled(x), expected)
        for other in (x[:4], x.double(), graphc.randn(5, 4), x.tolist()):
            with pytest.raises(AssertionError, match="short way"):
                compiled(other)
        with pytest.raises(AssertionError, match="short way"):
            compiled(x, x)
        with pytest.raises(AssertionError, match="short way"):
            compiled()
        with pytest.raises(AssertionError, match="short way"):
            compiled(input=x)
    with pytest.raises(AssertionError, match="short way"):
        compiled(x)


BREAKS = {"clear", "delete item", "delete parameter", "pop", "or", "order", "setdefault"}
"""Changes after which the model cannot be called."""


@pytest.mark.parametrize("name", sorted(set(CHANGES) - BREAKS))
def test_nothing_is_stale_after_a_change(name: str):
    net = model()
    compiled = graphc.compile(net)
    x = graphc.randn(5, 3)
    warm(compiled, x)
    CHANGES[name](net)
    with graphc.no_grad():
        x = x.to(next(net.parameters()).dtype)
        for _ in range(3):
            assert close(compiled(x), net(x))


def test_functions_without_parameters_take_the_short_way(monkeypatch: pytest.MonkeyPatch):
    compiled = graphc.compile(lambda x, y: x * y)
    x, y = graphc.randn(4), graphc.randn(3, 4)
    for _ in range(2):
        compiled(x, y)
    monkeypatch.setattr(compiled, "_find_and_run", refuse)
    assert close(compiled(x, y), x * y)


def test_tuples_of_results_take_the_short_way(monkeypatch: pytest.MonkeyPatch):
    compiled = graphc.compile(lambda x: (x + 1, x.argmax(-1), x.sum()))
    x = graphc.randn(5, 3)
    warm(compiled, x)
    monkeypatch.setattr(compiled, "_find_and_run", refuse)
    with graphc.no_grad():
        results = compiled(x * 2)
    assert type(results) is tuple and [r.dtype for r in results] == [graphc.float32, graphc.int64, graphc.float32]
    assert all(map(close, results, (x * 2 + 1, (x * 2).argmax(-1), (x * 2).sum())))


def test_other_nests_of_results_take_the_long_way():
    compiled = graphc.compile(lambda x: {"more": x + 1, "less": (x - 1,)})
    x = graphc.randn(4)
    for _ in range(3):
        results = compiled(x)
        assert close(results["more"], x + 1) and close(results["less"][0], x - 1)


def test_writes_to_parameters_are_seen():
    net = model()
    compiled = graphc.compile(net)
    x = graphc.randn(5, 3)
    warm(compiled, x)
    with graphc.no_grad():
        for parameter in net.parameters():
            parameter *= 2
            assert close(compiled(x), net(x))
        net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()})
        assert close(compiled(x), net(x))


def test_inputs_of_other_types_and_layouts():
    net = model()
    compiled = graphc.compile(net)
    warm(compiled, graphc.randn(5, 3))
    with graphc.no_grad():
        for other in (graphc.randn(3, 5).t(), graphc.randn(10, 3)[::2], graphc.randn(7, 3), graphc.randn(5, 6)[:, ::2]):
            assert close(compiled(other), net(other))


def test_gradients_are_recorded_where_they_are_asked_for():
    compiled = graphc.compile(lambda x: (x * x).sum())
    x = graphc.randn(4)
    assert not compiled(x).requires_grad and not compiled(x).requires_grad
    for _ in range(2):
        y = x.clone().requires_grad_()
        compiled(y).backward()
        assert close(y.grad, 2 * x)
        view = y * 1.0
        compiled(view[:]).backward()
        assert not compiled(x).requires_grad
    with graphc.no_grad():
        assert not compiled(y).requires_grad
    assert compiled(y).requires_grad


def test_a_compiled_function_inside_another_is_traced():
    inner = graphc.compile(lambda x: x * 2)
    x = graphc.randn(4)
    warm(inner, x)
    outer = graphc.compile(lambda x: inner(x) + 1)
    assert close(outer(x), x * 2 + 1) and close(outer(x), x * 2 + 1)


def test_captured_constants_are_looked_at():
    scale = graphc.tensor([2.0])
    compiled = graphc.compile(lambda x: x * scale)
    x = graphc.randn(4)
    for value in (2.0, 5.0, -1.0):
        scale.fill_(value)
        assert close(compiled(x), x * value) and close(compiled(x), x * value)


RESULTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tuple": (lambda x: (x + 1, x * 2), lambda x: [x + 1, x * 2]),
    "dict": (lambda x: {"a": x + 1}, lambda x: [x + 1]),
    "one in a list": (lambda x: [x - 1], lambda x: [x - 1]),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_nested_results(kind: str):
    function, flat = RESULTS[kind]
    compiled = graphc.compile(function)
    x = graphc.randn(4)
    for _ in range(3):
        result = compiled(x)
        values = list(result.values()) if isinstance(result, dict) else list(result)
        assert type(result) is type(function(x))
        assert all(close(a, b) for a, b in zip(values, flat(x), strict=True))


def test_threads_share_a_compiled_function():
    net = model()
    compiled = graphc.compile(net)
    xs = [graphc.randn(5, 3) for _ in range(8)]
    warm(compiled, xs[0])
    with graphc.no_grad():
        expected = [compiled(x).numpy() for x in xs]
    failures: list[int] = []

    def work(number: int) -> None:
        with graphc.no_grad():
            for _ in range(1000):
                if not np.array_equal(compiled(xs[number]).numpy(), expected[number]):
                    failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_that_train_do_not_lose_writes():
    net = nn.BatchNorm1d(4)
    compiled = graphc.compile(net)
    x = graphc.randn(5, 4)
    with graphc.no_grad():
        compiled(x)

    def work() -> None:
        with graphc.no_grad():
            for _ in range(200):
                compiled(x)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert net.num_batches_tracked.item() == 1601


def test_native_calls_check_the_assumptions_about_sizes(monkeypatch: pytest.MonkeyPatch):
    def function(x: graphc.Tensor, y: graphc.Tensor) -> graphc.Tensor:
        return x.sum() + (y.exp() if y.shape[0] > 3 else y)

    size = graphc.Dim("n", hint=2, common=(6,))  # the expected size is on the other side
    compiled = graphc.compile(function, dims={"x": (graphc.Dim("m"),), "y": (size,)})
    x = graphc.ones(2)
    with graphc.no_grad():
        warm(compiled, x, graphc.ones(5))
        find = compiled._find_and_run
        monkeypatch.setattr(compiled, "_find_and_run", refuse)
        for n in (4, 5, 9):
            assert close(compiled(graphc.ones(n), graphc.ones(n)), n + graphc.ones(n).exp())
        for n in (2, 3, 6):
            with pytest.raises(AssertionError, match="short way"):
                compiled(x, graphc.ones(n))
        monkeypatch.setattr(compiled, "_find_and_run", find)
        for n in (2, 6, 3, 5, 2):
            y = graphc.ones(n)
            assert close(compiled(x, y), 2 + (y.exp() if n > 3 else y))


def _reading(x: graphc.Tensor) -> graphc.Tensor:
    positive = x[x > 0]
    return positive.exp() if read_flag(x[0] > 1, "the first element") else positive


def test_paths_that_read_values_take_the_short_way(monkeypatch: pytest.MonkeyPatch):
    compiled = graphc.compile(_reading, dims={"x": (graphc.Dim("n"),)})
    rows = [[2.0, -1.0, 3.0], [0.5, -2.0], [3.0, 1.0, 2.0, 4.0], [-0.5, 2.0, -3.0], [-1.0, -1.0], [5.0]]
    with graphc.no_grad():
        for _ in range(3):
            for row in rows[:2]:
                compiled(graphc.tensor(row))
        monkeypatch.setattr(compiled, "_find_and_run", refuse)
        for row in rows:
            x = np.float32(row)
            positive = x[x > 0]
            result = compiled(graphc.tensor(row))
            np.testing.assert_allclose(result.numpy(), np.exp(positive) if x[0] > 1 else positive, rtol=1e-5)
        with pytest.raises(AssertionError, match="short way"):
            compiled(graphc.ones(2, 2))
    with pytest.raises(AssertionError, match="short way"):
        compiled(graphc.ones(2).requires_grad_())


def test_paths_notice_changes_outside():
    class Scaled(nn.Module):
        factor = 2.0

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(graphc.ones(3))

        def forward(self, x: graphc.Tensor) -> graphc.Tensor:
            return (x * self.weight)[x > 0] * self.factor

    net = Scaled()
    compiled, x = graphc.compile(net), graphc.tensor([1.0, -2.0, 3.0])
    with graphc.no_grad():
        warm(compiled, x)
        net.weight += 1
        assert compiled(x).tolist() == [4, 12]
        net.factor = 1.0
        assert compiled(x).tolist() == [2, 6]
        net.weight = nn.Parameter(graphc.zeros(3))
        assert compiled(x).tolist() == [0, 0]
        warm(compiled, x)
        assert compiled(x + 1).tolist() == [0, 0]
