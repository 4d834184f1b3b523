"""Functions that make complex tensors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc


def test_python_numbers_become_the_default_type():
    assert graphc.tensor(1j).dtype is graphc.complex64
    assert graphc.tensor([1, 2j]).dtype is graphc.complex64
    assert graphc.tensor(np.array([1j])).dtype is graphc.complex128
    assert (graphc.ones(2) * 1j).dtype is graphc.complex64
    assert (graphc.ones(2, dtype=graphc.float64) * 1j).dtype is graphc.complex128
    assert (graphc.ones(2, dtype=graphc.complex64) * graphc.tensor(1.0, dtype=graphc.float64)).dtype is graphc.complex64
    assert graphc.full((2,), 1 - 1j).dtype is graphc.complex64


def test_makers_take_complex_types():
    for made in (graphc.zeros(2, dtype=graphc.cfloat), graphc.ones(2, dtype=graphc.cfloat), graphc.eye(2, dtype="c64")):
        assert made.dtype is graphc.complex64
    graphc.manual_seed(0)
    drawn = graphc.randn(20_000, dtype=graphc.complex64)
    assert abs(float(drawn.abs().square().mean()) - 1) < 0.05
    assert graphc.rand(3, dtype=graphc.complex128).imag.max() < 1


def test_two_real_tensors_make_a_complex_one():
    x = graphc.complex(graphc.tensor([1.0, 2.0]), graphc.tensor([3.0]))
    np.testing.assert_array_equal(x.numpy(), [1 + 3j, 2 + 3j])
    np.testing.assert_allclose(
        graphc.polar(graphc.tensor(2.0), graphc.tensor(np.float32(np.pi / 2))).numpy(), 2j, atol=1e-6
    )
    with pytest.raises(graphc.errors.DTypeError, match="polar takes f32 or f64"):
        graphc.polar(graphc.tensor(1), graphc.tensor(1))
    for function in (graphc.complex, graphc.polar):
        with pytest.raises(graphc.errors.DTypeError, match="the parts are f32 and f64"):
            function(graphc.ones(2), graphc.ones(2).double())
    with pytest.raises(graphc.errors.ShapeError, match="is not 2"):
        graphc.view_as_complex(graphc.ones(2, 3))


@pytest.mark.parametrize(
    "function",
    [graphc.complex, lambda a, b: graphc.complex(a, a) + b, lambda a, b: b * graphc.polar(a, b)],
    ids=["complex", "sum", "polar"],
)
def test_parts_broadcast_in_compiled_code(function):
    for shapes in (((5,), ()), ((), (5,)), ((2, 1), (3,))):
        a, b = (graphc.rand(*s) for s in shapes)
        np.testing.assert_allclose(graphc.compile(function)(a, b).numpy(), function(a, b).numpy(), rtol=1e-6)


def test_parts_are_written_to_out():
    out = graphc.empty(2, dtype=graphc.complex64)
    for function, wanted in ((graphc.complex, [1 + 0j, 1 + 0j]), (graphc.polar, [1 + 0j, 1 + 0j])):
        assert function(graphc.ones(2), graphc.zeros(2), out=out.zero_()) is out and out.tolist() == wanted
    with pytest.raises(graphc.errors.DTypeError):
        graphc.complex(graphc.ones(2), graphc.zeros(2), out=graphc.empty(2))
