"""Facts about define: what the returned function does with scalars and element types before the op is applied."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import bfloat16, bool_, complex64, complex128, float32, float64, int32, int64
from graphc.errors import ArgumentError, VerifyError
from graphc.ir.graph.graph import Graph
from graphc.ir.op import REGISTRY, Attr, Trait
from graphc.ir.types import TensorType
from graphc.ops import define
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise, math
from tests.ops.apply import traced


def values(*types):
    graph = Graph("test")
    return [graph.add_input(TensorType(d, s), "x") for d, s in types]


@pytest.mark.parametrize(
    "operands,expected",
    [
        ([(float32, (2,)), (float64, ())], float32),
        ([(int32, (2,)), (float64, ())], float64),
        ([(int32, (2,)), (int64, ())], int32),
        ([(int32, ()), (int64, ())], int64),
        ([(bool_, (2,)), (int64, ())], int64),
        ([(float32, (2,)), (complex128, ())], complex64),
        ([(bfloat16, (2,)), (complex128, ())], complex64),
        ([(float64, (2,)), (complex64, ())], complex128),
        ([(int32, (2,)), (complex128, ())], complex128),
    ],
)
def test_common_type_of_tensors(operands, expected):
    assert define.common_type(values(*operands)) is expected


@pytest.mark.parametrize(
    "dtype,value,expected",
    [
        (int32, 2, int32),
        (int32, 2.5, float32),
        (float64, 2.5, float64),
        (bool_, 2, int64),
        (bool_, True, bool_),
        (int32, np.float64(2.5), float32),
        (int32, np.int64(3), int32),
    ],
)
def test_common_type_with_a_scalar(dtype, value, expected):
    assert define.common_type([*values((dtype, (2,))), value]) is expected


def test_common_type_of_scalars_alone():
    assert define.common_type([1, 2]) is int64
    assert define.common_type([1, 2.5]) is float32
    assert define.common_type([True]) is bool_


def test_other_operands_are_refused():
    for value, kind in (("x", "str"), (np.ones(2), r"numpy\.ndarray")):
        with pytest.raises(ArgumentError, match=f"add: {kind} is no tensor"):
            define.common_type([value], "add")


def test_casts_are_applied_only_where_needed():
    graph, (result,) = traced(elementwise.add, np.ones(2, "float32"), np.ones(2, "int64"))
    assert [n.op.name for n in graph.nodes()] == ["cast", "add"] and result.dtype is float32
    graph, _ = traced(elementwise.add, np.ones(2, "float32"), np.ones(2, "float32"))
    assert [n.op.name for n in graph.nodes()] == ["add"]


def test_floating_point_is_asked_for():
    assert traced(lambda x: elementwise.div(x, 2), np.ones(2, "int64"))[1][0].dtype is float32
    assert traced(math.exp, np.ones(2, "float64"))[1][0].dtype is float64


def test_only_the_named_operands_are_promoted():
    graph, (result,) = traced(lambda c, x: elementwise.where(c, x, 2.5), np.array([True]), np.ones(1, "int32"))
    assert result.dtype is float32
    assert [n.op.name for n in graph.nodes()] == ["cast", "constant", "where"]


def test_the_function_is_described_by_its_op():
    assert elementwise.add.__name__ == "add" and elementwise.add.__doc__ == REGISTRY["add"].doc
    assert repr(elementwise.add) == "<op add>"


def test_a_name_is_taken_once():
    with pytest.raises(VerifyError, match="op reshape is defined twice"):
        define.define("reshape", "Another one.", "x", lambda x: x)
    assert REGISTRY["reshape"] is shape.reshape.op and shape.reshape.op.has(Trait.VIEW)


@pytest.mark.parametrize(
    "operands,attrs,infer,message",
    [
        ("x", [Attr("axis", "int")], lambda x, axis: x, r"gives \[2,3\], not \[2\] or \[2,1\]"),
        ("x", [], lambda x: TensorType(x.dtype, ()), "an attribute axes or axis"),
        ("x y", [Attr("axis", "int")], lambda x, y, axis: TensorType(x.dtype, (2,)), "has one operand"),
    ],
)
def test_a_reduction_must_fold_its_axes(operands, attrs, infer, message):
    with pytest.raises(VerifyError, match=message):
        define.define("no_reduction", "", operands, infer, attrs=attrs, traits=Trait.PURE | Trait.REDUCTION)
    assert "no_reduction" not in REGISTRY
