"""Tensors: values, printing, conversions, copies, autograd state."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, DTypeError, GradientError


def test_values_as_python_objects():
    assert graphc.tensor(2.5).item() == 2.5
    assert graphc.tensor([[1, 2]]).tolist() == [[1, 2]]
    assert int(graphc.tensor([3])) == 3
    assert float(graphc.tensor(0.5)) == 0.5
    assert [10, 20][graphc.tensor(1)] == 20
    assert bool(graphc.tensor([0.0])) is False
    assert 2 in graphc.tensor([1, 2])
    assert f"{graphc.tensor(1.23456):.2f}" == "1.23"
    with pytest.raises(ArgumentError, match="one element, this one has 2"):
        graphc.ones(2).item()
    with pytest.raises(ArgumentError, match="ambiguous"):
        bool(graphc.ones(2))
    with pytest.raises(ArgumentError, match="only integer tensors"):
        [1][graphc.tensor(0.0)]


def test_numpy_shares_memory():
    array = np.zeros(3, np.float32)
    x = graphc.from_numpy(array)
    x += 1
    assert array.tolist() == [1, 1, 1]
    assert x.numpy() is not None and np.shares_memory(x.numpy(), array)
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(GradientError, match="would lose its history"):
        x.requires_grad_().numpy()
    assert x.numpy(force=True).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (graphc.tensor([1, 2]), "tensor([1, 2])"),
        (graphc.tensor([1.0, 0.5]), "tensor([1.0000, 0.5000])"),
        (graphc.tensor(3.0), "tensor(3.)"),
        (graphc.tensor([True]), "tensor([True])"),
        (graphc.tensor([1], dtype=graphc.int32), "tensor([1], dtype=graphc.int32)"),
        (graphc.zeros(0), "tensor([])"),
        (graphc.zeros(2, 0), "tensor([], size=(2, 0))"),
        (graphc.ones(1, requires_grad=True), "tensor([1.], requires_grad=True)"),
        (graphc.ones(1, requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward>)"),
    ],
)
def test_repr(tensor, text):
    assert repr(tensor) == text


def test_metadata():
    x = graphc.zeros(2, 3, dtype=graphc.float64)
    assert x.shape == x.size() == (2, 3)
    assert x.size(-1) == 3
    assert (x.ndim, x.dim(), x.numel(), x.nbytes, x.itemsize, x.element_size()) == (2, 2, 6, 48, 8, 8)
    assert x.is_floating_point() and not graphc.tensor(1).is_floating_point()
    assert x.stride() == (3, 1) and x.t().stride(0) == 1
    assert x.is_contiguous() and not x.t().is_contiguous()
    assert x.contiguous() is x
    assert x.device == "cpu" and x.device.type == "cpu"
    assert graphc.is_tensor(x) and not graphc.is_tensor([1])


def test_to():
    x = graphc.ones(2)
    assert x.to(graphc.float64).dtype is graphc.float64
    assert x.to("cpu") is x
    assert x.to("cpu", graphc.int64).dtype is graphc.int64
    assert x.to(graphc.tensor(1)).dtype is graphc.int64
    assert x.to(dtype="f32", copy=True) is not x
    assert x.cpu() is x
    with pytest.raises(ArgumentError, match="there is no device 'tpu:0'"):
        x.to("tpu:0")
    with pytest.raises(ArgumentError, match="no argument 'typo'"):
        x.to(typo=1)


def test_clone_and_detach():
    x = graphc.ones(2, requires_grad=True)
    y = x.clone()
    assert y.requires_grad and not np.shares_memory(y.detach().numpy(), x.detach().numpy())
    d = x.detach()
    assert not d.requires_grad and d.is_leaf
    assert np.shares_memory(d.numpy(), x.detach().numpy())
    d += 1
    assert x.tolist() == [2, 2]
    assert x._version == 1
    z = (x * 1).detach_()
    assert z.is_leaf and not z.requires_grad


def test_data_replaces_memory():
    x = graphc.ones(2, requires_grad=True)
    x.data = graphc.tensor([5.0, 6.0])
    assert x.tolist() == [5, 6] and x.requires_grad
    x.data.mul_(2)
    assert x.tolist() == [10, 12]
    with pytest.raises(ArgumentError, match="data must be a tensor"):
        x.data = 3


def test_copies():
    x = graphc.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    y = copy.deepcopy({"a": x, "b": x})
    assert y["a"] is y["b"] and y["a"].requires_grad and y["a"].grad.tolist() == [2, 2]
    assert not np.shares_memory(y["a"].detach().numpy(), x.detach().numpy())
    z = pickle.loads(pickle.dumps(x))
    assert z.tolist() == [1, 1] and z.requires_grad
    with pytest.raises(GradientError, match="only leaf tensors"):
        copy.deepcopy(x * 2)


def test_requires_grad():
    x = graphc.tensor([1, 2])
    with pytest.raises(DTypeError, match="only floating-point"):
        x.requires_grad_()
    y = graphc.ones(1, requires_grad=True) * 2
    with pytest.raises(GradientError, match="cannot be switched off"):
        y.requires_grad = False
    assert not (y > 1).requires_grad
    assert not y.argmax().requires_grad


def test_new_tensors_of_the_same_type():
    x = graphc.zeros(1, dtype=graphc.float64)
    assert x.new_zeros(2, 3).dtype is graphc.float64
    assert x.new_ones((2,)).tolist() == [1, 1]
    assert x.new_full((1,), 7).tolist() == [7]
    assert x.new_tensor([1, 2], dtype=graphc.int64).dtype is graphc.int64
    assert x.new_empty(3).shape == (3,)


def test_old_constructor():
    assert graphc.Tensor([1, 2]).dtype is graphc.float32
    assert graphc.Tensor(2, 3).shape == (2, 3)


def test_legacy_name_of_the_gradient_function():
    x = graphc.ones(1, requires_grad=True)
    y = x * 2
    assert x.creator is None and y.creator is y.grad_fn
    assert y.grad_fn.next_functions[0][0].variable is x
