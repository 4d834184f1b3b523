"""Facts about elementwise ops: promotion, integer division, ties, NaN, shifts, saturating casts."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.base.dtypes import ALL, BY_NAME, elements
from graphc.ops.pointwise import elementwise as e
from tests.ops.apply import gradients, run, traced

NAN, INF = np.nan, np.inf


def dtype_name(function, *arrays):
    return traced(function, *arrays)[1][0].dtype.name


def test_scalars_do_not_widen():
    assert dtype_name(lambda x: e.add(x, 2.5), np.ones(2, "float32")) == "f32"
    assert dtype_name(lambda x: e.add(2, x), np.ones(2, "int8")) == "i8"
    assert dtype_name(lambda x: e.mul(x, 2.0), np.ones(2, "int8")) == "f32"
    assert dtype_name(lambda x: e.add(x, 1), np.array([True])) == "i64"
    assert dtype_name(lambda x: e.add(x, True), np.array([True])) == "bool"


def test_tensors_promote_and_dimensions_go_before_rank_zero():
    assert dtype_name(e.add, np.ones(2, "float32"), np.ones(2, "float64")) == "f64"
    assert dtype_name(e.add, np.ones(2, "float32"), np.ones((), "float64")) == "f32"
    assert dtype_name(e.add, np.ones(2, "int32"), np.ones((), "float64")) == "f64"
    assert dtype_name(e.add, np.ones(2, "int8"), np.ones(2, "uint8")) == "i16"


SHAPES = (((2,), (2,)), ((2,), ()), ((), (2,)), ((), ()))
PAIRS = [(a, b) for a in ALL for b in ALL]


def promoted(shapes, types):
    return BY_NAME[dtype_name(e.mul, *(elements(np.ones(s), d) for s, d in zip(shapes, types, strict=True)))].long_name


@pytest.mark.parametrize("a,b", PAIRS, ids=str)
def test_promotion_is_torch(torch, a, b):
    types = [getattr(torch, d.long_name) for d in (a, b)]
    for shapes in SHAPES:
        try:
            expected = torch.result_type(*(torch.ones(s, dtype=t) for s, t in zip(shapes, types, strict=True)))
        except RuntimeError:  # PyTorch has no common type of unsigned numbers of 16 bits and more and many others
            number = next((d for d in (a, b) if d.is_complex), None)
            assert is_only_of_numpy(a, b) if number is None else promoted(shapes, (a, b)) == number.long_name
            continue
        wanted = "complex64" if expected is torch.complex32 else str(expected).removeprefix("torch.")
        assert promoted(shapes, (a, b)) == wanted, shapes


def is_only_of_numpy(a, b):
    """Whether one type is u16, u32 or u64, and the other one another type of whole numbers or bool."""
    wide = [d.kind == "u" and d.bits > 8 for d in (a, b)]
    return a is not b and any(wide) and not (a.is_differentiable or b.is_differentiable)


@pytest.mark.parametrize("a,b", [pair for pair in PAIRS if is_only_of_numpy(*pair)], ids=str)
def test_promotion_of_unsigned_numbers_is_that_of_numpy(a, b):
    for shapes in (((2,), (2,)), ((), ())):
        assert promoted(shapes, (a, b)) == np.result_type(a.long_name, b.long_name).name


def test_true_division_of_integers_is_float():
    result = run(e.div, np.array([7, -7]), np.array([2, 2]))
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [3.5, -3.5])


def test_floor_division_goes_down_and_mod_has_the_sign_of_the_divisor():
    x, y = np.array([7, -7, 7, -7, 5, -128], "int8"), np.array([2, 2, -2, -2, 0, -1], "int8")
    np.testing.assert_array_equal(run(e.floor_div, x, y), [3, -4, -4, 3, 0, -128])
    np.testing.assert_array_equal(run(e.mod, x, y), [1, 1, -1, -1, 0, 0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "uint8"])
def test_division_is_torch(torch, dtype):
    random = np.random.default_rng(0)
    x, y = random.uniform(-9, 9, 200).astype("int8").astype(dtype), random.uniform(-4, 4, 200).astype("int8")
    y = np.where(y == 0, 3, np.abs(y) if dtype == "uint8" else y).astype(dtype)
    if dtype.startswith("f"):
        x, y = x + random.uniform(0, 1, 200).astype(dtype), y / 2
        x[:6], y[:6] = [INF, -INF, NAN, 1, -1, 0], [2, 2, 2, INF, INF, 0]
    tx, ty = torch.tensor(x), torch.tensor(y)
    np.testing.assert_array_equal(run(e.floor_div, x, y), torch.floor_divide(tx, ty).numpy())
    np.testing.assert_array_equal(run(e.mod, x, y), torch.remainder(tx, ty).numpy())


def test_sign_of_nan_is_zero():
    np.testing.assert_array_equal(run(e.sign, np.array([NAN, -0.0, -INF, 3.0])), [0, 0, -1, 1])


def test_extremes_propagate_nan():
    x, y = np.array([NAN, 1.0, 2.0]), np.array([1.0, NAN, 3.0])
    np.testing.assert_array_equal(run(e.maximum, x, y), [NAN, NAN, 3])
    np.testing.assert_array_equal(run(e.minimum, x, y), [NAN, NAN, 2])


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_gradients_of_extremes_are_torch(torch, name):
    x, y = np.array([1.0, 2.0, 3.0, NAN, 1.0]), np.array([1.0, 3.0, 2.0, 1.0, NAN])
    tx, ty = torch.tensor(x, requires_grad=True), torch.tensor(y, requires_grad=True)
    getattr(torch, name)(tx, ty).sum().backward()
    gx, gy = gradients(getattr(e, name), x, y)
    np.testing.assert_array_equal(gx, tx.grad.numpy())
    np.testing.assert_array_equal(gy, ty.grad.numpy())


def test_slope_of_abs_at_zero_is_zero():
    np.testing.assert_array_equal(gradients(e.abs, np.array([0.0, -2.0, 3.0]))[0], [0, -1, 1])


def test_where_stops_nan_of_the_other_branch():
    x = np.array([0.0, 4.0])
    (gradient,) = gradients(lambda v: e.where(e.gt(v, 0), e.div(1.0, v), 0.0), x)
    assert gradient[1] == -1 / 16
    safe = gradients(lambda v: e.where(e.gt(v, 0), e.div(1.0, e.where(e.gt(v, 0), v, 1.0)), 0.0), x)[0]
    np.testing.assert_array_equal(safe, [0, -1 / 16])


def test_bool_arithmetic_is_logic():
    x, y = np.array([True, True, False]), np.array([True, False, False])
    np.testing.assert_array_equal(run(e.add, x, y), [True, True, False])
    np.testing.assert_array_equal(run(e.mul, x, y), [True, False, False])


def test_logic_takes_numbers():
    np.testing.assert_array_equal(run(e.logical_and, np.array([0.5, 0.0, NAN]), np.array([2, 1, 1])), [1, 0, 1])
    np.testing.assert_array_equal(run(e.logical_not, np.array([0.5, 0.0, -0.0, NAN])), [0, 1, 1, 0])


def test_shifts_beyond_the_width():
    x, y = np.array([1, -1, 64, -128], "int8"), np.array([8, -1, 1, 7], "int8")
    np.testing.assert_array_equal(run(e.shift_left, x, y), [0, 0, -128, 0])
    np.testing.assert_array_equal(run(e.shift_right, x, y), [0, -1, 32, -1])


def test_casts_truncate_saturate_and_map_nan_to_zero():
    x = np.array([1.9, -1.9, 300.0, -300.0, NAN, INF, -INF], "float32")
    np.testing.assert_array_equal(
        run(lambda v: e.cast(v, dtype=BY_NAME["i8"]), x), np.array([1, -1, 127, -128, 0, 127, -128], "int8")
    )
    np.testing.assert_array_equal(run(lambda v: e.cast(v, dtype=BY_NAME["u8"]), x), [1, 0, 255, 0, 0, 255, 0])
    big = run(lambda v: e.cast(v, dtype=BY_NAME["i64"]), np.array([1e19, -1e19, 9.2e18], "float64"))
    np.testing.assert_array_equal(big, [2**63 - 1, -(2**63), 9200000000000000000])
    np.testing.assert_array_equal(run(lambda v: e.cast(v, dtype=BY_NAME["i8"]), np.array([300, -129])), [44, 127])


def test_cast_gives_the_gradient_the_type_of_its_operand():
    (gradient,) = gradients(lambda v: e.cast(v, dtype=BY_NAME["f64"]), np.ones(2, "float32"))
    assert gradient.dtype == np.float32


def test_zeros_of_remainders_and_whole_quotients_have_the_signs_of_pytorch():
    x, y = np.array([-1.0, -0.0, 0.0, 6.0, -6.0, -0.0]), np.array([1.0, 2.0, -2.0, -3.0, -3.0, 4.0])
    a, b = graphc.from_numpy(x), graphc.from_numpy(y)
    for function, signs in (
        (lambda u, v: u % v, [True, True, False, False, True, True]),
        (lambda u, v: u.fmod(v), [True, True, False, False, True, True]),
    ):
        for found in (function(a, b), graphc.compile(function)(a, b)):
            np.testing.assert_array_equal(found.numpy(), np.zeros(6))
            assert np.signbit(found.numpy()).tolist() == signs
    quotients = np.array([-0.0, 0.0, 0.25]), np.array([1.0, -1.0, 4.0])
    for function in (lambda u, v: u // v, graphc.compile(lambda u, v: u // v)):
        found = function(*(graphc.from_numpy(v) for v in quotients)).numpy()
        assert np.signbit(found).tolist() == [True, True, False] and not found.any()
