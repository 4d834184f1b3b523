"""Operators that give elements another shape, and what they do to sizes."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import check, module_of

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "nodes",
    [
        "s = Constant<value_ints=[0, -1]>() y = Reshape(x, s)",
        "y = Flatten<axis=2>(x)",
        "y = Flatten<axis=-1>(x)",
        "y = Flatten<axis=0>(x)",
        "y = Transpose(x)",
        "y = Transpose<perm=[1, 0, 2]>(x)",
        "y = Concat<axis=-1>(x, x)",
        "a = Constant<value_ints=[0, -1]>() u = Unsqueeze(x, a) y = Squeeze(u, a)",
        "s = Constant<value_ints=[3, 1, 1, 4]>() y = Expand(x, s)",
        "r = Constant<value_ints=[1, 2, 3]>() y = Tile(x, r)",
        "y = Shape<start=1>(x)",
        "y = Size(x)",
    ],
)
def test_an_operator_is_the_same_eagerly_and_compiled(nodes: str) -> None:
    check(f"(float[N, 3, 4] x) => (float y) {{ {nodes} }}", X)


def test_parts_have_the_sizes_that_an_input_says() -> None:
    check(
        "(float[N, 3, 4] x) => (float a, float b) { s = Constant<value_ints=[1, 3]>() a, b = Split<axis=2>(x, s) }", X
    )


def test_the_last_of_equal_parts_may_be_smaller() -> None:
    check("(float[N, 3, 4] x) => (float a, float b) { a, b = Split<axis=1, num_outputs=2>(x) }", X)


def test_an_axis_of_a_named_dimension_is_split_in_half() -> None:
    check("(float[N, 3, 4] x) => (float a, float b) { a, b = Split<axis=0, num_outputs=2>(x) }", X)


def test_operators_of_old_versions_have_attributes_in_the_place_of_inputs() -> None:
    nodes = "u = Unsqueeze<axes=[0]>(x) v = Squeeze<axes=[0]>(u) a, b = Split<axis=2, split=[1, 3]>(v)"
    check(f"(float[N, 3, 4] x) => (float a, float b) {{ {nodes} }}", X, opset=11)


def test_all_axes_of_size_1_are_squeezed_where_none_is_named() -> None:
    check("(float[1, 3, 1] x) => (float y) { y = Squeeze(x) }", np.ones((1, 3, 1), np.float32))


def test_an_axis_of_another_size_is_not_squeezed() -> None:
    module = module_of("(float[2, 3] x) => (float y) { a = Constant<value_ints=[1]>() y = Squeeze(x, a) }")
    with pytest.raises(gc.errors.ShapeError, match="axis 1"):
        module(np.ones((2, 3), np.float32))


SHAPES = """(float[N, T, 4] x) => (float y) {
    s = Shape(x)
    zero = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>() two = Constant<value_ints=[2]>()
    n = Slice(s, zero, one)
    i = Constant<value_int=1>()
    t = Gather(s, i)
    tt = Unsqueeze(t, zero)
    nt = Mul(n, tt)
    m = Constant<value_ints=[-1]>()
    wanted = Concat<axis=0>(nt, m)
    y = Reshape(x, wanted)
}"""


def test_sizes_of_named_dimensions_are_computed_with() -> None:
    check(SHAPES, X)


def test_a_program_with_named_dimensions_serves_other_sizes() -> None:
    module = module_of(SHAPES)
    program = gc.compile(module, dims=module.dims)
    for n, t in ((2, 3), (5, 7), (3, 2)):
        assert tuple(program(np.zeros((n, t, 4), np.float32)).shape) == (n * t, 4)


def test_known_arrays_are_moved_without_tensors() -> None:
    nodes = """
        c = Constant<value_ints=[1, 2, 3, 4, 5, 6]>() s = Constant<value_ints=[2, 3]>()
        m = Reshape(c, s) t = Transpose(m) f = Flatten<axis=0>(t) a = Constant<value_ints=[0]>()
        q = Squeeze(f, a) r = Constant<value_ints=[2]>() w = Tile(q, r) p, o = Split<num_outputs=2>(w)
        e = Expand(p, s_) y = Add(e, e)
    """.replace("s_", "six")
    text = f"(float[N] x) => (int64 y) {{ six = Constant<value_ints=[1, 6]>() {nodes} }}"
    check(text, np.ones(2, np.float32))
