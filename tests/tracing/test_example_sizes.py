"""Traces for the sizes of their examples, and for other sizes where these fail."""

import pytest

import graphc as gc
from graphc.base.sizes.assumptions import Assumption, Assumptions, assuming
from graphc.base.sizes.named_dims import dimensions
from graphc.errors import ShapeError
from graphc.models.model_trace import snapshot
from graphc.nn import functional as F
from graphc.tracing.example_sizes import MOST_TRACES, first_trace, sizes_with_other_answers

ROWS, TIME = gc.Dim("rows"), gc.Dim("time")
(N,), (M,) = dimensions([ROWS]).values(), dimensions([TIME]).values()


def reflected(x):
    return F.pad(x, (0, 64), mode="reflect")


def branching(x):
    return x * 2 if x.shape[0] > 100 else x + 1


def test_a_trace_answers_for_the_sizes_of_its_examples():
    graph = gc.trace(branching, gc.ones(150), dims={"x": (ROWS,)})
    assert [str(a).partition(" (")[0] for a in graph.assumptions] == ["rows > 100"]
    assert {"mul"} == {n.op.name for n in graph.nodes() if n.op.name in ("mul", "add")}


def test_sizes_of_examples_become_hints_where_the_declared_ones_break_an_assumption():
    declared = {"x": (gc.Dim("rows", hint=32),)}
    kept = snapshot(lambda x: x + 1, [gc.ones(150)], dims=declared).graph
    moved = snapshot(branching, [gc.ones(150)], dims=declared).graph
    assert [d.hint for d in (*kept.dims.values(), *moved.dims.values())] == [32, 150]


def test_a_trace_by_hints_finds_sizes_that_the_function_accepts():
    dims = {"x": (ROWS, TIME)}
    with pytest.raises(ShapeError, match="too large for a dimension"):
        snapshot(reflected, [gc.ones(2, 32)], dims=dims)
    graph = snapshot(reflected, [gc.ones(2, 32)], dims=dims, by_hints=True).graph
    assert {d.name: d.hint for d in graph.dims.values()} == {"rows": 32, "time": 65}
    assert [str(a).partition(" (")[0] for a in graph.assumptions] == ["64 <= time - 1"]


def test_a_trace_that_fails_for_all_sizes_raises_the_first_error():
    tried = []

    def attempt(assumptions):
        tried.append(assumptions.sizes[N])
        with assuming(assumptions):
            if len(tried) * 50 >= ROWS:
                raise ShapeError("below the limit")
        raise ShapeError("above the limit")

    with pytest.raises(ShapeError, match="below the limit"):
        first_trace(attempt, {N: 32})
    assert tried[:2] == [32, 51] and len(set(tried)) == len(tried) <= MOST_TRACES


def test_relations_of_two_dimensions_are_solved_by_doubling():
    question = Assumption("<=", ROWS * TIME, 5000, True)
    assert next(iter(sizes_with_other_answers([question], {N: 32, M: 32}))) == {N: 128, M: 128}


def test_earlier_questions_hold_for_the_sizes_that_answer_a_later_one_otherwise():
    assumptions = Assumptions({N: 32})
    with assuming(assumptions):
        assert ROWS <= 40 and not ROWS <= 30
    candidates = list(sizes_with_other_answers(list(assumptions.found.values()), {N: 32}))
    assert candidates[0] == {N: 30} and candidates[1][N] > 40
