"""Narrow weights: which are chosen, how they are stored, and that every stage computes what the graph then says."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import DType, float32, halves, int64, widen
from graphc.codegen.machine.target import target_named
from graphc.codegen.machine.x86_64.facts import describe
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.compiler.stages import Stages
from graphc.errors import ArgumentError
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import CONSTANT, Graph, Value, input_path
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.types import TensorType
from graphc.ops.contraction.convolution import conv
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects.state import state_write
from graphc.ops.flow.loop import scan
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as e
from graphc.ops.selection.index import gather
from graphc.passes.pipeline import optimize
from graphc.passes.precision import PRECISIONS, SMALLEST, Narrow, narrow_weights, narrow_with_images
from tests.native import TARGETS, check_native, target_or_skip
from tests.passes.check_pass import random_arguments

ERROR = {
    "bf16": 2.0**-8,
    "f16": 2.0**-11,
    "int8": 1 / 127,
    "int4": 1 / 8,
    "bf16_dot": 2.0**-7,
    "int8_dot": 2 / 127,
    "int4_dot": 1 / 8 + 1 / 127,
}
"""Largest error of a weight in units of its own magnitude (int8: a step of the largest of its channel; of products with
that of what it is multiplied by)."""
ZEN4 = target_named("avx512").features + ",+avx512bf16,+avx512vnni"
PLAIN = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}


def weight(graph: Graph, *dims: int, seed: int = 0, cls: str = "") -> Value:
    """A constant, or a param."""
    if cls:
        return graph.add_input(TensorType(float32, dims), f"w{seed}", cls, f"net.w{seed}")
    array = np.random.default_rng(seed).standard_normal(dims).astype(np.float32)
    return constant(graph, array, float32)


def tensor(graph: Graph, *dims: int) -> Value:
    return graph.add_input(TensorType(float32, dims), "x")


def product(cls: str = "") -> Graph:
    graph = Graph("product")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([matmul(tensor(graph, 3, 64), weight(graph, 64, 80, cls=cls))])
    return graph


def linear(cls: str = "") -> Graph:
    graph = Graph("linear")
    with use(GraphDispatcher(graph)):
        y = matmul(tensor(graph, 3, 64), weight(graph, 80, 64, cls=cls), transpose_b=True)
        graph.set_outputs([e.add(y, weight(graph, 80, seed=1, cls=cls))])
    return graph


def left(cls: str = "") -> Graph:
    """The weight is the first operand."""
    graph = Graph("left")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([matmul(weight(graph, 64, 80, cls=cls), tensor(graph, 64, 5), transpose_a=True)])
    return graph


def batched(cls: str = "") -> Graph:
    """A weight for every entry of the batch."""
    graph = Graph("batched")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([matmul(tensor(graph, 2, 4, 40), weight(graph, 2, 60, 40, cls=cls), transpose_b=True)])
    return graph


def convolution(cls: str = "") -> Graph:
    graph = Graph("convolution")
    with use(GraphDispatcher(graph)):
        y = conv(tensor(graph, 2, 16, 7, 6), weight(graph, 32, 16, 3, 3, cls=cls), **PLAIN)
        graph.set_outputs([e.maximum(y, 0.0)])
    return graph


def tied(cls: str = "") -> Graph:
    """One table for lookups and for the product at the end."""
    graph = Graph("tied")
    with use(GraphDispatcher(graph)):
        table = weight(graph, 100, 48, cls=cls)
        indices = e.cast(e.mul(e.abs(tensor(graph, 3, 5)), 20.0), dtype=int64)
        graph.set_outputs([matmul(gather(table, indices, axis=0), table, transpose_b=True)])
    return graph


def recurrent(cls: str = "") -> Graph:
    """The weight is a constant of a scan."""
    step = Graph("step")
    h = step.add_input(TensorType(float32, (2, 64)), "h")
    x = step.add_input(TensorType(float32, (2, 64)), "x")
    w = step.add_input(TensorType(float32, (64, 64)), "w")
    with use(GraphDispatcher(step)):
        new = e.maximum(e.add(e.mul(matmul(h, w, transpose_b=True), 0.1), x), -1.0)
        step.set_outputs([new, e.mul(new, 2.0)])
    graph = Graph("recurrent")
    with use(GraphDispatcher(graph)):
        xs = graph.add_input(TensorType(float32, (3, 2, 64)), "x")
        start = shape.filled(0, float32, (2, 64))
        operands = (start, xs, weight(graph, 64, 64, cls=cls))
        results = scan(*operands, body=step, carries=1, sequences=1, length=3, reverse=False)
        graph.set_outputs([results[1]])
    return graph


MAKERS = {f.__name__: f for f in (product, linear, left, batched, convolution, tied, recurrent)}


def narrow_arguments(graph: Graph, params: dict, arguments: list[np.ndarray], narrowed: Graph) -> list[np.ndarray]:
    """Arguments of the narrow graph, its params made of those of the graph."""
    arrays_by_path = {input_path(v) or v.name: a for v, a in zip(graph.inputs, arguments, strict=True)}
    narrow_arrays = {path: make(arrays_by_path[source]) for path, (source, make) in params.items()}
    return [
        (narrow_arrays | arrays_by_path if v.dtype is float32 else narrow_arrays)[input_path(v) or v.name]
        for v in narrowed.inputs
    ]


def widest(graph: Graph) -> list[np.ndarray]:
    constants = [n.results[0] for n in graph.nodes() if n.op is CONSTANT]
    return [v.node.attrs["value"] for v in constants if v.type.nbytes >= SMALLEST // 2]


NO_ROWS = {"left", "batched", "tied", "convolution"}
ALONE = {"bf16_dot": {"batched", "tied"}, "int8_dot": NO_ROWS, "int4": NO_ROWS, "int4_dot": NO_ROWS}
"""Where a weight is stored only: pairs are multiplied in products of one matrix and convolutions, quads in products of
rows with a matrix."""


def stored_type(name: str, precision: str) -> DType:
    """Return the stored type of a graph's weight."""
    alone = precision.removesuffix("_dot").replace("int4", "int8")
    return PRECISIONS[alone if name in ALONE.get(precision, ()) else precision]


@pytest.mark.parametrize("cls", ["", "param"])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", MAKERS)
def test_weights_are_narrow_and_results_near(name: str, precision: str, cls: str):
    graph = optimize(MAKERS[name](cls))
    before = print_graph(graph)
    result = narrow_weights(graph, precision)
    verify_graph(result.graph)
    assert print_graph(graph) == before
    own = [*(a.dtype for a in widest(result.graph)), *(v.dtype.numpy for v in result.graph.inputs if input_path(v))]
    assert own.count(stored_type(name, precision).numpy) == result.count == 1
    assert bool(result.params) == bool(cls) and set(result.params) <= {input_path(v) for v in result.graph.inputs}
    arguments = random_arguments(graph)
    expected = evaluate(graph, arguments)[0]
    got = evaluate(result.graph, narrow_arguments(graph, result.params, arguments, result.graph))[0]
    size = np.abs(expected).max()
    assert 0 < np.abs(got - expected).max() < 8 * ERROR[precision] * size


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", MAKERS)
def test_each_value_has_an_image_of_its_type(name: str, precision: str):
    graph = optimize(MAKERS[name]())
    result, images = narrow_with_images(graph, precision)
    new = {v for node in result.graph.nodes() for v in node.results} | set(result.graph.inputs)
    old = {v for node in graph.nodes() for v in node.results} | set(graph.inputs)
    assert images.graph is graph and images.values.keys() == old and set(images.values.values()) <= new
    (stored,) = images.stored.values()
    assert PRECISIONS[stored] is stored_type(name, precision)
    moved = images.moved_weights()
    assert set(moved.values()) == images.stored.keys() <= moved.keys()
    assert all(images.values[v].type == v.type for v in old - moved.keys())


@pytest.mark.sampled(50)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", MAKERS)
def test_kernels_and_native_code(name: str, precision: str, target: str):
    graph = narrow_weights(optimize(MAKERS[name]()), precision).graph
    check_native(graph, random_arguments(graph), target_or_skip(target))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", MAKERS)
def test_no_wide_copy_is_made(name: str, precision: str):
    """Readers convert what they read: nothing in memory is as large as the weights were."""
    graph = narrow_weights(optimize(MAKERS[name]()), precision).graph
    program = Stages(graph).scheduled
    large = [s for s in program.storages if s.nbytes >= SMALLEST // 2 and s.cls == "constant"]
    assert {s.dtype for s in large} == {stored_type(name, precision)}
    assert all(s.size < SMALLEST for s in program.storages if s.cls == "temp")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", MAKERS)
def test_optimizing_again_and_reading_the_text_keep_it(name: str, precision: str):
    graph = narrow_weights(optimize(MAKERS[name]()), precision).graph
    again = parse_graph(print_graph(graph), collect_data(graph))
    assert again == graph
    assert [a.dtype for a in widest(optimize(again))] == [stored_type(name, precision).numpy]


def test_a_chain_of_views_is_looked_through():
    graph = Graph("views")
    with use(GraphDispatcher(graph)):
        w = shape.slice(weight(graph, 90, 8, 8), starts=(5, 0, 0), stops=(85, 8, 8), steps=(1, 1, 1))
        graph.set_outputs([matmul(tensor(graph, 3, 64), shape.reshape(w, shape=(80, 64)), transpose_b=True)])
    assert narrow_weights(graph, "bf16").count == 1
    assert narrow_weights(graph, "int8").count == 0  # which elements share a scale is not followed through views


@pytest.mark.parametrize(
    "read",
    [
        lambda w, x: e.mul(x, w),
        lambda w, x: e.add(matmul(x, w), shape.slice(w, starts=(0, 0), stops=(1, 64), steps=(1, 1))),
        lambda w, x: matmul(w, w),
        lambda w, x: w,
    ],
    ids=["elementwise", "also elementwise", "itself", "output"],
)
def test_readers_that_need_it_as_it_is(read):
    graph = Graph("g")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([read(weight(graph, 64, 64), tensor(graph, 64, 64))])
    for precision in PRECISIONS:
        assert narrow_weights(graph, precision).count == 0


def test_small_weights_other_types_and_written_params_stay():
    graph = Graph("g")
    with use(GraphDispatcher(graph)):
        x = tensor(graph, 2, 64)
        double = constant(graph, np.ones((64, 64)), e.float64)
        state = weight(graph, 64, 64, seed=3, cls="param")
        graph.set_outputs(
            [
                matmul(x, weight(graph, 64, 63)),
                matmul(e.cast(x, dtype=e.float64), double),
                matmul(x, state),
                state_write(state, e.mul(state, 2.0)),
            ]
        )
    assert all(narrow_weights(graph, precision).count == 0 for precision in PRECISIONS)


def test_uses_that_want_different_scales():
    graph = Graph("g")
    with use(GraphDispatcher(graph)):
        x, w = tensor(graph, 3, 64), weight(graph, 64, 64)
        graph.set_outputs([matmul(x, w), matmul(x, w, transpose_b=True)])
    assert narrow_weights(graph, "int8").count == 0 and narrow_weights(graph, "f16").count == 1


def test_scales_of_channels():
    plan = Narrow("int8", (1,))
    array = np.array([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0], [127.0, 126.6, -0.4]], np.float32)
    np.testing.assert_array_equal(plan.store(array), [[64, -127, 32], [0, 0, 0], [127, 127, 0]])
    np.testing.assert_allclose(plan.scale(array), [[2 / 127], [0], [1]], rtol=1e-6)
    wrong = np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, 0.0]], np.float32)
    assert not (plan.store(wrong).any() or np.isfinite(plan.scale(wrong)).any())


def test_bytes_that_are_saved():
    graph = linear()
    assert narrow_weights(graph, "bf16").saved == 80 * 64 * 2
    assert narrow_weights(graph, "int8").saved == 80 * 64 * 3 - 80 * 4


def test_bits_of_bf16_are_rounded_weights():
    graph = product()
    (before,) = widest(graph)
    (after,) = widest(narrow_weights(graph, "bf16").graph)
    assert np.abs(widen(after) / before - 1).max() <= 2.0**-8


def test_pairs_of_weights():
    graph = linear()
    (before,) = widest(graph)
    (after,) = widest(narrow_weights(graph, "bf16_dot").graph)
    assert after.shape == (80, 32)
    for result, source in zip(halves(after), (before[:, ::2], before[:, 1::2]), strict=True):
        assert np.abs(result / source - 1).max() <= 2.0**-8


@pytest.mark.parametrize("precision", PRECISIONS)
def test_odd_numbers_have_no_pairs_or_quads(precision: str):
    graph = Graph("odd")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([matmul(tensor(graph, 3, 65), weight(graph, 80, 65), transpose_b=True)])
    (result,) = widest(narrow_weights(graph, precision).graph)
    assert result.dtype == PRECISIONS[precision.removesuffix("_dot")].numpy


@pytest.mark.parametrize(("precision", "instruction"), [("bf16_dot", "vdpbf16ps"), ("int8_dot", "vpdpbusd")])
def test_products_are_one_instruction_where_there_is_one(precision: str, instruction: str):
    graph = narrow_weights(optimize(linear()), precision).graph
    zen4 = describe(target_named("avx512").triple, "x86-64-v4", ZEN4)
    assert instruction in Stages(graph, target=zen4).asm
    assert instruction not in Stages(graph, target=target_named("avx2")).asm
    assert Stages(graph, target=target_named("neon")).asm


def test_rows_have_scales_of_their_own():
    """A large row takes nothing from a small one, a row of zeros stays one, and what is not finite is not hidden."""
    graph = optimize(linear())
    narrow = narrow_weights(graph, "int8_dot").graph
    rows = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)
    scaled = (rows * np.array([[1e-3], [0.0], [1e3]])).astype(np.float32)
    expected, got = evaluate(graph, [scaled])[0], evaluate(narrow, [scaled])[0]
    for a, b in zip(got, expected, strict=True):
        assert np.abs(a - b).max() <= 0.03 * np.abs(b).max()
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-6)
    for wrong in (np.nan, np.inf):
        rows[1, 5] = wrong
        for result in (evaluate(narrow, [rows])[0], load_compiled(compile_graph(narrow)).run([rows])[0]):
            assert not np.isfinite(result[1]).any() and np.isfinite(result[[0, 2]]).all()


def test_precisions_are_checked():
    with pytest.raises(ArgumentError, match="no precision 'fp8'") as caught:
        narrow_weights(product(), "fp8")
    assert "bf16, f16, int8, int4, bf16_dot, int8_dot, int4_dot" in str(caught.value)


def test_each_large_weight_has_a_line_that_says_how_it_is_stored():
    for name, line in (
        ("linear", "f32[80,64] is stored as int4"),
        ("convolution", "f32[32,16,3,3] is stored as int8 (conv is no product of rows with this matrix)"),
        ("tied", "f32[100,48] is stored as int8 (gather is no product of rows with this matrix)"),
    ):
        (result,) = narrow_weights(optimize(MAKERS[name]()), "int4").decisions
        assert result.endswith(line)
    graph = Graph("g")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([e.mul(tensor(graph, 64, 64), weight(graph, 64, 64))])
    (result,) = narrow_weights(graph, "int4").decisions
    assert result.endswith("is stored as it is (mul reads it as it is)")
