"""Operators that pick and place elements by indices and conditions."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import check, module_of, refused

X = np.arange(24, dtype=np.float32).reshape(4, 6)


def test_slices_of_an_axis_are_gathered() -> None:
    check("(float[N, 6] x, int64[2, 2] i) => (float y) { y = Gather<axis=1>(x, i) }", X, np.array([[0, -1], [3, 2]]))


def test_an_index_outside_is_an_error() -> None:
    module = module_of("(float[N, 6] x, int64[1] i) => (float y) { y = Gather<axis=1>(x, i) }")
    with pytest.raises(gc.errors.IndexRangeError):
        gc.compile(module)(X, np.array([6]))


def test_elements_along_an_axis_are_gathered() -> None:
    places = np.array([[0, -1, 2], [1, 1, 0], [3, 3, 3], [-2, 0, 1]])
    check("(float[4, 6] x, int64[4, 3] i) => (float y) { y = GatherElements<axis=1>(x, i) }", X, places)


@pytest.mark.parametrize("index", [[[0], [-1]], [[1, 2], [3, -6], [0, 0]]])
def test_slices_at_tuples_of_indices_are_gathered(index: list[list[int]]) -> None:
    i = np.array(index)
    check(f"(float[N, 6] x, int64[{i.shape[0]}, {i.shape[1]}] i) => (float y) {{ y = GatherND(x, i) }}", X, i)


def test_tuples_count_behind_axes_that_both_have() -> None:
    x, i = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.array([[[1], [0]], [[2], [-1]]])
    check("(float[B, 3, 4] x, int64[B, 2, 1] i) => (float y) { y = GatherND<batch_dims=1>(x, i) }", x, i)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
def test_elements_are_scattered_along_an_axis(reduction: str) -> None:
    nodes = f'y = ScatterElements<axis=1, reduction="{reduction}">(x, i, u)'
    i = np.array([[0, 2], [1, -1], [5, 3], [4, 0]])
    u = np.array([[2, 30], [4, 5], [-1, 7], [0.5, 3]], np.float32)
    check(f"(float[4, 6] x, int64[4, 2] i, float[4, 2] u) => (float y) {{ {nodes} }}", X, i, u)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
def test_slices_are_scattered_at_tuples(reduction: str) -> None:
    nodes = f'y = ScatterND<reduction="{reduction}">(x, i, u)'
    i, u = np.array([[0], [-2]]), np.linspace(-3, 20, 12, dtype=np.float32).reshape(2, 6)
    check(f"(float[N, 6] x, int64[2, 1] i, float[2, 6] u) => (float y) {{ {nodes} }}", X, i, u)


def test_gradients_go_to_what_is_scattered() -> None:
    text = "(float[4, 6] x, int64[2, 2] i, float[2] u) => (float y) { y = ScatterND(x, i, u) }"
    updates = gc.ones(2, requires_grad=True)
    module_of(text)(gc.as_tensor(X), gc.tensor([[0, 1], [2, 3]]), updates).sum().backward()
    assert updates.grad.tolist() == [1, 1]


RESULTS = [
    ("(float[N, 6] x) => (int64 y) { y = NonZero(x) }", [np.array([[0, 2, 0]], np.float32)], "NonZero"),
    ("(float[N, 6] x) => (float y) { y = Unique(x) }", [np.array([[3, 1, 3]], np.float32)], "Unique"),
    (
        "(float[N, 6] x, bool[M] c) => (float y) { y = Compress<axis=1>(x, c) }",
        [X, np.array([True, False, True])],
        "Compress",
    ),
]


@pytest.mark.parametrize(("text", "inputs", "operator"), RESULTS)
def test_results_have_the_size_that_values_say(text: str, inputs: list[np.ndarray], operator: str) -> None:
    check(text.replace("N, 6", "N, M_" if inputs[0].shape[1] != 6 else "N, 6"), *inputs)


@pytest.mark.parametrize(("text", "inputs", "operator"), RESULTS)
def test_a_graph_by_itself_cannot_have_results_whose_size_depends_on_values(
    text: str, inputs: list[np.ndarray], operator: str
) -> None:
    message = refused(text.replace("N, 6", "N, M_" if inputs[0].shape[1] != 6 else "N, 6"), *inputs)
    assert f"the number of results of {operator} is a size that only calls know" in message


def test_one_path_serves_every_number_of_results() -> None:
    module = module_of("""(float[4, 5] x) => (int64[2, n] i, float[n] y) {
        i = NonZero(x) t = Transpose<perm=[1, 0]>(i) v = GatherND(x, t) y = Exp(v)
    }""")
    program, rng = gc.compile(module), np.random.default_rng(0)
    for count in (7, 20, 0, 1):
        x = np.zeros(20, np.float32)
        x[rng.permutation(20)[:count]] = 2
        indices, values = program(x.reshape(4, 5))
        np.testing.assert_array_equal(indices.numpy(), np.stack(np.nonzero(x.reshape(4, 5))))
        np.testing.assert_allclose(values.numpy(), np.full(count, np.exp(2)), rtol=1e-6)
    assert len(program.programs) == 2


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("is_sorted", [0, 1])
def test_distinct_slices_are_found_in_compiled_code(axis: int | None, is_sorted: int) -> None:
    options = f"sorted={is_sorted}" + ("" if axis is None else f", axis={axis}")
    module = module_of(
        f"(int64[5, 5] x) => (int64 y, int64 f, int64 i, int64 c) {{ y, f, i, c = Unique<{options}>(x) }}"
    )
    program, rng = gc.compile(module), np.random.default_rng(0)
    for most in (2, 1, 30):
        x = (
            rng.integers(0, most, (5, 5))
            if axis is None
            else np.take(rng.integers(0, 3, (5, 5)), rng.integers(0, most, 5) % 5, axis)
        )
        for a, b in zip(program(x), module(x), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_distinct_slices_come_with_where_they_are_and_how_often() -> None:
    x = np.array([[1, 0], [2, 3], [1, 0]], np.float32)
    text = "(float[N, 2] x) => (float y, int64 f, int64 i, int64 c) { y, f, i, c = Unique<axis=0, sorted=0>(x) }"
    check(text, x, expected=[x[:2], [0, 1], [0, 1, 0], [2, 1]])


def test_known_arrays_are_indexed_without_tensors() -> None:
    text = """(float[N, 6] x) => (int64 y) {
        s = Shape(x) i = Constant<value_ints=[1]>() u = Constant<value_ints=[9]>()
        j = Unsqueeze(i, zero) r = ScatterND(s, j, u) y = GatherND(r, j)
    }""".replace("j = Unsq", "zero = Constant<value_ints=[1]>() j = Unsq")
    check(text, X)


def test_updates_of_open_sizes_may_be_one_element():
    """The trace assumed more than one update."""
    module = module_of("(float[N, N] x, int64[N, N, 2] i, float[N, N] u) => (float y) { y = ScatterND(x, i, u) }")
    graph = gc.trace(module, gc.zeros(3, 3), gc.zeros(3, 3, 2, dtype="int64"), gc.zeros(3, 3), dims=module.dims)
    assert [(a.relation, a.b, a.answer) for a in graph.assumptions] == [("==", 0, False)]  # there are elements
    compiled = gc.compile(module, dims=module.dims)
    for n in (3, 1):
        indices = np.stack(np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), -1)
        updates = np.arange(n * n, dtype=np.float32).reshape(n, n)
        np.testing.assert_array_equal(compiled(np.zeros((n, n), np.float32), indices, updates).numpy(), updates)
    assert len(compiled.programs) == 1
