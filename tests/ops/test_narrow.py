"""Ops on f16 and bf16: what moves elements takes them as they are, all else is computed as f32 and rounded once."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.dtypes import (
    DType,
    bfloat16,
    element,
    elements,
    float16,
    float32,
    int32,
    layout_of,
    narrow,
    widen,
)
from graphc.errors import DTypeError, GraphcError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import print_graph
from graphc.ir.op import REGISTRY, Trait
from graphc.ir.types import TensorType
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math
from graphc.ops.reduction import reduce
from tests.native import TARGETS, check_native, target_or_skip

HALVES = (float16, bfloat16)
X = np.array([[1.0, -2.5, 3e-6, 65504.0], [0.1, np.inf, -0.0, 2.0]], np.float32)


def graph_of(function, *types: TensorType) -> Graph:
    graph = Graph("narrow")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([function(*[graph.add_input(t, f"x{i}") for i, t in enumerate(types)])])
    return graph


def names(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.nodes() if n.op.name not in ("input", "constant")]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_arithmetic_is_that_of_f32(dtype: DType):
    graph = graph_of(ew.add, TensorType(dtype, (3,)), TensorType(dtype, (3,)))
    assert names(graph) == ["cast", "cast", "add", "cast"] and graph.outputs[0].dtype is dtype


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_what_moves_elements_takes_them_as_they_are(dtype: DType):
    def moved(x):
        return shape.concat(shape.transpose(x, permutation=(1, 0)), shape.reshape(x, shape=(4, 2)), axis=1)

    graph = graph_of(moved, TensorType(dtype, (2, 4)))
    assert "cast" not in names(graph)


def test_numbers_keep_their_digits_except_in_comparisons():
    x = gc.tensor([0.1, 3.0]).bfloat16()
    assert ew.eq(x, 0.1).tolist() == [True, False]
    assert ew.mul(x, 0.1).tolist() == gc.tensor(x.float().numpy() * np.float32(0.1)).bfloat16().tolist()


def test_common_types():
    x, y, whole = gc.ones(2).bfloat16(), gc.ones(2).half(), gc.ones(2, dtype=gc.int64)
    assert (x + y).dtype is float32 and (x + 1.5).dtype is bfloat16 and (x * whole).dtype is bfloat16
    assert (x + gc.ones(2)).dtype is float32 and (x > 0).dtype is gc.bool_ and (x + gc.ones(())).dtype is bfloat16


def test_a_type_that_is_asked_for():
    assert reduce.sum(gc.ones(300).half(), axes=(0,)).item() == 300
    assert gc.ones(3, dtype=gc.int32).sum(dtype=float16).dtype is float16
    assert gc.ones(4).half().sum(dtype=float32).dtype is float32


def test_what_no_float_is_taken_for_is_refused():
    with pytest.raises(DTypeError, match="bit_and"):
        ew.bit_and(gc.ones(2).half(), gc.ones(2).half())


def awkward(dtype: DType) -> np.ndarray:
    bits = np.r_[np.arange(0, 1 << 16, 97), [0, 1, 0x7BFF, 0x7C00, 0x7F80, 0x8001]].astype(np.uint16)
    return bits.view(dtype.numpy)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_native_code_rounds_as_the_reference(dtype: DType, target: str):
    x = awkward(dtype)
    x = x[np.isfinite(widen(x))]
    graph = graph_of(lambda x: math.sqrt(ew.abs(ew.mul(x, 1.7))), TensorType(dtype, x.shape))
    check_native(graph, [x], target_or_skip(target))


def ties() -> np.ndarray:
    rng = np.random.default_rng(0)
    random = rng.integers(0, 1 << 32, 4000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    halves = (np.arange(2000, dtype=np.uint32) * 0x1000 + 0x33000000).view(np.float32)
    edges = np.float32([0, 65504, 65519.99, 65520, 65536, 6e-8, 2.9e-8, 2.98e-8, 6.1e-5, 3.39e38, np.inf, 1e-45])
    result = np.r_[random, halves, edges, -edges]
    return result[~np.isnan(result)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_rounding_is_to_nearest_with_ties_to_even(dtype: DType, target: str):
    x = ties()
    graph = graph_of(lambda x: ew.cast(x, dtype=dtype), TensorType(float32, x.shape))
    check_native(graph, [x], target_or_skip(target))
    expected = narrow(x, dtype)
    assert graph.outputs[0].dtype is dtype and expected.dtype == dtype.numpy


def test_texts_read_back():
    graph = graph_of(lambda x: ew.where(ew.gt(x, 0), x, gc_constant(x.dtype)), TensorType(bfloat16, (2,)))
    text = print_graph(graph)
    assert print_graph(parse_graph(text)) == text and "bf16(0.5)" in text


def gc_constant(dtype: DType):
    return shape.filled(0.5, dtype, ())


def test_every_op_that_takes_them_only_moves_them():
    for op in REGISTRY.values():
        for sample in op.samples() if op.samples else ():
            if op.has(Trait.CONVERSION) or not sample.operands:
                continue
            half = [a.astype(np.float16) if a.dtype.kind == "f" else a for a in sample.operands]
            if not any(a.dtype == np.float16 for a in half):
                continue
            attrs = op.normalize(sample.attrs)
            try:
                op.result_types(tuple(TensorType(layout_of(a.dtype), a.shape) for a in half), attrs)
            except GraphcError:
                continue
            wide = [a.astype(np.float32) if a.dtype == np.float16 else a for a in half]
            for result, expected in zip(op.evaluate(half, attrs), op.evaluate(wide, attrs), strict=True):
                np.testing.assert_array_equal(result.astype(np.float64), expected.astype(np.float64), err_msg=op.name)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_tensors_are_made_printed_and_read(dtype: DType):
    x = gc.tensor([1.5, -2.0], dtype=dtype)
    assert x.tolist() == [1.5, -2.0] and x[0].item() == 1.5 and float(x[1]) == -2.0
    assert repr(x) == f"tensor([ 1.5000, -2.0000], dtype=graphc.{dtype.long_name})"
    given = gc.ones(3, dtype=dtype), gc.full((3,), 1.0, dtype=dtype), x.new_full((3,), 1)
    for made in (*given, gc.linspace(1, 1, 3, dtype=dtype)):
        assert made.dtype is dtype and made.tolist() == [1, 1, 1]
    assert gc.arange(4, dtype=dtype).tolist() == [0, 1, 2, 3] and gc.zeros(1, dtype=dtype).item() == 0
    drawn = gc.rand(1000, dtype=dtype)
    assert drawn.dtype is gc.randn(3, dtype=dtype).dtype is dtype and float(drawn.min()) >= 0 and float(drawn.max()) < 1
    x[0] = 7
    x += 0.5
    assert x.tolist() == [7.5, -1.5] and x.element_size() == 2 and x.is_floating_point()


def test_numpy_has_no_bf16():
    with pytest.raises(DTypeError, match="does not support bf16"):
        gc.ones(2).bfloat16().numpy()
    assert gc.ones(2).half().numpy().dtype == np.float16


def test_integers_of_every_width_wrap_around():
    for name in ("int16", "uint16", "uint32", "uint64"):
        top = np.iinfo(name).max
        x = gc.tensor([int(top), 3], dtype=name)
        low = int(np.iinfo(name).min)
        assert gc.compile(lambda x: x + 1)(x).tolist() == (x + 1).tolist() == [low, 4]
        assert (x >> 1).tolist() == [top >> 1, 1] and (x // 2).tolist() == [top // 2, 1] and x.max().item() == top
        assert x.dtype is gc.tensor(x.numpy()).dtype and repr(x).endswith(f"dtype=graphc.{name})")
    wide = gc.compile(lambda x: (x + 2**63, x.to(gc.uint64)))(gc.tensor([5], dtype=gc.uint64))
    assert wide[0].tolist() == [2**63 + 5]
    assert gc.tensor([1.5e19, -1.0]).to(gc.uint64).tolist()[0] == int(np.float32(1.5e19))
    assert element(2**64 - 1, gc.uint64).dtype == np.uint64 and elements([1], int32).dtype == np.int32
