"""Operators that cut out, pad, mask and turn around."""

import numpy as np
import pytest

pytest.importorskip("onnx")
from onnx.reference import ReferenceEvaluator

import graphc as gc
from graphc.interop.onnx import from_onnx
from tests.interop.onnx.alike import check, module_of, proto_of

X = np.arange(40, dtype=np.float32).reshape(5, 8)
LARGE = 2**63 - 1


def _slice(starts: list[int], ends: list[int], axes: list[int], steps: list[int]) -> str:
    parts = zip("seap", (starts, ends, axes, steps), strict=True)
    nodes = " ".join(f"{name} = Constant<value_ints={numbers}>()" for name, numbers in parts)
    return f"(float[N, 8] x) => (float y) {{ {nodes} y = Slice(x, s, e, a, p) }}"


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1], [3], [0], [1]),
        ([0, 1], [LARGE, -1], [0, 1], [1, 2]),
        ([-2], [LARGE], [0], [1]),
        ([-1], [-LARGE], [0], [-1]),
        ([-1, 6], [-LARGE, 1], [0, 1], [-2, -2]),
        ([3], [3], [1], [1]),
        ([1], [5], [1], [-1]),
        ([-100], [100], [-1], [3]),
    ],
)
def test_slices_are_those_of_numpy(starts: list[int], ends: list[int], axes: list[int], steps: list[int]) -> None:
    check(_slice(starts, ends, axes, steps), X)


def test_slices_of_version_1_have_attributes() -> None:
    check("(float[N, 8] x) => (float y) { y = Slice<starts=[1, 2], ends=[9, -1]>(x) }", X, opset=9)


def test_a_slice_ends_at_the_size_of_another_tensor() -> None:
    text = """(float[N, 8] x, float[M] z) => (float y) {
        s = Constant<value_ints=[0]>() e = Shape(z) a = Constant<value_ints=[1]>() y = Slice(x, s, e, a)
    }"""
    check(text, X, np.ones(3, np.float32))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_axes_are_padded(mode: str) -> None:
    nodes = f'p = Constant<value_ints=[1, 2, 0, 3]>() y = Pad<mode="{mode}">(x, p)'
    check(f"(float[N, 8] x) => (float y) {{ {nodes} }}", X)


def test_named_axes_are_padded_with_a_value() -> None:
    nodes = "p = Constant<value_ints=[1, 2]>() v = Constant<value_float=7.0>() a = Constant<value_ints=[-1]>()"
    check(f"(float[N, 8] x) => (float y) {{ {nodes} y = Pad(x, p, v, a) }}", X)


def test_negative_pads_cut_off() -> None:
    nodes = "p = Constant<value_ints=[-1, 2, 0, -3]>() y = Pad(x, p)"
    check(f"(float[N, 8] x) => (float y) {{ {nodes} }}", X, expected=[np.pad(X, ((0, 0), (2, 0)))[1:, :-3]])


def test_pads_of_version_2_have_attributes() -> None:
    nodes = "y = Pad<pads=[0, 1, 0, 2], value=3.0>(x)"
    expected = np.pad(X, ((0, 0), (1, 2)), constant_values=3)
    check(f"(float[N, 8] x) => (float y) {{ {nodes} }}", X, expected=[expected], opset=7)


@pytest.mark.parametrize(("upper", "k"), [(0, 0), (1, 1), (0, -2), (1, -20)])
def test_triangles_are_kept(upper: int, k: int) -> None:
    check(f"(float[N, 8] x) => (float y) {{ k = Constant<value_int={k}>() y = Trilu<upper={upper}>(x, k) }}", X)


@pytest.mark.parametrize(("batch", "time"), [(0, 1), (1, 0)])
def test_the_first_elements_of_sequences_are_turned_around(batch: int, time: int) -> None:
    lengths = np.array([3, 1, 4, 2, 5, 1, 1, 1][: X.shape[batch]])
    node = f"y = ReverseSequence<batch_axis={batch}, time_axis={time}>(x, n)"
    check(f"(float[5, 8] x, int64[{len(lengths)}] n) => (float y) {{ {node} }}", X, lengths)


@pytest.mark.parametrize("kind", ["float", "int64"])
@pytest.mark.parametrize(
    "nodes",
    [
        "y = Slice(c, zero, n, zero)",
        "i = Constant<value_ints=[0]>() y = Slice(c, i, n)",
        "e = Sub(n, one) i = Concat<axis=0>(e, one) y = Expand(zero, i)",
        "y = Tile(c, n)",
        "y = Gather(c, n)",
        "m = Sub(six, n) s = Concat<axis=0>(n, m) y, z = Split<axis=0>(c, s)",
    ],
)
def test_constants_are_cut_to_open_sizes(kind, nodes):
    """A constant of few elements was cut during the trace, which fixed the size."""
    head = "zero = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>() six = Constant<value_ints=[6]>()"
    text = (
        f"(float[N, 2] x) => ({kind} y) <{kind}[6] c = {{0, 1, 2, 3, 4, 5}}> "
        f"{{ {head} s0 = Shape(x) n = Slice(s0, zero, one) {nodes} }}"
    )
    proto = proto_of(text)
    module = from_onnx(proto)
    compiled = gc.compile(module, dims=module.dims)
    for rows in (4, 1, 5, 2, 3):
        x = np.zeros((rows, 2), np.float32)
        (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
        np.testing.assert_array_equal(compiled(x).detach().numpy(), expected)
    assert len(compiled.programs) == 1


@pytest.mark.parametrize(
    "nodes",
    [
        "m = Min(n, four) y = Slice(x, zero, m, zero)",
        "m = Max(n, four) y = Slice(x, one, m, zero)",
        "m = Sub(n, two) k = Max(m, zero) y = Slice(x, k, n, zero)",
        "y = Slice(x, minus, n, zero)",
        "y = Slice(x, zero, four, zero)",
        "s1 = Shape(w) m = Slice(s1, zero, one) y = Slice(x, zero, m, zero)",
        "m = Min(n, four) s = Concat<axis=0>(m, two) y = Expand(row, s)",
        "m = Max(n, four) s = Concat<axis=0>(m, one) y = Expand(row, s)",
        "a = Min(n, four) b = Sub(n, a) s = Concat<axis=0>(a, b) y, z = Split<axis=0>(x, s)",
        "y = Slice(x, four, zero, zero, minus)",
    ],
)
def test_clamped_sizes_are_part_of_one_program(nodes):
    """Each side of a Min, a Max or the end of a slice had a program."""
    numbers = zip(("zero", "one", "two", "four", "minus"), (0, 1, 2, 4, -1), strict=True)
    head = " ".join(f"{name} = Constant<value_ints=[{value}]>()" for name, value in numbers)
    proto = proto_of(
        f"(float[N, 2] x, float[M] w) => (float r) <float[1, 2] row = {{1, 2}}> "
        f"{{ {head} s0 = Shape(x) n = Slice(s0, zero, one) {nodes} r = Mul(y, y) }}"
    )
    module = from_onnx(proto)
    compiled = gc.compile(module, dims=module.dims)
    for rows, amount in ((6, 3), (2, 5), (3, 1), (4, 4), (9, 2)):
        x, w = np.random.rand(rows, 2).astype(np.float32), np.zeros(amount, np.float32)
        (expected,) = ReferenceEvaluator(proto).run(None, {"x": x, "w": w})
        np.testing.assert_allclose(compiled(x, w).detach().numpy(), expected, rtol=1e-6)
    assert len(compiled.programs) == 1


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap", "constant"])
def test_amounts_of_padding_may_be_open_sizes(mode):
    """Padding of the edge compared a size with infinity."""
    text = (
        "(float[4, N] x, float[M] y) => (float z) { "
        "zero = Constant<value_ints=[0]>() three = Constant<value_ints=[3]>() "
        f'm = Shape(y) p = Concat<axis=0>(zero, m, three, zero) z = Pad<mode="{mode}">(x, p) }}'
    )
    module = module_of(text)
    compiled = gc.compile(module, dims=module.dims)
    session = pytest.importorskip("onnxruntime").InferenceSession(proto_of(text).SerializeToString())
    for columns, amount in ((7, 2), (5, 4), (9, 1)):
        x, y = np.random.rand(4, columns).astype(np.float32), np.zeros(amount, np.float32)
        (expected,) = session.run(None, {"x": x, "y": y})
        np.testing.assert_array_equal(compiled(x, y).numpy(), expected)
    assert len(compiled.programs) == 1


@pytest.mark.parametrize("upper", [0, 1])
def test_one_program_masks_triangles_at_diagonals_of_every_size(upper: int) -> None:
    """The mask of a decoder with a cache: rows are new tokens, the diagonal is the number of past ones."""
    text = f"""(float[N, T] x, float[P, 2] past) => (float y) {{
        sizes = Shape(past) one = Constant<value_ints=[1]>() zero = Constant<value_ints=[0]>()
        p = Gather(sizes, zero) k = Add(p, one) y = Trilu<upper={upper}>(x, k)
    }}"""
    module = module_of(text)
    fast = gc.compile(module, dims=module.dims)
    for rows, past in ((3, 4), (1, 1), (5, 0), (2, 9)):
        x, cache = np.ones((rows, rows + past), np.float32), np.ones((past, 2), np.float32)
        expected = (np.triu if upper else np.tril)(x, past + 1)
        np.testing.assert_array_equal(fast(gc.from_numpy(x), gc.from_numpy(cache)).numpy(), expected)
    assert len(fast.programs) == 1
