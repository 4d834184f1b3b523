"""``graphc.random``: the state of random numbers."""

from __future__ import annotations

import graphc
from graphc import random


def test_names_are_those_at_the_top():
    assert all(getattr(random, n) is getattr(graphc, n) for n in random.__all__ if n != "fork_rng")


def test_what_is_drawn_inside_is_drawn_again_behind():
    with random.fork_rng(devices=[]):
        inside = graphc.rand(3)
    assert graphc.equal(inside, graphc.rand(3))
    with random.fork_rng(enabled=False):
        inside = graphc.rand(3)
    assert not graphc.equal(inside, graphc.rand(3))
