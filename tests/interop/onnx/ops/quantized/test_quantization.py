"""Steps of a scale, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc.interop.onnx.backend import prepare
from graphc.interop.onnx.module import from_onnx
from tests.interop.onnx.single import check, model
from tests.native import target_or_skip

onnx = pytest.importorskip("onnx")

RANDOM = np.random.default_rng(0)
X = (np.random.default_rng(0).standard_normal((3, 4, 6)) * 40).astype(np.float32)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_steps_of_one_scale(dtype: str):
    zero = np.array(5, dtype)
    check("QuantizeLinear", X, np.float32(0.5) + np.zeros((), np.float32), zero, results=[dtype])


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_scale_for_each_place_of_an_axis(axis: int, dtype: str):
    scale = np.linspace(0.2, 1, X.shape[axis]).astype(np.float32)
    zero = np.arange(X.shape[axis]).astype(dtype)
    check("QuantizeLinear", X, scale, zero, results=[dtype], axis=axis)


def test_a_scale_for_each_block():
    scale = np.linspace(0.2, 1, 3 * 4 * 2).reshape(3, 4, 2).astype(np.float32)
    zero = np.ones((3, 4, 2), np.uint8)
    check("QuantizeLinear", X, scale, zero, results=[np.uint8], axis=2, block_size=3)
    check("DequantizeLinear", X.astype(np.int8), scale, zero.astype(np.int8), axis=2, block_size=3)


def test_halves_go_to_the_even_step():
    x = np.array([0.5, 1.5, 2.5, -0.5], np.float32)
    assert from_onnx(model("QuantizeLinear", x, np.ones((), np.float32), np.zeros((), np.int8), results=[np.int8]))(
        x, np.ones((), np.float32), np.zeros((), np.int8)
    ).tolist() == [0, 2, 2, 0]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "uint16"])
def test_steps_become_numbers(dtype: str):
    x = np.array([0, 1, 3, 100], dtype)
    zero = [] if dtype == "int32" else [np.array(3, dtype)]
    check("DequantizeLinear", x, np.array(0.25, np.float32), *zero)


def test_the_result_may_have_eight_bits_of_a_real_number():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    zero = np.zeros((), ml_dtypes.float8_e4m3fn)
    proto = model("QuantizeLinear", X, np.array(2, np.float32), zero, results=[zero.dtype])
    (found,) = prepare(proto).run([X, np.array(2, np.float32), zero])
    wanted = np.clip(X / 2, -448, 448).astype(zero.dtype)
    np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


def test_the_elements_give_the_scale():
    check("DynamicQuantizeLinear", X, results=[np.uint8, np.float32, np.uint8])


@pytest.mark.parametrize("target", ["host", "avx2", "sse2"])
def test_compiled_codes_have_the_bits_of_the_definition_between_two_codes(target: str):
    """A product with the reciprocal scale, or a fused multiply-add, would round many of these ratios otherwise."""
    target_or_skip(target)
    scale, zero = np.float32(0.1), np.uint8(128)
    ratios = np.arange(-120, 120, dtype=np.float32) + np.float32(0.5)
    x = np.concatenate([np.nextafter(ratios * scale, np.float32(end)) for end in (-100, 0, 100)] + [ratios * scale])
    step = (x.max() - x.min()) / np.float32(255)
    point = np.float32(np.rint(-x.min() / step))
    nodes = [
        onnx.helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["codes"]),
        onnx.helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["back"]),
        onnx.helper.make_node("Add", ["back", "x"], ["sum"]),
        onnx.helper.make_node("DynamicQuantizeLinear", ["x"], ["own", "own_scale", "own_zero"]),
    ]
    kinds = {"codes": 2, "sum": 1, "own": 2, "own_scale": 1, "own_zero": 2}
    graph = onnx.helper.make_graph(
        nodes,
        "codes",
        [onnx.helper.make_tensor_value_info("x", 1, x.shape)],
        [onnx.helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()],
        [onnx.numpy_helper.from_array(np.asarray(a), name) for a, name in ((scale, "scale"), (zero, "zero"))],
    )
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    with graphc.no_grad():
        found = [y.numpy() for y in graphc.compile(from_onnx(proto), target=target)(graphc.from_numpy(x))]
    codes = np.clip(np.rint(x / scale) + 128, 0, 255).astype(np.uint8)
    assert (codes != np.clip(np.rint(x * (1 / scale)) + 128, 0, 255)).any()
    total = (codes.astype(np.int32) - 128).astype(np.float32) * scale + x
    own = np.clip(np.rint(x / step) + point, 0, 255).astype(np.uint8)
    for y, right in zip(found, (codes, total, own, step, np.uint8(point)), strict=True):
        np.testing.assert_array_equal(y, right)


def test_gradients_pass_through_numbers_of_steps():
    scale = graphc.tensor(0.5, requires_grad=True)
    x = np.array([3, 5], np.uint8)
    from_onnx(model("DequantizeLinear", x, np.array(0.5, np.float32)))(x, scale).sum().backward()
    assert scale.grad.item() == 8


MOVES: list[tuple[str, tuple[list[int], ...], dict[str, Any], Any]] = [
    ("Identity", (), {}, lambda x: x),
    ("Flatten", (), {"axis": 2}, lambda x: x.reshape(6, 4)),
    ("Transpose", (), {"perm": [1, 0, 2]}, lambda x: x.transpose(1, 0, 2)),
    ("Reshape", ([0, -1],), {}, lambda x: x.reshape(2, 12)),
    ("Squeeze", ([0],), {}, lambda x: x[0]),
    ("Unsqueeze", ([0, -1],), {}, lambda x: x[None, ..., None]),
    ("Gather", ([1, 1],), {"axis": 2}, lambda x: x[..., [1, 1]]),
    ("Slice", ([1], [4], [-1], [2]), {}, lambda x: x[..., 1:4:2]),
    ("Expand", ([2, 1, 1, 1],), {}, lambda x: np.stack([x, x])),
    ("Tile", ([1, 2, 1],), {}, lambda x: np.concatenate([x, x], 1)),
    ("MaxPool", (), {"kernel_shape": [2], "strides": [2]}, lambda x: x.reshape(*x.shape[:2], 2, 2).max(-1)),
    ("MaxPool", (), {"kernel_shape": [2], "pads": [1, 0], "strides": [4]}, lambda x: x[..., :1]),
]


@pytest.mark.parametrize(("operator", "others", "attributes", "expected"), MOVES)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_codes_move_without_a_conversion(operator: str, others: Any, attributes: Any, expected: Any, dtype: Any):
    info = np.iinfo(dtype)
    x = RANDOM.integers(info.min, info.max, (1 if operator == "Squeeze" else 2, 3, 4), endpoint=True).astype(dtype)
    inputs = {f"input{number}": np.array(value) for number, value in enumerate(others)}
    constants = {"scale": np.float32(0.03), "zero": dtype(9), **inputs}
    nodes = [
        onnx.helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["real"]),
        onnx.helper.make_node(operator, ["real", *inputs], ["moved"], **attributes),
        onnx.helper.make_node("QuantizeLinear", ["moved", "scale", "zero"], ["codes"]),
    ]
    module = _module(nodes, x, ["codes", "moved"], constants)
    for compute in (module, graphc.compile(module)):
        codes, moved = compute(graphc.from_numpy(x))
        assert np.array_equal(codes.numpy(), expected(x))
        np.testing.assert_allclose(moved.numpy(), (expected(x).astype(np.float32) - 9) * 0.03, atol=1e-5)
    assert "quantize_linear" not in {n.op.name for n in graphc.trace(module, graphc.from_numpy(x)).nodes()}


def test_numbers_beyond_the_largest_f32_have_the_last_code():
    x = np.array([-2, -1, 0, 1, 2], np.int8)
    nodes = [
        onnx.helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["real"]),
        onnx.helper.make_node("QuantizeLinear", ["real", "scale", "zero"], ["codes"]),
    ]
    module = _module(nodes, x, ["codes"], {"scale": np.float32(3e38), "zero": np.int8(0)})
    for compute in (module, graphc.compile(module)):
        assert compute(graphc.from_numpy(x)).tolist() == [-128, -1, 0, 1, 127]


def _module(nodes: list[Any], x: np.ndarray, results: list[str], constants: dict[str, Any]) -> Any:
    kinds = {"codes": onnx.helper.np_dtype_to_tensor_dtype(x.dtype)}
    graph = onnx.helper.make_graph(
        nodes,
        "codes",
        [onnx.helper.make_tensor_value_info("x", kinds["codes"], x.shape)],
        [onnx.helper.make_tensor_value_info(name, kinds.get(name, 1), None) for name in results],
        [onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()],
    )
    return from_onnx(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8))
