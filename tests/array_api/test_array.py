"""The array of the standard: operators, indexing, and what it shares with tensors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.array_api import Array
from graphc.array_api.array import broadcast_together, floor_divided, remainder_of, standard
from graphc.base.errors import AttributeValueError, IndexRangeError, ShapeError


@pytest.fixture
def grid() -> Array:
    return xp.reshape(xp.arange(12.0), (3, 4))


def test_the_size_is_a_number(grid):
    assert grid.size == 12 and grid.T.size == 12
    assert gc.ones(3, 4).size() == (3, 4)


def test_an_array_is_a_tensor_with_its_methods(grid):
    assert isinstance(grid, gc.Tensor)
    assert grid.sum().item() == 66 and grid.argmax(1).tolist() == [3, 3, 3]


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!="])
def test_operators_give_arrays_and_promote_as_the_standard_says(symbol):
    scalar, vector = xp.asarray(3.0, dtype=xp.float64), xp.asarray([2.0, 5.0], dtype=xp.float32)
    for a, b in ((scalar, vector), (vector, scalar), (vector, 2.0), (2.0, vector)):
        result = eval(f"a {symbol} b", {"a": a, "b": b})
        assert type(result) is Array
        wide = gc.float64 if b is scalar or a is scalar else gc.float32
        assert result.dtype is (gc.bool_ if symbol[0] in "<>=!" else wide)
        expected = eval(f"a {symbol} b", {"a": np.asarray(a), "b": np.asarray(b)})
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)


def test_operators_of_bits():
    a, b = xp.asarray([1, 6, 12]), xp.asarray([3, 3, 3])
    assert (a & b).tolist() == [1, 2, 0] and (a | b).tolist() == [3, 7, 15] and (a ^ b).tolist() == [2, 5, 15]
    assert (a << 1).tolist() == [2, 12, 24] and (a >> b).tolist() == [0, 0, 1] and (~a).tolist() == [-2, -7, -13]
    assert (1 << b).tolist() == [8, 8, 8]
    assert {type(x) for x in (a & b, a | b, a ^ b, a << 1, a >> b, ~a, -a, abs(a), 1 << b, a.T)} == {Array}


def test_an_operator_leaves_other_objects_to_themselves():
    class Other:
        def __radd__(self, other):
            return "mine"

    assert xp.ones(2) + Other() == "mine"
    with pytest.raises(TypeError):
        xp.ones(2) + "text"


def test_writing_operators_keep_type_and_identity():
    x = xp.asarray([7.0, -7.0], dtype=xp.float32)
    before = x
    x += xp.asarray(1.0, dtype=xp.float64)
    x //= 3.0
    x %= 4.0
    assert x is before and type(x) is Array and x.dtype is gc.float32
    assert x.tolist() == [2.0, 2.0]


def test_quotients_with_infinities_are_those_of_the_standard():
    inf = float("inf")
    a, b = xp.asarray([inf, -inf, 1.0, -1.0, 7.0]), xp.asarray([2.0, 2.0, -inf, inf, 2.0])
    result = floor_divided(a, b)
    assert result.tolist() == [inf, -inf, 0.0, 0.0, 3.0]
    assert xp.signbit(result).tolist() == [False, True, True, True, False]
    assert (a // b).tolist() == result.tolist()
    assert floor_divided(xp.asarray([7]), xp.asarray([-2])).tolist() == [-4]


def test_a_remainder_of_zero_has_the_sign_of_the_divisor():
    result = remainder_of(xp.asarray([-0.0, 0.0, 4.0, 5.0]), xp.asarray([1.0, -1.0, -2.0, -3.0]))
    assert result.tolist() == [0.0, 0.0, 0.0, -1.0]
    assert xp.signbit(result).tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    "key",
    [
        (slice(None, None, -1),),
        (slice(None), slice(None, None, -2)),
        (..., slice(3, 0, -1)),
        (None, slice(2, None, -1), 1),
        (slice(0, 2, -1),),
        (slice(-1, -20, -1), slice(1, 3)),
    ],
)
def test_slices_go_backwards(grid, key):
    array = np.asarray(grid).copy()
    assert np.array_equal(np.asarray(grid[key]), array[key])
    value = np.arange(array[key].size, dtype=np.float32).reshape(array[key].shape)
    grid[key] = xp.asarray(value)
    array[key] = value
    assert np.array_equal(np.asarray(grid), array)


def test_a_number_is_written_to_slices_that_go_backwards(grid):
    grid[::-2, 1] = 50.0
    assert grid[:, 1].tolist() == [50.0, 5.0, 50.0]


def test_masks_pick_elements(grid):
    assert grid[grid > 8.0].tolist() == [9.0, 10.0, 11.0]
    assert grid[xp.asarray([True, False, True])].shape == (2, 4)
    assert grid[xp.asarray(True)].shape == (1, 3, 4) and grid[xp.asarray(False)].shape == (0, 3, 4)
    assert grid[xp.zeros((0, 4), dtype=xp.bool)].shape == (0,) and grid[xp.zeros(0, dtype=xp.bool)].shape == (0, 4)
    with pytest.raises(IndexRangeError, match="does not fit"):
        grid[xp.ones((2, 4), dtype=xp.bool)]


def test_masks_write_elements(grid):
    grid[grid > 8.0] = 0.0
    assert xp.max(grid).item() == 8.0
    scalar = xp.asarray(1.0)
    scalar[xp.asarray(True)] = 2.0
    scalar[xp.asarray(False)] = 3.0
    assert scalar.item() == 2.0


def test_entries_and_transposes_are_arrays(grid):
    assert [type(row) for row in grid] == [Array] * 3
    assert type(grid.T) is Array and type(grid.mT) is Array and grid.mT.shape == (4, 3)


def test_an_array_of_one_element_is_a_number():
    assert complex(xp.asarray(1.5)) == 1.5 + 0j
    assert float(xp.asarray(1.5)) == 1.5 and int(xp.asarray(2)) == 2 and bool(xp.asarray(True)) is True


def test_a_device_is_asked_for_without_streams():
    x = xp.ones(2)
    assert x.to_device(x.device).tolist() == [1.0, 1.0]
    with pytest.raises(AttributeValueError, match="streams"):
        x.to_device("cpu", stream=1)


def test_a_function_leaves_the_callers_tensor_what_it_is():
    tensor = gc.ones(2)
    result = standard(lambda x: x)(tensor)
    assert type(tensor) is gc.Tensor and type(result) is Array
    result += 1
    assert tensor.tolist() == [2.0, 2.0]


def test_gradients_reach_the_tensor_that_an_array_was_made_of():
    tensor = gc.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = xp.asarray(tensor)
    xp.sum(x[::-1] * x + x**2).backward()
    assert tensor.grad.tolist() == [8.0, 8.0, 8.0]


def test_a_parameter_becomes_an_array_that_shares_its_gradient():
    weight = gc.nn.Parameter(gc.ones(3))
    xp.sum(xp.multiply(xp.asarray(weight), 2.0)).backward()
    assert type(weight) is gc.nn.Parameter and weight.grad.tolist() == [2.0, 2.0, 2.0]


def test_compiled_code_takes_and_makes_arrays():
    def energy(x):
        names = x.__array_namespace__()
        y = names.asarray(x)
        return names.sum(names.exp(y)[::-1] // 2.0 + y % 3.0 + names.mean(y, keepdims=True))

    x = xp.asarray([0.5, -1.0, 2.0])
    assert gc.compile(energy)(x).item() == pytest.approx(energy(x).item())


def test_compiled_code_has_the_gradient_of_arrays():
    def energy(x):
        return xp.sum(xp.sin(x)[::-1] * xp.asarray(x))

    a, b = (gc.tensor([0.5, -1.0, 2.0], requires_grad=True) for _ in range(2))
    energy(a).backward()
    gc.compile(energy)(b).backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5)


def test_arrays_broadcast_to_their_common_shape():
    shapes = [t.shape for t in broadcast_together(xp.ones((2, 1)), xp.ones(3), xp.ones(()))]
    assert shapes == [(2, 3)] * 3
    with pytest.raises(ShapeError):
        broadcast_together(xp.ones(2), xp.ones(3))
