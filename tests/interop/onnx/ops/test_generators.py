"""Operators that make tensors: constants, rows of numbers, unit matrices and random numbers."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import arrays_of, check, module_of

X = np.zeros((3, 5), np.float32)


@pytest.mark.parametrize(
    "nodes",
    [
        "s = Shape(x) y = ConstantOfShape(s)",
        "s = Constant<value_ints=[70, 80]>() y = ConstantOfShape<value = int64[1] {7}>(s)",
        "y = EyeLike<k=1>(x)",
        "a = Constant<value_int=2>() b = Constant<value_int=11>() c = Constant<value_int=3>() y = Range(a, b, c)",
        "a = Constant<value_float=2.0>() b = Constant<value_float=-1.0>() c = Neg(a) y = Range(a, b, c)",
        "a = Constant<value_int=2>() b = Constant<value_int=1>() y = Range(a, b, a)",
    ],
)
def test_an_operator_is_the_same_eagerly_and_compiled(nodes: str) -> None:
    kind = "int64" if "int64" in nodes or "value_int=" in nodes else "float"
    check(f"(float[N, 5] x) => ({kind} y) {{ {nodes} }}", X)


def test_a_row_of_numbers_ends_at_a_named_dimension() -> None:
    text = """(float[N, 5] x) => (int64 y) {
        s = Shape(x) z = Constant<value_int=0>() o = Constant<value_int=1>() n = Gather(s, z) y = Range(z, n, o)
    }"""
    module = module_of(text)
    program = gc.compile(module, dims=module.dims)
    assert [program(np.zeros((n, 5), np.float32)).tolist() for n in (3, 7)] == [[0, 1, 2], [*range(7)]]


def test_a_row_of_real_numbers_ends_at_half_a_named_dimension(traces) -> None:
    text = """(float[N, 5] x) => (float y) {
        s = Shape(x) z = Constant<value_int=0>() n = Gather(s, z) r = Cast<to=1>(n)
        two = Constant<value_float=2.0>() zero = Constant<value_float=0.0>() one = Constant<value_float=1.0>()
        half = Div(r, two) f = Floor(half) end = Cast<to=1>(f) y = Range(zero, end, one)
    }"""
    module = module_of(text)
    program = gc.compile(module, dims=module.dims)
    rows = [program(np.zeros((n, 5), np.float32)).tolist() for n in (3, 7, 10)]
    assert rows == [[0.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0, 4.0]]
    assert len(traces) == 1


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_places_become_ones(axis: int) -> None:
    nodes = f"d = Constant<value_int=4>() v = Constant<value_floats=[-1.0, 2.0]>() y = OneHot<axis={axis}>(i, d, v)"
    check(f"(int64[N, 2] i) => (float y) {{ {nodes} }}", np.array([[0, 3], [-1, 1], [4, -5]]))


def test_seeded_numbers_are_the_same_in_each_module_and_go_on_from_call_to_call() -> None:
    text = "() => (float y) { y = RandomNormal<shape=[4, 5], seed=3.0>() }"
    first, second = module_of(text), module_of(text)
    row = arrays_of(first())[0]
    np.testing.assert_array_equal(row, arrays_of(second())[0])
    assert not np.array_equal(row, arrays_of(first())[0])


def test_numbers_without_a_seed_come_from_the_generator_of_graphc() -> None:
    module = module_of("(float[3, 5] x) => (float y) { y = RandomUniformLike<low=2.0, high=3.0>(x) }")
    gc.manual_seed(1)
    first = module(X).numpy().copy()
    gc.manual_seed(1)
    compiled = gc.compile(module)(X).numpy()
    np.testing.assert_array_equal(first, compiled)
    assert first.min() >= 2 and first.max() < 3


def test_a_seeded_stream_goes_on_in_compiled_code() -> None:
    program = gc.compile(module_of("(float[3, 5] x) => (float y) { y = RandomNormalLike<seed=1.0>(x) }"))
    assert not np.array_equal(program(X).numpy().copy(), program(X).numpy())


def test_probabilities_become_ones_and_zeros() -> None:
    module = gc.compile(module_of("(float[3] p) => (int32 y) { y = Bernoulli<dtype=6>(p) }"))
    drawn = [module(np.array([0, 1, 0.5], np.float32)).tolist() for _ in range(30)]
    assert {d[0] for d in drawn} == {0} and {d[1] for d in drawn} == {1} and {d[2] for d in drawn} == {0, 1}


def test_classes_are_drawn_by_the_logarithms_of_their_weights() -> None:
    module = gc.compile(module_of("(float[1, 3] p) => (int64 y) { y = Multinomial<dtype=7, sample_size=4000>(p) }"))
    drawn = module(np.log(np.array([[0.5, 0.25, 0.25]], np.float32))).numpy()
    shares = np.bincount(drawn[0], minlength=3) / 4000
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25], atol=0.05)
