"""Facts about taps: the value passes, also backwards, and passes leave them alone."""

from __future__ import annotations

import numpy as np

from graphc.ir.op import Trait
from graphc.ops.effects.tap import tap
from tests.ops.apply import gradients, run


def test_a_tap_changes_nothing():
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(run(lambda v: tap(v, name="x"), x), x)
    np.testing.assert_array_equal(gradients(lambda v: tap(v, name="x"), x)[0], [1, 1])


def test_a_tap_is_an_effect():
    assert tap.op.has(Trait.EFFECT) and not tap.op.has(Trait.PURE)
