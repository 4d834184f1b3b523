"""References that prepare what attributes say are functions like others, and do their preparation once."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.ir.op import REGISTRY
from graphc.ops.movement import shape
from graphc.ops.prepared import Prepared, bound

ARRAY = np.arange(6.0).reshape(2, 3)


def test_what_attributes_say_is_prepared_once():
    prepared = []

    def scale(factor):
        prepared.append(factor)
        return lambda x: x * factor

    reference = Prepared(scale)
    twice = bound(reference, {"factor": 2})
    assert prepared == [2]
    assert (twice(ARRAY) == ARRAY * 2).all() and (twice(ARRAY[0]) == ARRAY[0] * 2).all() and prepared == [2]
    assert (reference(ARRAY, factor=3) == ARRAY * 3).all() and prepared == [2, 3]


def test_other_references_take_their_attributes_with_each_call():
    def add(x, y, negative):
        return x - y if negative else x + y

    assert (bound(add, {"negative": True})(ARRAY, 1) == ARRAY - 1).all()
    assert bound(np.negative, {}) is np.negative


@pytest.mark.parametrize("op", [shape.reshape.op, shape.transpose.op, shape.slice.op, shape.flip.op])
def test_both_ways_to_call_a_reference_give_the_same(op):
    assert REGISTRY[op.name] is op and type(op.reference) is Prepared
    for sample in op.samples():
        attrs = op.normalize(sample.attrs)
        once, kept = op.reference(*sample.operands, **attrs), bound(op.reference, attrs)(*sample.operands)
        assert type(once) is type(kept) is np.ndarray and once.strides == kept.strides
        np.testing.assert_array_equal(once, kept)
