"""Questions with one answer, and methods that call Python functions."""

from __future__ import annotations

import pytest

import graphc


@pytest.mark.parametrize(
    "name",
    [
        "is_sparse",
        "is_sparse_csr",
        "is_quantized",
        "is_nested",
        "is_meta",
        "is_mkldnn",
        "is_mps",
        "is_xpu",
        "is_xla",
        "is_vulkan",
        "is_ipu",
        "is_maia",
        "is_mtia",
    ],
)
def test_what_tensors_are_not(name):
    assert getattr(graphc.ones(2), name) is False and not graphc.ones(2).is_distributed()


def test_what_tensors_are():
    x = graphc.arange(6.0).reshape(2, 3)
    assert x.name is None and x.output_nr == 0 and x.sort(1).indices.output_nr == 0
    assert x.dim_order() == (0, 1) and x.t().dim_order() == (1, 0)
    assert x.to_dense() is x and x.to_dense(graphc.float64).dtype is graphc.float64
    assert x.is_set_to(x.view(2, 3)) and not x.is_set_to(x.clone()) and not x.is_set_to(x.t())
    assert graphc.tensor([2.0]).is_nonzero() and x.narrow_copy(0, 1, 1).tolist() == [[3, 4, 5]]


def test_python_functions_of_elements():
    x = graphc.arange(4.0).reshape(2, 2)
    assert x.apply_(lambda v: v * 2) is x and x.tolist() == [[0, 2], [4, 6]]
    assert x.map_(graphc.ones(2), lambda a, b: a + b).tolist() == [[1, 3], [5, 7]]
    assert x.map2_(x, x, lambda a, b, c: a + b + c).tolist() == [[3, 9], [15, 21]]
    assert x.bfloat16().apply_(lambda v: v / 2).tolist() == [[1.5, 4.5], [7.5, 10.5]]


def test_old_ways_to_make_tensors():
    x = graphc.ones(2, dtype=graphc.float64)
    assert x.new(2, 3).shape == (2, 3) and x.new([1, 2]).dtype is graphc.float64 and x.new().shape == (0,)
    assert x.new(graphc.ones(2, 3).shape).shape == (2, 3)


def test_a_subclass_has_the_same_memory_and_gradient():
    class Named(graphc.Tensor):
        pass

    x = graphc.ones(2, requires_grad=True)
    y = (x * 2).as_subclass(Named)
    assert type(y) is Named
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_methods_of_functions():
    x = graphc.tensor([-1.0, 0.25, 2.0])
    assert x.prelu(graphc.tensor([0.5])).tolist() == [-0.5, 0.25, 2.0] and x.hardshrink().tolist() == [-1, 0, 2]
    assert graphc.full((9,), 1.0).bernoulli().sum().item() == 9
    assert graphc.tensor([0.0, 1.0]).multinomial(3, True).tolist() == [1, 1, 1]
