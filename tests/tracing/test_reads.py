"""Values that calls read: what a trace makes of conditions and counts."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.tensors.tensor_base import front
from graphc.tracing.reads import ValueReads, folded, is_cheap, read_flag
from graphc.tracing.trace import Traced, trace_function

X = gc.from_numpy(np.float32([1, -2, 3]))


def _traced(function, *args: gc.Tensor, **options: object) -> tuple[Traced, ValueReads]:
    reads = ValueReads(**options)
    return trace_function(function, args, value_reads=reads), reads


def test_a_condition_is_computed_from_the_arguments_of_the_call() -> None:
    bias = gc.nn.Parameter(gc.tensor([0.0, 5.0, 0.0]))
    taken = []

    def function(x: gc.Tensor) -> gc.Tensor:
        taken.append(read_flag((x + bias).min() > 0, "the sign"))
        return x

    for first, expected in ((1.0, True), (-1.0, False)):
        traced, _ = _traced(function, gc.tensor([first, -2.0, 3.0]))
        assert taken.pop() is expected
        assert [read.answer for read in traced.reads] == [expected]


def test_eager_mode_reads_the_values_themselves() -> None:
    assert read_flag(X.min() < 0, "the sign")
    assert front().size((X > 0).sum(), 3, "a count") == 2


def test_a_count_becomes_a_dimension_up_to_its_limit() -> None:
    def function(x: gc.Tensor) -> gc.Tensor:
        return gc.arange(front().size((x > 0).sum(), x.numel(), "a count"))

    traced, _ = _traced(function, X, answers={0: 2})
    assert str(traced.graph).splitlines()[0:1] == ["dim count_0 = 0..3 hint 2"]
    assert traced.graph.outputs[0].shape == (traced.reads[0].input.node.attrs["equals"],)
    with pytest.raises(gc.errors.ShapeError, match=r"a count is a size of 9, outside of 0\.\.3"):
        _traced(function, X, answers={0: 9})


def test_a_condition_may_depend_on_a_count_that_was_read() -> None:
    taken = []

    def function(x: gc.Tensor) -> gc.Tensor:
        size = front().size((x > 0).sum(), x.numel(), "a count")
        taken.append(read_flag(gc.arange(size).sum() == 1, "the sum"))
        return x

    for values, expected in (([1.0, -2.0, 3.0], True), ([1.0, 2.0, 3.0], False)):
        traced, _ = _traced(function, gc.tensor(values))
        assert taken.pop() is expected
        assert len(traced.reads) == 2


def test_a_value_is_read_once() -> None:
    def function(x: gc.Tensor) -> gc.Tensor:
        condition, count = x.sum() > 0, (x > 0).sum()
        assert read_flag(condition, "a sum") is read_flag(condition, "a sum")
        assert front().size(count, 3, "a count") is front().size(count, 3, "a count")
        return x

    assert len(_traced(function, X)[0].reads) == 2


def test_constants_are_folded_and_need_no_read() -> None:
    def function(x: gc.Tensor) -> gc.Tensor:
        assert folded(gc.tensor([1, 2]).sum() == 3) is not None
        assert folded(x.sum()) is None
        assert read_flag(gc.tensor([1, 2]).sum() == 3, "a sum")
        return x

    assert _traced(function, X)[0].reads == ()


def test_conditions_on_a_few_integers_are_cheap() -> None:
    def function(x: gc.Tensor, rate: gc.Tensor) -> gc.Tensor:
        assert is_cheap(rate == 16000)
        assert not is_cheap(x.sum() > 0)
        assert not is_cheap(gc.arange(100).sum() == rate)
        return x

    _traced(function, X, gc.tensor(16000))


def test_a_graph_by_itself_checks_the_condition_and_refuses_counts() -> None:
    def function(x: gc.Tensor) -> gc.Tensor:
        return x if read_flag(x.sum() > 0, "the sign of the sum") else -x

    graph = gc.trace(function, X)
    np.testing.assert_array_equal(gc.compile(graph)(X).numpy(), X.numpy())
    with pytest.raises(gc.errors.ConditionError, match="the sign of the sum was True for the example arguments"):
        gc.compile(graph)(-X)
    with pytest.raises(gc.errors.ValueNeededError, match="a count is a size that only calls know"):
        gc.trace(lambda x: gc.arange(front().size((x > 0).sum(), 3, "a count")), X)
