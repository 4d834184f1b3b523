"""Op definitions: attributes, operand counts, the registry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.base.dtypes import float32, int64
from graphc.errors import ArgumentError, AttributeValueError, VerifyError
from graphc.ir.op import REGISTRY, Attr, OpDef, Trait, register
from graphc.ir.types import TensorType

F = TensorType(float32, (2,))
OP = OpDef(
    "test",
    "Test op.",
    ("x", "y"),
    (Attr("axis", "int"), Attr("keep", "bool", "", False, False)),
    lambda x, y, axis, keep: x,
    traits=Trait.PURE | Trait.ELEMENTWISE,
)


@pytest.mark.parametrize(
    ("kind", "value", "normal"),
    [
        ("int", np.int64(3), 3),
        ("int", 3.0, 3),
        ("float", 2, 2.0),
        ("bool", np.True_, True),
        ("str", "a", "a"),
        ("ints", [1, np.int32(2)], (1, 2)),
        ("ints", range(3), (0, 1, 2)),
        ("pairs", [[0, 1], (2, 3)], ((0, 1), (2, 3))),
        ("dtype", int64, int64),
        ("dtype", "f32", float32),
        ("scalar", np.float32(0.5), 0.5),
        ("scalar", True, True),
        ("scalar", 7, 7),
    ],
)
def test_normal_form(kind: str, value: Any, normal: Any):
    found = Attr("a", kind).normalize(value)
    assert found == normal and type(found) is type(normal)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", True),
        ("int", 1.5),
        ("int", "x"),
        ("bool", 2),
        ("str", 1),
        ("ints", 5),
        ("ints", [1.5]),
        ("dtype", None),
    ],
)
def test_wrong_kind(kind: str, value: Any):
    with pytest.raises(AttributeValueError) as error:
        Attr("a", kind).normalize(value)
    assert error.value.what == f"attribute a must be {kind}, got {value!r}"


def test_arrays_are_private_and_read_only():
    given = np.arange(6.0).reshape(2, 3).T
    kept = Attr("a", "array").normalize(given)
    assert kept.flags.c_contiguous and not kept.flags.writeable
    given[0, 0] = 9
    assert kept[0, 0] == 0
    assert Attr("a", "array").normalize(kept) is kept
    assert Attr("a", "array").normalize(np.float32(2)).shape == ()


def test_attributes_are_completed_in_declared_order():
    assert list(OP.normalize({"keep": True, "axis": 1}).items()) == [("axis", 1), ("keep", True)]
    assert OP.normalize({"axis": 1}) == {"axis": 1, "keep": False}
    with pytest.raises(ArgumentError, match="test: unknown attribute 'dim'") as error:
        OP.normalize({"dim": 1})
    assert error.value.remedy == "use one of axis, keep"
    with pytest.raises(ArgumentError, match="test: attribute 'axis' is missing"):
        OP.normalize({})


def test_number_of_operands():
    assert OP.result_types((F, F), OP.normalize({"axis": 0})) == (F,)
    with pytest.raises(ArgumentError, match="test takes 2 operands, got 1"):
        OP.result_types((F,), OP.normalize({"axis": 0}))
    many = OpDef("many", "Any number.", ("x", "*rest"), (), lambda x, *rest: (x, *rest))
    assert many.variadic and not OP.variadic
    assert len(many.result_types((F, F, F), {})) == 3
    with pytest.raises(ArgumentError, match="many takes 1 operands, got 0"):
        many.result_types((), {})


def test_evaluate_gives_a_tuple_of_arrays():
    double = OpDef("double", "Twice.", ("x",), (), lambda x: x, reference=lambda x: x.sum() * 2)
    (result,) = double.evaluate([np.ones(3)], {})
    assert isinstance(result, np.ndarray) and result == 6
    pair = OpDef("pair", "Both.", ("x",), (), lambda x: (x, x), reference=lambda x: (x, x + 1))
    assert [r.tolist() for r in pair.evaluate([np.zeros(2)], {})] == [[0, 0], [1, 1]]
    with pytest.raises(VerifyError, match="op test has no reference"):
        OP.evaluate([], {})


def test_traits():
    assert OP.has(Trait.PURE) and OP.has(Trait.PURE | Trait.ELEMENTWISE)
    assert not OP.has(Trait.EFFECT) and not OP.has(Trait.PURE | Trait.VIEW)
    assert OP.has_any(Trait.PURE | Trait.VIEW) and not OP.has_any(Trait.EFFECT | Trait.VIEW)


def test_a_name_is_registered_once():
    assert REGISTRY["constant"].name == "constant"
    with pytest.raises(VerifyError, match="op constant is defined twice"):
        register(OpDef("constant", "Again.", (), (), lambda: ()))
