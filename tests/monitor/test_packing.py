"""Values as trees and back: the same values, the same identities, the same strides."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArgumentError, ArtifactError
from graphc.monitor.packing import Packer, Unpacker, arrays_in


def there_and_back(value, known=()):
    return Unpacker(known).unpack(Packer(known).pack(value, "argument"))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2.5,
        "text",
        (1, [2, {"a": (3,), 4: None}]),
        {},
        (),
        [],
        slice(1, None, 2),
        gc.float32,
        {(1, 2): 3},
    ],
)
def test_plain_values_come_back(value):
    found = there_and_back(value)
    assert found == value and type(found) is type(value)


def test_tensors_and_arrays_come_back_with_their_bits_and_strides():
    base = np.arange(6, dtype=np.float32).reshape(2, 3).T
    tensor = gc.from_numpy(base).requires_grad_()
    found = there_and_back({"a": tensor, "b": [base, np.float32(2.5), np.int64(3)]})
    assert found["a"].requires_grad and np.array_equal(found["a"].detach(), base)
    assert found["a"].numpy(force=True).strides == base.strides
    assert type(found["b"][0]) is np.ndarray and found["b"][1].dtype == np.float32 and found["b"][2] == 3


def test_one_tensor_twice_stays_one():
    x = gc.ones(2)
    found = there_and_back((x, [x], gc.ones(2)))
    assert found[0] is found[1][0] and found[0] is not found[2]


def test_what_stands_by_itself_is_a_reference():
    net = gc.nn.Linear(1, 1)
    assert there_and_back([net, 1], (net,)) == [net, 1]
    with pytest.raises(ArgumentError, match=r"argument\[0\] is a Linear"):
        there_and_back([net])
    assert Packer(lenient=True).pack([net], "") == {"list": [{"other": "Linear"}]}


def test_trees_of_others_are_refused():
    for tree in ({"known": 3}, {"same": 0}, {"other_kind": 1}, [], {"dict": 3}, {"dtype": "f99"}):
        with pytest.raises(ArtifactError, match="damaged"):
            Unpacker().unpack(tree)


def test_arrays_by_place():
    tree = Packer().pack({"a": (gc.ones(2), 3), "b": {"c": None}}, "")
    assert {k: np.asarray(v).tolist() for k, v in arrays_in(tree).items()} == {"['a'][0]": [1.0, 1.0], "['a'][1]": 3}
