"""Calls of an exported model: by position, by name, nested; and refused ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc.base.sizes.shape_patterns import Number
from graphc.errors import ArgumentError, DTypeError, ShapeError
from graphc.interop.aten.exported import CallArgument, Exported, FixedArgument, ModuleTensor, leaves_of, overlapping
from graphc.interop.aten.graph import AtenGraph, Ref
from graphc.tensors.structure import LEAF, Branch

BATCH, TIME = graphc.Dim("batch", 2, 8), graphc.Dim("time")


def exported() -> Exported:
    """Return the exported graph of ``f(x, pair, *, scale, count)`` with a parameter in front."""
    pair = Branch(dict, ("a", "b"), (LEAF, LEAF))
    takes = Branch(tuple, (), (Branch(tuple, (), (LEAF, pair)), Branch(dict, ("scale", "count"), (LEAF, LEAF))))
    inputs = [
        ModuleTensor("w"),
        CallArgument("x", (BATCH, 3), graphc.float32),
        CallArgument("pair_a", (BATCH, TIME), graphc.int64),
        FixedArgument("pair_b", None),
        FixedArgument("scale", 2.0),
        CallArgument("count", Number((TIME,))),
    ]
    graph = AtenGraph("main", ["w", "x", "a", "b", "s", "c"], [], Ref("x"))
    return Exported(graph, inputs, takes, LEAF, ("x", "pair"))


def call(**changes: Any) -> Any:
    pair = {"b": None, "a": np.ones((2, 5), np.int64)}
    return {"x": np.ones((2, 3), np.float32), "pair": pair, "scale": 2.0, "count": 5} | changes


def test_arguments_are_found_by_position_and_by_name_in_whatever_order():
    for count in range(3):
        named = call()
        first = [named.pop(name) for name in ("x", "pair")[:count]]
        x, a, b, scale, times = exported().bind(tuple(first), named)
        assert isinstance(x, graphc.Tensor) and a.shape == (2, 5) and (b, scale, times) == (None, 2.0, 5)


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"scale": 3.0}, ArgumentError, "scale was 2.0 in the export, which is part of the graph; got 3.0"),
        ({"scale": 2}, ArgumentError, "got 2"),
        ({"count": 6}, ArgumentError, "count is 6, not 5"),
        ({"count": 5.5}, ArgumentError, "whole number"),
        ({"x": np.ones((2, 3))}, DTypeError, "x was float32 in the export, got float64"),
        ({"x": np.ones((1, 3), np.float32)}, ShapeError, "batch is 1, outside of 2..8"),
        ({"x": np.ones((2, 4), np.float32)}, ShapeError, "dimension 1 of x is 4, not 3"),
        ({"x": np.ones((3, 3), np.float32)}, ShapeError, "dimension 0 of pair_a is 2, not 3"),
        ({"pair": {"a": 1}}, ArgumentError, r"the export has a dictionary with \['a', 'b'\], got dict"),
        ({"pair": [1, 2]}, ArgumentError, r"the export has a dictionary with \['a', 'b'\], got list"),
        ({"other": 1}, ArgumentError, "the export has no argument 'other'"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_name(changes: Any, kind: Any, text: str):
    with pytest.raises(kind, match=text):
        exported().bind((), call(**changes))


def test_missing_double_and_too_many_arguments_are_refused():
    with pytest.raises(ArgumentError, match="the call lacks pair, scale, count"):
        exported().bind((1,), {})
    with pytest.raises(ArgumentError, match="'x' is given twice"):
        exported().bind((1,), call())
    with pytest.raises(ArgumentError, match="got 5 arguments by position, the export has 4"):
        exported().bind((1,) * 5, {})


def test_open_sizes_are_named_as_compile_takes_them():
    assert exported().dims() == {"x": (BATCH, None), "pair": {"a": (BATCH, TIME), "b": None}, "count": TIME}
    fixed = exported()
    fixed.inputs = [ModuleTensor("w")] + [FixedArgument(i.title, 1) for i in fixed.call_arguments]
    assert fixed.dims() is None


def test_leaves_of_lists_are_those_of_tuples_too():
    assert leaves_of(Branch(tuple, (), (LEAF, Branch(list, (), ()))), [1, ()], "x") == [1]
    with pytest.raises(ArgumentError, match=r"x: the export has 2 elements, got a tensor \[2\]"):
        leaves_of(Branch(list, (), (LEAF, LEAF)), graphc.ones(2), "x")


def test_tensors_in_the_memory_of_others_are_found_but_for_those_that_are_the_same():
    places = {
        "tied": ("a", 0, 8, 1),
        "again": ("a", 0, 8, 1),
        "apart": ("a", 8, 12, 2),
        "empty": ("b", 4, 4, 3),
        "whole": ("b", 0, 16, 4),
        "first": ("b", 0, 4, 5),
        "last": ("b", 12, 16, 6),
        "behind": ("b", 16, 20, 7),
        "elsewhere": ("c", 0, 16, 8),
    }
    assert overlapping(places) == ("whole", "first", "last")
