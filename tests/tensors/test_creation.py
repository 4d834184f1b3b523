"""Functions that make tensors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, AttributeValueError, DTypeError, ShapeError


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, graphc.int64, ()),
        (1.5, graphc.float32, ()),
        (True, graphc.bool_, ()),
        ([1, 2.0], graphc.float32, (2,)),
        ([[1], [2]], graphc.int64, (2, 1)),
        ([], graphc.float32, (0,)),
        ([[]], graphc.float32, (1, 0)),
        (np.float64(1), graphc.float64, ()),
        (np.zeros(2), graphc.float64, (2,)),
        ([np.zeros(2), np.zeros(2)], graphc.float64, (2, 2)),
        (np.zeros(0), graphc.float64, (0,)),
        ([True, False], graphc.bool_, (2,)),
        (np.array([1], np.int8), graphc.int8, (1,)),
    ],
)
def test_types_of_data(data, dtype, shape):
    x = graphc.tensor(data)
    assert x.dtype is dtype and x.shape == shape


@pytest.mark.parametrize("dtype", [graphc.float16, graphc.bfloat16, graphc.float64])
def test_numbers_are_of_any_default_type(dtype):
    graphc.set_default_dtype(dtype)
    try:
        made = (
            graphc.tensor(1.5),
            graphc.tensor([1.5, 2.0]),
            graphc.tensor([]),
            graphc.ones(2),
            graphc.arange(0, 1, 0.5),
        )
        assert {x.dtype for x in made} == {dtype} and made[1].tolist() == [1.5, 2.0]
        if dtype is graphc.float64:
            assert graphc.tensor([1j]).dtype is graphc.tensor(1j).dtype is graphc.complex128
        else:
            with pytest.raises(DTypeError, match="has no complex type"):
                graphc.tensor([1j])
    finally:
        graphc.set_default_dtype(graphc.float32)


def test_data_is_copied_unless_asked_for():
    array = np.zeros(2, np.float32)
    assert not np.shares_memory(graphc.tensor(array).numpy(), array)
    assert np.shares_memory(graphc.as_tensor(array).numpy(), array)
    assert np.shares_memory(graphc.from_numpy(array).numpy(), array)
    x = graphc.ones(2)
    assert graphc.as_tensor(x) is x
    assert graphc.as_tensor(x, dtype=graphc.float64).dtype is graphc.float64
    assert graphc.as_tensor([1]).tolist() == [1]
    assert graphc.tensor([graphc.tensor(1.0), graphc.tensor(2.0)]).tolist() == [1, 2]


def test_wrong_data():
    with pytest.raises(ShapeError, match="not a rectangular array"):
        graphc.tensor([[1], [2, 3]])
    with pytest.raises(DTypeError):
        graphc.tensor(["a"])
    with pytest.raises(DTypeError, match=r"longdouble|float128"):
        graphc.from_numpy(np.zeros(1, np.longdouble))
    with pytest.raises(ArgumentError, match="takes a numpy array, got list"):
        graphc.from_numpy([1])
    with pytest.raises(ArgumentError, match="there is no device 'tpu'"):
        graphc.zeros(1, device="tpu")


def test_constant_tensors():
    assert graphc.zeros(2, 3).shape == graphc.zeros((2, 3)).shape == graphc.empty([2, 3]).shape == (2, 3)
    assert graphc.ones(2, dtype=graphc.int64).tolist() == [1, 1]
    assert graphc.full((2,), 7).dtype is graphc.int64
    assert graphc.full((2,), 7.0, dtype="f64").dtype is graphc.float64
    assert graphc.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    like = graphc.zeros(2, dtype=graphc.float64)
    for made in (graphc.zeros_like(like), graphc.ones_like(like), graphc.empty_like(like), graphc.full_like(like, 3)):
        assert made.dtype is graphc.float64 and made.shape == (2,)
    assert graphc.ones_like(like, dtype=graphc.int8).dtype is graphc.int8
    assert graphc.ones(1, requires_grad=True).requires_grad
    with pytest.raises(ArgumentError, match="consists of ints"):
        graphc.zeros(1.5)


def test_ranges():
    assert graphc.arange(3).tolist() == [0, 1, 2] and graphc.arange(3).dtype is graphc.int64
    assert graphc.arange(1, 2, 0.5).tolist() == [1, 1.5] and graphc.arange(3.0).dtype is graphc.float32
    assert graphc.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert graphc.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    np.testing.assert_allclose(graphc.logspace(0, 2, 3).numpy(), [1, 10, 100], rtol=1e-6)
    with pytest.raises(AttributeValueError, match="steps of 0"):
        graphc.arange(0, 1, 0)
    with pytest.raises(AttributeValueError, match="do not lead from 5 to 1"):
        graphc.arange(5, 1)


def test_default_element_type():
    graphc.set_default_dtype(graphc.float64)
    try:
        assert graphc.get_default_dtype() is graphc.float64
        assert graphc.zeros(1).dtype is graphc.tensor(1.0).dtype is graphc.rand(1).dtype is graphc.float64
    finally:
        graphc.set_default_dtype(graphc.float32)
    with pytest.raises(DTypeError):
        graphc.set_default_dtype(graphc.int64)


def test_random_tensors():
    graphc.manual_seed(1)
    x, y = graphc.rand(2, 3), graphc.rand(2, 3)
    assert not x.equal(y)
    graphc.manual_seed(1)
    assert graphc.rand(2, 3).equal(x)
    assert graphc.randn(4, dtype=graphc.float64, requires_grad=True).requires_grad
    assert set(graphc.randint(2, 4, (100,)).tolist()) == {2, 3}
    assert graphc.randint(5, (2,), dtype=graphc.int32).dtype is graphc.int32
    assert sorted(graphc.randperm(10).tolist()) == list(range(10))
    assert graphc.rand_like(x).shape == graphc.randn_like(x).shape == (2, 3)
    p = graphc.tensor([0.0, 1.0])
    assert graphc.bernoulli(p).tolist() == [0, 1]
    assert graphc.normal(graphc.tensor([5.0, -5.0]), 1e-6).round().tolist() == [5, -5]
    assert graphc.normal(0.0, 1.0, (2, 2)).shape == (2, 2)
    with pytest.raises(ArgumentError, match="needs a size"):
        graphc.normal(0.0, 1.0)
    with pytest.raises(ArgumentError, match="low < high"):
        graphc.randint(3, 3, (1,))


def test_from_dlpack_shares_memory():
    array = np.arange(3.0)
    x = graphc.from_dlpack(array)
    array[0] = 7
    assert x.tolist() == [7, 1, 2] and x.dtype is graphc.float64


def test_names_of_types_and_numbers():
    assert graphc.float is graphc.float32 and graphc.long is graphc.int64 and graphc.bool is graphc.bool_
    assert graphc.inf == float("inf") and graphc.nan != graphc.nan and graphc.newaxis is None
    assert graphc.promote_types(graphc.int8, graphc.float32) is graphc.float32


def test_arange_by_keyword():
    assert graphc.arange(start=1, end=4).tolist() == [1, 2, 3]
    assert graphc.arange(0, end=5, step=2).tolist() == [0, 2, 4]


def test_poisson():
    rates = graphc.tensor([0.0, 0.5, 4.0, 1000.0]).expand(5000, 4)
    graphc.manual_seed(0)
    drawn = graphc.poisson(rates)
    graphc.manual_seed(0)
    assert graphc.equal(graphc.poisson(rates), drawn) and drawn.dtype is graphc.float32
    assert not graphc.equal(graphc.poisson(rates), drawn)
    counts = drawn.numpy()
    np.testing.assert_allclose(counts.mean(0), rates[0].numpy(), rtol=0.05)
    np.testing.assert_allclose(counts.var(0), rates[0].numpy(), rtol=0.1)
    assert np.all(counts == np.floor(counts))
    with pytest.raises(ArgumentError, match="rates of 0 or more"):
        graphc.poisson(graphc.tensor([-1.0]))


def test_a_block_of_a_device_is_one_of_its_thread():
    with graphc.device("cuda-emu"), ThreadPoolExecutor(1) as other:
        assert graphc.get_default_device() == "cuda-emu" and other.submit(graphc.get_default_device).result() == "cpu"


def test_the_default_device():
    assert graphc.get_default_device() == "cpu"
    with graphc.device("cuda-emu"):
        assert graphc.ones(2).device == graphc.get_default_device() == "cuda-emu"
        assert graphc.ones(2, device="cpu").device == "cpu" and graphc.as_tensor(graphc.zeros(1, device="cpu")).is_cpu
    graphc.set_default_device("cuda-emu")
    assert graphc.rand(2).device == "cuda-emu"
    graphc.set_default_device(None)
    assert graphc.rand(2).device == "cpu"
