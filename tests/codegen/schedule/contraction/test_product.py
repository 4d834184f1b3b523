"""Products as records: their operands in a library's order, their calls, their descriptors."""

from __future__ import annotations

from dataclasses import replace

from graphc.base.dtypes import float32
from graphc.codegen.schedule.contraction.product import Product, ProductOperand
from graphc.files.product_descriptor import Matrix

PLAIN = Product(
    *(float32, float32, 5, 6, 7, 1),
    ProductOperand("a", 0, 7, 1),
    ProductOperand("b", 0, 6, 1),
    ProductOperand("c", 0, 6, 1),
)


def test_rows_side_by_side_are_columns_of_the_library() -> None:
    given = PLAIN.descriptor()
    assert given is not None and list(PLAIN.operands) == ["a", "b", "d"]
    assert next(PLAIN.calls()) == (("b", 0), ("a", 0), ("c", 0))
    assert (given.a, given.b, given.d) == (Matrix("f32", 6, 7, 6), Matrix("f32", 7, 5, 7), Matrix("f32", 6, 5, 6))


def test_columns_side_by_side_are_those_of_the_library() -> None:
    turned = replace(PLAIN, out=ProductOperand("c", 0, 1, 5), a=ProductOperand("a", 0, 1, 5))
    given = turned.descriptor()
    assert given is not None and not given.transpose_a and given.transpose_b
    assert next(turned.calls()) == (("a", 0), ("b", 0), ("c", 0))
    assert (given.m, given.n, given.k) == (5, 6, 7)


def test_calls_of_loops() -> None:
    moved = replace(
        PLAIN, loops=(2, 2), out=ProductOperand("c", 3, 6, 1, 0, (100, 10)), a=ProductOperand("a", 0, 7, 1, 0, (50, 0))
    )
    moved = replace(moved, b=ProductOperand("b", 1, 6, 1, 0, (0, 5)))
    calls = list(moved.calls())
    assert [dict(call)["c"] for call in calls] == [3, 13, 103, 113]
    assert [dict(call)["b"] for call in calls] == [1, 6, 1, 6]


def test_strides_that_no_library_takes() -> None:
    assert replace(PLAIN, a=ProductOperand("a", 0, 14, 2)).descriptor() is None
    assert replace(PLAIN, b=ProductOperand("b", 0, 3, 1)).descriptor() is None
    assert replace(PLAIN, out=ProductOperand("c", 0, 12, 2)).descriptor() is None
    assert replace(PLAIN, bias=ProductOperand("v", 0, 1, 0)).descriptor() is None
