"""Functions that arrange elements, beside those of numpy."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.array_api import Array
from graphc.base.errors import ArgumentError, AttributeValueError, IndexRangeError, ShapeError

VALUES = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("broadcast_to", ((5, 2, 3, 4),), {}),
        ("expand_dims", (0,), {}),
        ("expand_dims", ((0, -1),), {}),
        ("flip", (), {}),
        ("flip", (), {"axis": (0, -1)}),
        ("moveaxis", (0, -1), {}),
        ("moveaxis", ((0, 1), (1, 2)), {}),
        ("permute_dims", ((2, 0, 1),), {}),
        ("repeat", (2,), {}),
        ("repeat", (2,), {"axis": 1}),
        ("reshape", ((4, -1),), {}),
        ("roll", (2,), {}),
        ("roll", ((1, 2),), {"axis": (0, 2)}),
        ("roll", (1,), {"axis": (0, 2)}),
        ("tile", ((2, 1),), {}),
        ("tile", ((2, 1, 1, 2),), {}),
    ],
)
def test_the_function_is_that_of_numpy(name, arguments, options):
    found = getattr(xp, name)(gc.tensor(VALUES), *arguments, **options)
    wanted = getattr(np, name)(VALUES, *arguments, **options)
    assert type(found) is Array
    np.testing.assert_array_equal(np.asarray(found), wanted)


def test_arrays_are_repeated_to_their_common_shape():
    found = xp.broadcast_arrays(xp.ones((2, 1)), xp.zeros(3, dtype=xp.int8))
    assert type(found) is tuple and [f.shape for f in found] == [(2, 3)] * 2 and found[1].dtype is gc.int8
    assert xp.broadcast_shapes((2, 1), (3,)) == (2, 3) and xp.broadcast_shapes() == ()
    with pytest.raises(ShapeError):
        xp.broadcast_shapes((2,), (3,))


def test_arrays_are_joined_as_their_common_type():
    a, b = xp.ones((2, 2)), xp.zeros((2, 2), dtype=xp.float64)
    assert xp.concat([a, b]).shape == (4, 2) and xp.concat([a, b], axis=-1).dtype is gc.float64
    assert xp.concat([a, xp.ones((0, 3))], axis=None).shape == (4,)
    assert xp.stack([a, b], axis=-1).shape == (2, 2, 2) and xp.stack([a, b]).dtype is gc.float64
    assert xp.concat([xp.ones(()), a][1:]).tolist() == a.tolist()


def test_an_array_falls_apart_along_an_axis():
    found = xp.unstack(gc.tensor(VALUES), axis=1)
    assert type(found) is tuple and [f.shape for f in found] == [(2, 4)] * 3


def test_only_axes_of_size_1_are_left_out():
    assert xp.squeeze(xp.ones((1, 2, 1)), (0, -1)).shape == (2,)
    with pytest.raises(ShapeError, match="not of size 1"):
        xp.squeeze(xp.ones((1, 2)), 1)


def test_axes_out_of_range_are_refused():
    with pytest.raises(IndexRangeError):
        xp.expand_dims(xp.ones(2), 2)
    with pytest.raises(AttributeValueError, match="twice"):
        xp.expand_dims(xp.ones(2), (0, 0))
    with pytest.raises(IndexRangeError):
        xp.squeeze(xp.ones(1), 1)


def test_a_shape_without_a_copy_or_with_one():
    x = gc.zeros(2, 3)
    xp.reshape(x, (6,), copy=False)[0] = 1.0
    xp.reshape(x, (6,), copy=True)[1] = 1.0
    assert x.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    with pytest.raises(ArgumentError, match="copy"):
        xp.reshape(x.T, (6,), copy=False)


def test_shapes_without_elements():
    assert xp.reshape(xp.ones((0, 3)), (3, -1)).shape == (3, 0)
    with pytest.raises(ShapeError, match="any size"):
        xp.reshape(xp.ones((0, 3)), (0, -1))
    assert xp.roll(xp.ones((0, 3)), 1, axis=0).shape == (0, 3) and xp.roll(xp.ones(()), 1).shape == ()
    assert xp.flip(xp.asarray([1, 2]), axis=()).tolist() == [1, 2] and xp.tile(xp.ones(2), ()).shape == (2,)


def test_arrangements_are_compiled_with_their_gradients():
    def energy(x):
        y = xp.concat([xp.flip(x, axis=0), xp.roll(x, 1, axis=1)], axis=0)
        return xp.sum(xp.permute_dims(y, (1, 0)) * xp.reshape(xp.arange(24.0), (4, 6)))

    a, b = (gc.ones(3, 4, requires_grad=True) for _ in range(2))
    energy(a).backward()
    gc.compile(energy)(b).backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy())
