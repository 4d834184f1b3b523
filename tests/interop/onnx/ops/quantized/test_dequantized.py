"""Products of dequantized operands are those of their codes, where scales belong to rows and columns as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.interop.onnx.module import OnnxModule, from_onnx
from graphc.passes.pipeline import optimize

onnx = pytest.importorskip("onnx")
RANDOM = np.random.default_rng(0)


def _model(op: str, x: np.ndarray, w: np.ndarray, axis: int, scales: int, **attributes: Any) -> tuple[OnnxModule, Any]:
    """Return a model that quantizes ``x``, and multiplies it with dequantized ``w``; and the scales of ``w``."""
    helper, array = onnx.helper, onnx.numpy_helper.from_array
    scale = (RANDOM.random(scales) * 0.01 + 0.01).astype(np.float32) if scales else np.float32(0.02)
    constants = {
        **{"w": w, "ws": np.asarray(scale), "wz": np.zeros(np.shape(scale), np.int8)},
        **{"xs": np.asarray(np.float32(0.02)), "xz": np.asarray(np.uint8(119))},
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["e"], axis=axis),
        helper.make_node(op, ["d", "e"], ["y"], **attributes),
    ]
    ports = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in (("x", x.shape), ("y", None))]
    graph = helper.make_graph(nodes, "m", ports[:1], ports[1:], [array(a, n) for n, a in constants.items()])
    return from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)), scale


def _numbers(x: np.ndarray) -> np.ndarray:
    """Return ``x`` rounded to the codes of the model."""
    return (np.clip(np.rint(x / np.float32(0.02)) + 119, 0, 255) - 119) * 0.02


CASES: list[tuple[str, Sequence[int], Sequence[int], int, int, dict[str, Any], bool]] = [
    ("MatMul", (2, 3, 10), (10, 6), 1, 6, {}, True),
    ("MatMul", (3, 10), (10, 6), 0, 0, {}, True),
    ("MatMul", (3, 10), (10, 6), 0, 10, {}, False),
    ("Gemm", (3, 10), (6, 10), 0, 6, {"transB": 1}, True),
    ("Gemm", (3, 10), (10, 6), 1, 6, {"alpha": 2.0}, False),
    ("Conv", (1, 4, 9), (6, 4, 3), 0, 6, {"pads": [1, 1], "strides": [2]}, True),
    ("Conv", (1, 4, 9), (4, 1, 3), 0, 4, {"group": 4}, False),
]


@pytest.mark.parametrize(("op", "rows", "weight", "axis", "scales", "attributes", "exact"), CASES)
def test_products_of_dequantized_operands(
    op: str,
    rows: Sequence[int],
    weight: Sequence[int],
    axis: int,
    scales: int,
    attributes: dict[str, Any],
    exact: bool,
):
    x = RANDOM.standard_normal(rows).astype(np.float32)
    w = RANDOM.integers(-127, 128, weight).astype(np.int8)
    module, scale = _model(op, x, w, axis, scales, **attributes)
    shape = [-1 if i == axis else 1 for i in range(len(weight))]
    factor, numbers = w * np.reshape(scale, shape if scales else ()), _numbers(x)
    if op == "Conv":
        image = np.pad(numbers, ((0, 0), (0, 0), (1, 1))) if "pads" in attributes else numbers
        windows = np.lib.stride_tricks.sliding_window_view(image, 3, axis=2)[:, :, :: attributes.get("strides", [1])[0]]
        rule = "nciy,cy->nci" if "group" in attributes else "nciy,ocy->noi"
        expected = np.einsum(rule, windows, factor[:, 0] if "group" in attributes else factor)
    else:
        expected = attributes.get("alpha", 1) * (numbers @ (factor.T if "transB" in attributes else factor))
    for compute in (module, graphc.compile(module)):
        np.testing.assert_allclose(compute(graphc.tensor(x)).numpy(), expected, rtol=1e-5, atol=1e-5)
    names = {n.op.name for n in graphc.trace(module, graphc.tensor(x)).nodes()}
    assert bool({"byte_matmul", "real_byte_conv"} & names) is exact


@pytest.mark.parametrize("pads", [[0, 0], [1, 1], [2, 1]])
def test_sums_of_depthwise_convolutions_are_exact(pads: list[int]):
    x = RANDOM.standard_normal((2, 4, 19)).astype(np.float32)
    w = RANDOM.integers(-128, 128, (4, 1, 3)).astype(np.int8)
    module, scale = _model("Conv", x, w, 0, 4, group=4, pads=pads)
    codes = np.pad(np.rint(_numbers(x) / 0.02), ((0, 0), (0, 0), tuple(pads)))
    sums = np.einsum("nciy,cy->nci", np.lib.stride_tricks.sliding_window_view(codes, 3, axis=2), w[:, 0])
    expected = sums.astype(np.float32) * (np.float32(0.02) * np.asarray(scale))[:, None]
    for compute in (module, graphc.compile(module)):
        np.testing.assert_array_equal(compute(graphc.tensor(x)).numpy(), expected)


def test_grouped_sums_that_exceed_24_bits_are_those_of_numbers():
    x, w = np.full((1, 2048, 4), 1e3, np.float32), np.full((2, 1024, 3), 127, np.int8)
    module, scale = _model("Conv", x, w, 0, 2, group=2)
    expected = (255 - 119) * 0.02 * 127 * np.asarray(scale)[:, None] * 1024 * 3
    np.testing.assert_allclose(module(graphc.tensor(x)).numpy()[0], np.broadcast_to(expected, (2, 2)), rtol=1e-4)


@pytest.mark.parametrize(("op", "inner"), [("MatMul", (140000,)), ("Conv", (140000, 1))])
def test_sums_that_exceed_32_bits_are_computed_in_f32(op: str, inner: tuple[int, ...]):
    x = np.full((1, *inner), 1e3, np.float32)
    w = np.full((*inner, 2) if op == "MatMul" else (2, *inner), 127, np.int8)
    module, scale = _model(op, x, w, 0, 0)
    expected = (255 - 119) * 0.02 * 127 * float(scale) * 140000
    np.testing.assert_allclose(module(graphc.tensor(x)).numpy().ravel(), [expected] * 2, rtol=2e-3)
    short = [n.op.name for n in graphc.trace(module, graphc.tensor(x)).nodes()]
    assert not {"byte_matmul", "real_byte_conv"} & {*short}


@pytest.mark.parametrize(
    ("attributes", "exact"),
    [
        ({"strides": [2, 3]}, True),
        ({"strides": [2, 3], "pads": [1, 0, 0, 1]}, False),
        ({"strides": [2, 3], "output_padding": [0, 1]}, False),
        ({"strides": [1, 3]}, False),
    ],
)
def test_transposed_convolutions_of_dequantized_operands(attributes: dict[str, Any], exact: bool):
    """Codes are multiplied where blocks of the result do not overlap."""
    x = RANDOM.standard_normal((2, 4, 3, 5)).astype(np.float32)
    w = RANDOM.integers(-127, 128, (4, 6, 2, 3)).astype(np.int8)
    module, scale = _model("ConvTranspose", x, w, 1, 6, **attributes)
    weight = graphc.tensor((w * scale.reshape(1, 6, 1, 1)).astype(np.float32))
    full = graphc.nn.functional.conv_transpose2d(
        graphc.tensor(_numbers(x).astype(np.float32)),
        weight,
        stride=attributes["strides"],
        output_padding=attributes.get("output_padding", 0),
    )
    if "pads" in attributes:
        full = full[:, :, 1:, : full.shape[3] - 1]
    for compute in (module, graphc.compile(module)):
        np.testing.assert_allclose(compute(graphc.tensor(x)).numpy(), full.numpy(), rtol=1e-5, atol=1e-5)
    names = {n.op.name for n in graphc.trace(module, graphc.tensor(x)).nodes()}
    assert ("real_byte_conv" in names) is exact


def test_lookups_dequantize_the_rows_that_they_read():
    """A table of codes stays codes."""
    helper = onnx.helper
    table = RANDOM.integers(-127, 128, (50, 8)).astype(np.int8)
    constants = {"w": table, "s": np.float32(0.03), "z": np.int8(5)}
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"]),
        helper.make_node("Gather", ["d", "i"], ["y"]),
    ]
    ports = [
        helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [3]),
        helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None),
    ]
    initializers = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "m", ports[:1], ports[1:], initializers)
    module = from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))
    rows = graphc.tensor([4, 49, 0])
    expected = (table[[4, 49, 0]].astype(np.float32) - 5) * np.float32(0.03)
    for compute in (module, graphc.compile(module)):
        assert np.array_equal(compute(rows).numpy(), expected)
    optimized = optimize(graphc.trace(module, rows))
    assert all(n.result.shape != (50, 8) for n in optimized.nodes() if n.op.name != "constant")
