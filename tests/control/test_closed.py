"""Functions whose outside tensors became arguments."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc.base.errors import TraceError
from graphc.control.closed import closed


def test_tensors_from_outside_become_arguments():
    scale, shift = gc.tensor(3.0), gc.tensor(1.0)
    pure, outside = closed(lambda x: {"y": x * scale + shift}, gc.ones(2))
    assert [x.item() for x in outside] == [3.0, 1.0]
    assert pure(gc.tensor([1.0, 2.0]), outside)["y"].tolist() == [4.0, 7.0]
    assert pure(gc.tensor([1.0, 2.0]), [gc.tensor(0.0), gc.tensor(5.0)])["y"].tolist() == [5.0, 5.0]


def test_gradients_reach_both_kinds_of_arguments():
    scale = gc.tensor(3.0)
    pure, outside = closed(lambda x: (x * scale).sum(), gc.ones(2))
    by_x, by_outside = gc.grad(pure, argnums=(0, 1))(gc.tensor([1.0, 2.0]), outside)
    assert by_x.tolist() == [3.0, 3.0]
    assert [x.item() for x in by_outside] == [3.0]


def test_a_function_that_draws_is_refused():
    with pytest.raises(TraceError, match="draws random numbers"):
        closed(lambda x: x + gc.rand(2), gc.ones(2))
