"""Facts about shared type rules: broadcasting against numpy, and what their errors say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphc.base.dtypes import STORED, DType, bfloat16x2, bool_, float32, float64, int8, layout_of
from graphc.base.sizes.assumptions import Assumptions, assuming
from graphc.base.sizes.named_dims import Dim
from graphc.errors import AttributeValueError, DTypeError, GraphcError, IndexRangeError, ShapeError
from graphc.ir.op import REGISTRY, Trait
from graphc.ir.types import TensorType
from graphc.ops import registry, rules

assert registry.FAMILIES, "every op is defined"
SHAPES = st.lists(st.lists(st.integers(0, 3), max_size=4).map(tuple), min_size=1, max_size=3)


@given(SHAPES)
def test_broadcast_is_numpy(shapes):
    types = [TensorType(float32, s) for s in shapes]
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            rules.broadcast("add", types)
    else:
        assert rules.broadcast("add", types) == expected


def test_broadcast_names_the_pair():
    types = [TensorType(float32, s) for s in ((4, 1, 3), (2, 1), (5, 3))]
    with pytest.raises(ShapeError, match=r"\[2,1\] \(operand 1\) and \[5,3\] \(operand 2\) .*: 2 and 5 at dim -2"):
        rules.broadcast("f", types)


def test_elementwise():
    infer = rules.elementwise("f", "f", bool_)
    assert infer(TensorType(float32, (2, 1)), TensorType(float32, (3,))) == TensorType(bool_, (2, 3))
    with pytest.raises(DTypeError, match=r"operand 1 is signed integer \(i8\)") as caught:
        infer(TensorType(float32), TensorType(int8))
    assert caught.value.remedy == "cast it to one of f64, f32"
    with pytest.raises(DTypeError, match=r"f32 \(operand 0\) and f64 \(operand 1\)"):
        infer(TensorType(float32), TensorType(float64))


def test_axes():
    rules.check_axes("f", (2, 0), 3)
    with pytest.raises(IndexRangeError, match="axis 3 is out of range for rank 3") as caught:
        rules.check_axes("f", (0, 3), 3)
    assert caught.value.remedy == "pass an axis from 0 to 2"
    with pytest.raises(IndexRangeError) as caught:
        rules.check_axis("f", 0, 0)
    assert caught.value.remedy == "pass an operand with dimensions"
    with pytest.raises(AttributeValueError, match=r"listed twice in \[1, 1\]"):
        rules.check_axes("f", (1, 1), 3)


def test_counts_and_sizes():
    rules.check_count("f", "low", (1, 2), 2)
    with pytest.raises(AttributeValueError, match="low has 1 entries for an operand of rank 2"):
        rules.check_count("f", "low", (1,), 2)
    rules.check_sizes("f", (0, 2))
    with pytest.raises(ShapeError, match=r"shape \[2,-1\] has a negative dimension"):
        rules.check_sizes("f", (2, -1))


MOVES = {"where", "gather", "cast", "state_write", "tap", "update_slice"}


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_what_takes_what_is_only_stored(dtype: DType):
    taken = set()
    for op in REGISTRY.values():
        for sample in op.samples() if op.samples else ():
            types = [TensorType(layout_of(a.dtype), a.shape) for a in sample.operands]
            narrow = tuple(TensorType(dtype, t.shape) if t.dtype.kind == "f" else t for t in types)
            if narrow == tuple(types):
                continue
            try:
                op.result_types(narrow, op.normalize(sample.attrs))
                taken.update([] if op.has(Trait.VIEW) else [op.name])
            except GraphcError:
                pass
    assert taken == (MOVES - {"cast"} | {"matmul", "conv", "conv_grad_weight"} if dtype is bfloat16x2 else MOVES)


def _assumed(*shapes: tuple) -> tuple[tuple, list[str]]:
    types = [TensorType(float32, shape) for shape in shapes]
    with assuming(Assumptions()) as assumptions:
        found = rules.broadcast("add", types)
    return found, [str(a).partition(" (")[0] for a in assumptions.found.values()]


def test_broadcasting_asks_only_what_it_must_of_sizes():
    n, m = Dim("n", 1, 64), Dim("m", 1, 64, hint=8)
    assert _assumed((n, 1, m), (1, 5, m), (1,)) == ((n, 5, m), [])
    assert _assumed((n, 3), (n, 1)) == ((n, 3), [])
    assert _assumed((n,), (32,)) == ((n,), ["n == 32"])
    assert _assumed((Dim("n", 1, 64, hint=1),), (5,)) == ((5,), ["n != 5", "n == 1"])
    with pytest.raises(ShapeError, match=r"\[n\] \(operand 0\) and \[m\] \(operand 1\) do not broadcast: n and m"):
        rules.broadcast("add", [TensorType(float32, (n,)), TensorType(float32, (m,))])
