"""Checks that are left out because they cannot fail, and those that stay."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.nn.functional as F
from graphc.passes.checks import SettleChecks
from graphc.passes.pipeline import optimize
from tests.passes.graph_text import graph_of


def checks(function, *examples, **state) -> int:
    return [n.op.name for n in optimize(gc.trace(function, *examples)).nodes()].count("check_index")


W, X, INDEX = gc.rand(5, 3), gc.rand(4, 5), gc.tensor([0, 4])


@pytest.mark.parametrize(
    ("function", "examples"),
    [
        (lambda w, x: F.embedding(x.argmax(1), w), (W, X)),
        (lambda w, x: w[x.argsort(1)[:, 0]], (W, X)),
        (lambda w, i: w[gc.clamp(i, 0, 4)], (W, INDEX)),
        (lambda w, i: w[i % 5], (W, INDEX)),
        (lambda w: w[gc.arange(3) + 2], (W,)),
        (lambda w: w[gc.tensor([0, -1])], (W,)),
        (lambda w, i: w[gc.where(i > 0, 4, 1)], (W, INDEX)),
        (lambda w, x: x.sort(1).values.gather(1, x.argmin(1, keepdim=True)), (W, X)),
        (lambda w, i: F.embedding(i.to(gc.uint8), gc.rand(256, 2)), (W, INDEX)),
    ],
)
def test_indices_that_cannot_be_wrong_are_not_checked(function, examples):
    assert checks(function, *examples) == 0


def test_indices_from_outside_are_checked_once():
    assert checks(lambda w, i: F.embedding(i, w), W, INDEX) == 1
    assert checks(lambda w, i: F.embedding(i, w) + F.embedding(i, w * 2), W, INDEX) == 1
    assert checks(lambda w, i: F.embedding(i, w) + F.embedding(i + 1, w), W, gc.tensor([0, 3])) == 2
    assert checks(lambda x, y: F.cross_entropy(x, y), X, gc.tensor(np.arange(4))) == 1


def test_an_option_leaves_them_out(monkeypatch):
    monkeypatch.setenv("GRAPHC_CHECK_INDICES", "off")
    assert checks(lambda w, i: F.embedding(i, w), W, INDEX) == 0
    function = gc.compile(lambda w, i: F.embedding(i, w))
    assert function(W, gc.tensor([0, 9])).tolist() == [W[0].tolist(), W[4].tolist()]
    with pytest.raises(gc.errors.IndexRangeError):
        F.embedding(gc.tensor([0, 9]), W)


@pytest.mark.parametrize(("high", "count"), [("time - 1", 0), ("time - 2", 1), ("19", 0), ("18", 1)])
def test_positions_below_a_size_of_the_call_are_in_range(high: str, count: int):
    graph = graph_of(f"""
        dim time = 2..20 hint 8
        graph @g(%x: f32[time]) -> (f32[time]) {{
          %i = iota() {{shape=[time], axis=0}} : i64[time]
          %ok = check_index(%i) {{low=0, high={high}, what="index"}} : bool[]
          %y = gather(%x, %i) {{axis=0}} : f32[time]
          return %y
        }}""")
    assert [n.op.name for n in SettleChecks().run(graph).graph.nodes()].count("check_index") == count
