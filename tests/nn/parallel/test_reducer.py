"""Buckets that fill in a backward pass, and what becomes of gradients that come in another order, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

import graphc as gc
from graphc.distributed import group, rank, threads
from graphc.distributed.channel import Channel
from graphc.errors import DistributedError, GradientError
from graphc.nn.parallel.buckets import in_buckets
from graphc.nn.parallel.reducer import Reducer, is_reduced_by_graph, reduced_by_graph


def made(finds_unused: bool = False, as_views: bool = False) -> tuple[list[Any], Reducer]:
    """Three parameters, each in a bucket of its own, and their reducer."""
    parameters = [gc.tensor([1.0, 2.0], requires_grad=True) for _ in range(3)]
    buckets = in_buckets([(f"p{i}", p) for i, p in enumerate(parameters)], 1, 1)
    reducer = Reducer(group(), Channel(group()), buckets, finds_unused, as_views)
    reducer.listen()
    return parameters, reducer


def begun(reducer: Reducer, output: Any) -> Any:
    """The output, whose backward pass begins reductions."""
    output.register_hook(lambda gradient: reducer.begin())
    return output


def test_gradients_become_means():
    def trained(_: int) -> list[Any]:
        (a, b, c), reducer = made()
        begun(reducer, (a * b * (rank() + 1) + c).sum()).backward()
        return [p.grad.tolist() for p in (a, b, c)]

    assert threads.run(3, trained) == [[[2.0, 4.0], [2.0, 4.0], [1.0, 1.0]]] * 3


def test_passes_that_have_not_begun_reductions_leave_gradients_alone():
    def trained(_: int) -> Any:
        (a, _, _), _ = made()
        (a * rank()).sum().backward()
        return a.grad.tolist()

    assert threads.run(2, trained) == [[0.0, 0.0], [1.0, 1.0]]


def test_who_has_no_gradient_is_named_by_all():
    def trained(_: int) -> str:
        (a, b, c), reducer = made()
        loss = begun(reducer, (a * c if rank() else a * b * c).sum())
        with pytest.raises(DistributedError) as caught:
            loss.backward()
        begun(reducer, (a * b * c).sum()).backward()
        return str(caught.value).splitlines()[0]

    first, second = threads.run(2, trained)
    assert first == second
    assert first == "DistributedDataParallel: the loss does not depend on 1 parameters: 'p1' (rank 1)"


def test_with_finds_unused_zeros_count_for_what_is_missing():
    def trained(_: int) -> Any:
        (a, b, c), reducer = made(finds_unused=True, as_views=True)
        begun(reducer, (a if rank() else a * b).sum()).backward()
        return b.grad.tolist(), c.grad

    assert threads.run(2, trained) == [([0.5, 1.0], None)] * 2


def test_a_gradient_that_grows_after_it_was_sent_is_an_error():
    def trained(_: int) -> None:
        (a, b, c), reducer = made()
        output = begun(reducer, (a * b * c).sum())
        again = (c * 1.0).sum()
        a.register_hook(lambda gradient: again.backward())
        with pytest.raises(GradientError, match="'p2' after it was reduced"):
            output.backward()

    threads.run(2, trained)


def test_outside_of_a_backward_pass_nothing_begins():
    _, reducer = made()
    with pytest.raises(GradientError, match="part of compiled code"):
        reducer.begin()


def test_graphs_may_take_over():
    assert not is_reduced_by_graph()
    with reduced_by_graph():
        assert is_reduced_by_graph()
    assert not is_reduced_by_graph()
