"""Arithmetic on known arrays: what models compute shapes with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.size import at
from graphc.interop.onnx.module import from_onnx
from graphc.interop.onnx.table import host_function
from graphc.interop.onnx.values import array_of_sizes

onnx = pytest.importorskip("onnx")


def known(name: str, *arrays: Any, **attributes: Any) -> np.ndarray:
    function = host_function("", name)
    assert function is not None
    return function(*[np.asarray(a) for a in arrays], **attributes)


def test_whole_quotients_are_cut_towards_zero():
    assert known("Div", [-7, 7, -6, 7], [2, -2, 3, 2]).tolist() == [-3, -3, -2, 3]
    assert known("Div", np.float32([1, 7]), np.float32([2, 2])).tolist() == [0.5, 3.5]
    assert known("Mod", [-7, 7], [3, -3]).tolist() == [2, -2]
    assert known("Mod", [-7, 7], [3, -3], fmod=1).tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("name", "arrays", "expected"),
    [
        ("Sub", ([5, 3], [1, 1]), [4, 2]),
        ("Max", ([5, 3], [1, 4], [6, 0]), [6, 4]),
        ("Min", ([5, 3], [1, 4], [6, 0]), [1, 0]),
        ("Where", ([True, False], [1, 2], [3, 4]), [1, 4]),
        ("Equal", ([1, 2], [1, 3]), [True, False]),
        ("Not", ([True, False],), [False, True]),
        ("Pow", ([2, 3], [3, 2]), [8, 9]),
        ("Sqrt", (np.float32([4, 9]),), [2, 3]),
        ("ReduceProd", ([2, 3, 4],), [24]),
        ("ReduceSum", ([[2, 3], [4, 5]], [1]), [[5], [9]]),
    ],
)
def test_arrays_are_computed_as_the_operators_say(name: str, arrays: Any, expected: list[Any]):
    assert known(name, *arrays).tolist() == expected


@pytest.mark.parametrize(
    ("name", "other", "expected"),
    [
        ("Add", 3, lambda n: n + 3),
        ("Sub", 3, lambda n: n - 3),
        ("Mul", 3, lambda n: n * 3),
        ("Div", 3, lambda n: n // 3),
        ("Mod", 3, lambda n: n % 3),
        ("Pow", 2, lambda n: n * n),
        ("Max", 4, lambda n: max(n, 4)),
        ("Min", 4, lambda n: min(n, 4)),
        ("GreaterOrEqual", 4, lambda n: True),
        ("Equal", 0, lambda n: False),
    ],
)
def test_sizes_that_calls_give_are_computed_with(name: str, other: int, expected: Any):
    n = Dim("n", min=4, max=100)
    (result,) = known(name, array_of_sizes([n]), [other]).tolist()
    for value in (4, 10, 97):
        assert at(result, {dimensions([n])["n"]: value}) == expected(value)


def test_all_sizes_are_multiplied():
    n = Dim("n", min=4, max=100)
    (result,) = known("ReduceProd", array_of_sizes([n, 3, n])).tolist()
    assert at(result, {dimensions([n])["n"]: 5}) == 75


@pytest.mark.parametrize(("rounding", "expected"), [("Floor", [2, 2, 3, 50]), ("Ceil", [2, 3, 3, 50])])
def test_half_a_size_is_a_size_in_a_compiled_model(rounding: str, expected: list[int]):
    """Multiply by four, since the trace would fold a model that only rounds."""
    helper, types = onnx.helper, onnx.TensorProto
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"], end=1),
        helper.make_node("Cast", ["sizes"], ["real"], to=types.FLOAT),
        helper.make_node("Div", ["real", "two"], ["half"]),
        helper.make_node(rounding, ["half"], ["whole"]),
        helper.make_node("Cast", ["whole"], ["count"], to=types.INT64),
        helper.make_node("Mul", ["count", "four"], ["y"]),
    ]
    constants = [
        onnx.numpy_helper.from_array(np.array([2], np.float32), "two"),
        onnx.numpy_helper.from_array(np.array([4], np.int64), "four"),
    ]
    ports = [helper.make_tensor_value_info("x", types.FLOAT, ["n", 2])]
    results = [helper.make_tensor_value_info("y", types.INT64, [1])]
    # NOTE: constants of real numbers are parameters; in a node of its own this one is known.
    first = helper.make_node("Constant", [], ["two"], value=constants[0])
    graph = helper.make_graph([first, *nodes], "half", ports, results, constants[1:])
    module = from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    compiled = graphc.compile(module, dims=module.dims)
    for rows, count in zip((4, 5, 6, 100), expected, strict=True):
        assert compiled(graphc.zeros(rows, 2)).tolist() == [4 * count]
