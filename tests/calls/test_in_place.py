"""Programs on tensors that each call names: what they take, and what they write."""

import numpy as np

import graphc
from graphc.base.dtypes import float32
from graphc.calls.in_place import InPlace, Norm, addresses, can_be_written
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import composite


def test_other_tensors_of_the_same_shapes_in_each_call():
    types = [(float32, (3,)), (float32, (2, 2))]
    scale = InPlace("scale", types, float32, ew.mul)
    largest = Norm("largest", types[:1], lambda given: composite.norm(given[0], float("inf")))
    for seed in range(3):
        tensors = [graphc.full((3,), seed + 1.0), graphc.full((2, 2), 2.0)]
        places = addresses(tensors)
        scale.run(tensors, places, 0.5)
        np.testing.assert_array_equal(tensors[0].numpy(), np.full(3, (seed + 1) / 2))
        np.testing.assert_array_equal(tensors[1].numpy(), np.ones((2, 2)))
        assert [t._version for t in tensors] == [1, 1]
        assert largest.run(tensors[:1], places[:1]) == (seed + 1) / 2


def test_only_dense_memory_of_their_own_is_taken():
    memory = np.zeros((4, 4), np.float32)
    whole, row, column = graphc.from_numpy(memory), graphc.from_numpy(memory[1]), graphc.from_numpy(memory[:, 1])
    assert addresses([row, graphc.from_numpy(memory[2])]) is not None
    assert addresses([whole, row]) is None
    assert addresses([row, row]) is None
    assert addresses([column]) is None
    assert addresses([graphc.zeros(3)[1:]]) is None
    memory.flags.writeable = False
    assert addresses([graphc.from_numpy(memory[0])]) is None
    assert not can_be_written([memory])
    assert can_be_written([np.zeros(3), np.zeros((0, 2))])
