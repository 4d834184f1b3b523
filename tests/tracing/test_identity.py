"""Arguments that are one tensor, or share memory with one that is written to."""

from __future__ import annotations

import logging

import pytest

import graphc
from graphc.errors import ArgumentError
from graphc.tracing.identity import check_apart, repeats


def test_places_of_the_same_tensor():
    a, b = graphc.ones(2), graphc.ones(2)
    assert repeats([]) == repeats([a]) == repeats([a, b]) == ()
    assert repeats([a, b, a, b]) == (0, 1, 0, 1)


def test_shared_memory_is_told_from_interleaved_memory():
    base = graphc.zeros(4, 6)
    check_apart("f", [0], [base[:, ::2], base[:, 1::2]])
    check_apart("f", [], [base, base[0]])
    check_apart("f", [0], [base, base])
    with pytest.raises(ArgumentError, match="tensor 1, which shares memory with tensor 0"):
        check_apart("f", [1], [base[1:], base[:2]])


def test_a_function_that_asks_whether_tensors_are_one_is_traced_for_both():
    def function(x, y):
        return x + 1 if x is y else x * y

    fast, a, b = graphc.compile(function), graphc.full((2,), 3.0), graphc.full((2,), 5.0)
    with graphc.no_grad():
        for _ in range(3):
            assert fast(a, b).tolist() == [15, 15]
            assert fast(a, a).tolist() == [4, 4]
    assert len(fast.variants) == 2


def test_a_function_that_does_not_ask_keeps_its_short_way():
    fast, a, b = graphc.compile(lambda x, y: x * y if x is not None else y), graphc.ones(2), graphc.ones(2)
    with graphc.no_grad():
        fast(a, b)
        assert fast.variants[0].shortcut() is not None
        assert fast(a, a).tolist() == [1, 1]


def test_why_it_is_traced_again_is_told(monkeypatch, caplog):
    monkeypatch.setenv("GRAPHC_EXPLAIN_RECOMPILES", "1")
    fast, a = graphc.compile(lambda x, y: x * 2 if x is y else y), graphc.ones(1)
    with caplog.at_level(logging.WARNING):
        fast(a, graphc.ones(1))
        fast(a, a)
    assert "arguments that are one tensor: none -> 0 and 1" in caplog.text


def test_a_step_takes_one_tensor_twice():
    net = graphc.nn.Bilinear(2, 2, 1)
    step = graphc.compile_step(net, lambda y: y.sum(), graphc.optim.SGD(net.parameters(), lr=0.0))
    x, y = graphc.ones(1, 2), graphc.ones(1, 2)
    assert step((x, y)).item() == pytest.approx(step((x, x)).item())
