"""Tangents of tensors at the levels of forward mode."""

from __future__ import annotations

import graphc
from graphc.autograd.forward_ad import dual_level, make_dual
from graphc.tape.tangents import constants, has_tangents, levels, only, set_tangent, tangent_of, tangent_or_zeros


def test_tangents_belong_to_levels():
    x, t = graphc.ones(2), graphc.full((2,), 3.0)
    assert tangent_of(x, 0) is None and tangent_or_zeros(x, 0).tolist() == [0, 0]
    set_tangent(x, 0, t)
    assert tangent_of(x, 0) is t and tangent_or_zeros(x, 0) is t
    assert not has_tangents([x])  # The level is not open.
    with only((0,)):
        assert has_tangents([graphc.ones(1), x])


def test_levels_that_are_closed_off_take_nothing_along():
    with dual_level() as level:
        x = make_dual(graphc.ones(2), graphc.full((2,), 3.0))
        assert levels.get() == (level,)
        with only(()):
            assert not levels.get() and tangent_of(x * 2, level) is None
        assert tangent_of(x * 2, level).tolist() == [6, 6]
    assert not levels.get() and (x * 2)._tangents is None


def test_no_tangents_change_when_another_one_is_set():
    x, t = graphc.ones(2), graphc.ones(2)
    set_tangent(x, 0, t)
    kept = x._tangents
    set_tangent(x, 1, t)
    assert set(kept) == {0} and set(x._tangents) == {0, 1}


def test_constants_have_neither_gradients_nor_tangents():
    with dual_level() as level:
        x = make_dual(graphc.ones(2, requires_grad=True), graphc.ones(2))
        with constants():
            y = x * 2
        assert not y.requires_grad and tangent_of(y, level) is None
