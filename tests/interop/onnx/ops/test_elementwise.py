"""Arithmetic of every element type, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

from tests.interop.onnx.single import check

onnx = pytest.importorskip("onnx")

UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]


def large(dtype: str) -> np.ndarray:
    """Numbers from all of an unsigned type."""
    top = int(np.iinfo(dtype).max)
    return np.array([0, 1, 7, top // 3, top // 2, top // 2 + 1, top - 1, top], dtype)


@pytest.mark.parametrize("dtype", [*UNSIGNED, "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Min", "Max"])
def test_whole_numbers_wrap_around_in_their_bits(name: str, dtype: str):
    x = large(dtype)
    check(name, x, x[::-1].copy(), results=[dtype])


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("name", ["Div", "Mod"])
def test_unsigned_numbers_divide_as_such(name: str, dtype: str):
    x = large(dtype)
    check(name, x.reshape(-1, 1), x[1:], results=[dtype])


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("name", ["Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"])
def test_unsigned_numbers_compare_as_such(name: str, dtype: str):
    x = large(dtype)
    check(name, x.reshape(-1, 1), x, results=[bool])


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bits_are_shifted_in_within_the_type(dtype: str, direction: str):
    count = np.array([0, 1, 7], dtype).reshape(-1, 1)
    check("BitShift", large(dtype), count, results=[dtype], direction=direction)


def test_whole_quotients_are_cut_towards_zero():
    x = np.array([-7, -6, 7, 6, -1], np.int32)
    module = check("Div", x, np.array([2, -3, -2, 4, 5], np.int32), results=[np.int32])
    assert module(x, np.array([2, 2, 2, 2, 2], np.int32)).tolist() == [-3, -3, 3, 3, 0]


@pytest.mark.parametrize("fmod", [0, 1])
def test_rests_have_the_sign_of_the_divisor_or_the_dividend(fmod: int):
    x = np.array([-7, -6, 7, 6, -1], np.int64)
    check("Mod", x, np.array([2, -4, -2, 4, 5], np.int64), results=[np.int64], fmod=fmod)


def test_rests_of_real_numbers_have_the_sign_of_the_dividend():
    x = np.array([-4.3, 7.2, 5.0, 4.3], np.float32)
    check("Mod", x, np.array([2.1, -3.4, 8.0, -2.1], np.float32), fmod=1)


@pytest.mark.parametrize(
    ("base", "exponent"), [("float32", "int64"), ("int64", "float32"), ("int32", "int64"), ("float32", "uint8")]
)
def test_powers_have_the_type_of_the_base(base: str, exponent: str):
    check("Pow", np.array([1, 2, 3], base), np.array([3, 2, 0], exponent), results=[base])


@pytest.mark.parametrize("name", ["Sum", "Mean", "Max", "Min"])
def test_any_number_of_operands_broadcasts(name: str):
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    check(name, x, x[:1] * 2, x[:, :1], open_rows=False)


@pytest.mark.parametrize("limits", [(-0.5, 0.5), (None, 0.5), (-0.5, None), (0.5, -0.5)])
def test_clip_limits_from_below_then_from_above(limits: tuple[float | None, float | None]):
    x = np.linspace(-1, 1, 9, dtype=np.float32)
    bounds = [None if v is None else np.array(v, np.float32) for v in limits]
    while bounds[-1] is None:
        bounds.pop()
    check("Clip", x, *bounds)


def test_infinities_are_told_by_their_sign():
    x = np.array([1, np.nan, np.inf, -np.inf], np.float32)
    check("IsInf", x, results=[bool])
    check("IsInf", x, results=[bool], detect_negative=0)
    check("IsInf", x, results=[bool], detect_positive=0)
    check("IsNaN", x, results=[bool])


def test_rows_may_be_of_any_number():
    x = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    module = check("Add", x, x, open_rows=True)
    assert module(x[:2], x[:2]).shape == (2, 4)


def test_texts_are_compared_and_chosen():
    from_onnx = pytest.importorskip("graphc.interop.onnx.module").from_onnx
    helper, text = onnx.helper, onnx.TensorProto.STRING
    ports = [helper.make_tensor_value_info(n, text, [2]) for n in "ab"]
    result = helper.make_tensor_value_info("y", onnx.TensorProto.BOOL, [2])
    graph = helper.make_graph([helper.make_node("Equal", ["a", "b"], ["y"])], "texts", ports, [result])
    module = from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)]))
    assert module(np.array(["a", "b"], object), np.array(["a", "c"], object)).tolist() == [True, False]
