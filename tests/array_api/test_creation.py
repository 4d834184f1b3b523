"""Functions that make arrays."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.array_api import Array
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, ShapeError


@pytest.mark.parametrize(
    ("data", "dtype"),
    [(1, gc.int64), (1.5, gc.float32), (True, gc.bool_), ([1, 2.5], gc.float32), ([[1], [2]], gc.int64)],
)
def test_numbers_and_sequences_become_arrays_of_the_default_type(data, dtype):
    result = xp.asarray(data)
    assert type(result) is Array and result.dtype is dtype and result.tolist() == np.asarray(data).tolist()


def test_a_type_can_be_asked_for():
    assert xp.asarray([1, 2], dtype=xp.int8).dtype is gc.int8
    assert xp.asarray(gc.ones(2), dtype=xp.float64).dtype is gc.float64
    with pytest.raises(DTypeError):
        xp.asarray(np.zeros(2, np.longdouble))


def test_memory_is_shared_unless_a_copy_is_asked_for():
    tensor, array = gc.zeros(2), np.zeros(2, np.float32)
    for source in (tensor, array):
        for copy in (None, False):
            xp.asarray(source, copy=copy)[0] = 1.0
            assert source[0] == 1.0
            source[0] = 0.0
        xp.asarray(source, copy=True)[0] = 1.0
        assert source[0] == 0.0


def test_copy_false_refuses_what_needs_one():
    for source, dtype in (([1.0], None), (1.0, None), (gc.ones(2), xp.float64), (np.ones(2), xp.float32)):
        with pytest.raises(ArgumentError, match="copy"):
            xp.asarray(source, dtype=dtype, copy=False)


def test_buffers_become_arrays():
    buffer = bytearray(b"ab")
    result = xp.asarray(buffer)
    result[0] = 99
    assert buffer == b"cb" and result.dtype is gc.uint8
    assert xp.asarray(memoryview(np.array([1, 2], np.int32)), copy=True).tolist() == [1, 2]


@pytest.mark.parametrize("shape", [3, (2, 3), (), (0,)])
def test_arrays_of_one_value(shape):
    extents = (shape,) if isinstance(shape, int) else shape
    assert xp.zeros(shape).shape == xp.ones(shape).shape == xp.empty(shape).shape == extents
    result = xp.full(shape, 7)
    assert result.dtype is gc.int64 and bool(xp.all(result == 7))
    like = xp.full_like(result, 2.5, dtype=xp.float64)
    assert like.dtype is gc.float64 and like.shape == extents and bool(xp.all(like == 2.5))
    assert xp.zeros_like(result).dtype is xp.ones_like(result).dtype is xp.empty_like(result).dtype is gc.int64


@pytest.mark.parametrize(
    "arguments", [(5,), (2, 5), (0, 10, 3), (5, 0, -2), (5, 2), (0, 5, -1), (0.5, 3.0), (1, 2, 0.25), (-3,)]
)
def test_ranges_are_those_of_numpy(arguments):
    result, expected = xp.arange(*arguments), np.arange(*arguments)
    assert result.dtype is (gc.int64 if expected.dtype.kind == "i" else gc.float32)
    assert result.tolist() == expected.tolist()


def test_a_range_has_a_step():
    with pytest.raises(AttributeValueError, match="step"):
        xp.arange(0, 5, 0)
    assert xp.arange(3, dtype=xp.uint8).dtype is gc.uint8 and xp.arange(0, 3, step=2).tolist() == [0, 2]


def test_linspace_leaves_out_the_end_on_demand():
    assert xp.linspace(0, 1, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert xp.linspace(0, 1, 4, endpoint=False).tolist() == [0.0, 0.25, 0.5, 0.75]
    assert xp.linspace(0, 1, num=0, endpoint=False).shape == (0,)


@pytest.mark.parametrize("k", [-5, -1, 0, 2, 2**70])
def test_a_diagonal_of_ones(k):
    assert xp.eye(3, 4, k=k).tolist() == np.eye(3, 4, k=min(k, 10)).tolist()
    assert xp.eye(2, dtype=xp.int8).dtype is gc.int8


def test_dlpack_shares_or_copies():
    array = np.zeros(3, np.float32)
    xp.from_dlpack(array)[0] = 1.0
    xp.from_dlpack(array, copy=True)[1] = 1.0
    assert array.tolist() == [1.0, 0.0, 0.0]
    assert xp.from_dlpack(gc.ones(2), device="cpu", copy=False).tolist() == [1.0, 1.0]
    assert np.from_dlpack(xp.ones(2), copy=True).tolist() == [1.0, 1.0]


def test_grids_and_triangles():
    assert [g.shape for g in xp.meshgrid(xp.arange(2), xp.arange(3))] == [(3, 2)] * 2
    assert [g.shape for g in xp.meshgrid(xp.arange(2), xp.arange(3), indexing="ij")] == [(2, 3)] * 2
    square = xp.reshape(xp.arange(9), (3, 3))
    assert xp.tril(square, k=-1).tolist() == np.tril(np.arange(9).reshape(3, 3), -1).tolist()
    assert xp.triu(square, k=1).tolist() == np.triu(np.arange(9).reshape(3, 3), 1).tolist()
    with pytest.raises(ShapeError):
        xp.tril(xp.ones(3))


def test_creation_is_traced():
    result = gc.compile(lambda x: x + xp.arange(3.0) * xp.eye(3)[0] + xp.linspace(0, 1, 3) + xp.asarray(1.0))(
        gc.zeros(3)
    )
    assert result.tolist() == [1.0, 1.5, 2.0]
