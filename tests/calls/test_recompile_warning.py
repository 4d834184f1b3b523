"""The warning after many programs of one function says what varies and what to do, once."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import graphc as gc
from graphc import nn, optim
from graphc.errors import RecompileWarning
from graphc.nn import functional as F


@pytest.fixture
def after(monkeypatch: pytest.MonkeyPatch):
    return lambda number: monkeypatch.setenv("GRAPHC_WARN_PROGRAMS", str(number))


def test_a_dimension_that_varies_is_named_once(after: Any):
    after(4)
    fast = gc.compile(nn.Linear(3, 2).eval())
    sizes = (3, 5, 7, 9)
    with gc.no_grad():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for rows in sizes[:3]:
                fast(gc.ones(rows, 3))
                fast(gc.ones(rows, 3))
        with pytest.warns(RecompileWarning) as caught:
            fast(gc.ones(9, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for rows in range(10, 16):
                fast(gc.ones(rows, 3))
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert text.splitlines() == [
        "Linear: 4 programs were compiled, one for each signature of its arguments",
        "  argument input: dimension 0 took 4 sizes (3, 5, 7, 9)",
        "  try    pad to a few fixed sizes",
        "  try    set GRAPHC_WARN_PROGRAMS over 4, or to 0 for never, if this is intended",
    ]


def test_a_number_that_varies_is_named_and_what_varies_most_comes_first(after: Any):
    after(9)

    def scaled(x: Any, options: Any, factor: float = 1.0) -> Any:
        return options["y"] * x * float(factor) + options["shift"]

    fast = gc.compile(scaled)
    with pytest.warns(RecompileWarning) as caught:
        for i in range(9):
            fast(gc.ones(1 + i % 2, 1), {"y": gc.ones(1, 1 + i % 3), "shift": 2}, factor=0.5 * i)
    lines = str(caught[0].message).splitlines()
    assert lines[1:4] == [
        "  argument factor took 9 values (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, ...)",
        "  argument options['y']: dimension 1 took 3 sizes (1, 2, 3)",
        "  argument x: dimension 0 took 2 sizes (1, 2)",
    ]
    assert "EXPLAIN_RECOMPILES=1 shows lines" in "".join(lines) and "shift" not in "".join(lines)


def test_sizes_of_a_training_step_are_named(after: Any):
    after(3)
    net = nn.Linear(3, 2)
    step = gc.compile_step(net, F.mse_loss, optim.SGD(net.parameters(), lr=0.1))
    with pytest.warns(RecompileWarning) as caught:
        for rows in (1, 2, 4):
            step(gc.ones(rows, 3), gc.ones(rows, 2))
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert "argument input: dimension 0 took 3 sizes (1, 2, 4)" in text
    assert "argument target: dimension 0 took 3 sizes (1, 2, 4)" in text


def test_what_varies_outside_of_the_arguments_is_left_to_the_option_that_tells_guards(after: Any):
    after(3)
    state = {"factor": 1.0}
    fast = gc.compile(lambda x: x * state["factor"])
    with pytest.warns(RecompileWarning, match="outside its arguments") as caught:
        for i in range(3):
            state["factor"] = float(i)
            fast(gc.ones(2))
    assert "GRAPHC_EXPLAIN_RECOMPILES=1" in str(caught[0].message)


def test_numbers_whose_comparisons_have_other_answers_are_named_as_a_cause(after: Any):
    after(3)
    fast = gc.compile(lambda x, n: x * n if n > 3 else x + n if n > 2 else x - n)
    with pytest.warns(RecompileWarning, match="numbers compare differently, or a value outside") as caught:
        for n in (1.0, 5.0, 2.5):
            fast(gc.ones(2), n)
    assert "GRAPHC_EXPLAIN_RECOMPILES=1" in str(caught[0].message)


def test_a_warning_that_is_an_error_leaves_the_function_usable(after: Any):
    after(2)
    fast = gc.compile(lambda x: x + 1)
    fast(gc.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RecompileWarning):
            fast(gc.ones(2))
    assert fast(gc.ones(2)).tolist() == [2.0, 2.0] and len(fast.variants) == 2


def test_no_warning_where_none_is_wanted(after: Any):
    after(0)
    fast = gc.compile(lambda x: x + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in range(1, 12):
            fast(gc.ones(rows))
