"""Quantized layers become operators between QuantizeLinear and DequantizeLinear, with integer biases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from tests.interop.onnx_export.runtimes import by_reference, by_runtime, onnx, operators

CASES = [
    (nn.Linear(6, 4), (3, 6), "Gemm"),
    (nn.Linear(6, 4, bias=False), (3, 6), "Gemm"),
    (nn.Linear(6, 4), (2, 3, 6), "MatMul"),
    (nn.Conv1d(4, 6, 3, padding="same", dilation=2), (2, 4, 9), "Conv"),
    (nn.Conv2d(4, 8, 3, padding=(1, 0), stride=2, groups=4, bias=False), (2, 4, 7, 8), "Conv"),
    (nn.Conv3d(2, 4, 2, padding=1), (1, 2, 4, 5, 3), "Conv"),
]


def quantized(layer: Any, x: Any, **options: Any) -> Any:
    return gc.quantize(nn.Sequential(layer), [x], **options)


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(("layer", "shape", "operator"), CASES)
def test_layers_are_operators_on_dequantized_numbers(
    layer: Any, shape: tuple[int, ...], operator: str, per_channel: bool, tmp_path: Path
):
    gc.manual_seed(0)
    x = gc.randn(*shape)
    model, path = quantized(layer, x, per_channel=per_channel), tmp_path / "net.onnx"
    gc.export(model, x, path=path)
    names = operators(path)
    assert operator in names and names.count("QuantizeLinear") == 1 and "Round" not in names
    expected = model(x).detach().numpy()
    for run in (by_reference, by_runtime):
        (result,) = run(path, [x.numpy()])
        assert np.abs(result - expected).max() < 1e-4 * np.abs(expected).max()
    with gc.no_grad():
        back = gc.from_onnx(path)(x).numpy()
    assert np.abs(back - expected).max() < 1e-4 * np.abs(expected).max()


def test_biases_are_integers_in_units_of_both_scales(tmp_path: Path):
    x = gc.randn(3, 6)
    model = quantized(nn.Linear(6, 4), x)
    gc.export(model, x, path=tmp_path / "net.onnx")
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(tmp_path / "net.onnx").graph.initializer}
    layer: Any = model[0]
    step = (layer.input_scale * layer.weight_scale).numpy()
    assert arrays["0.bias_codes"].dtype == np.int32 and np.array_equal(arrays["0.bias_scale"], step)
    assert np.array_equal(arrays["0.bias_codes"], np.rint(layer.bias.detach().numpy() / step))


def test_a_bias_that_has_no_code_stays_f32(tmp_path: Path):
    x = 1e-6 * gc.randn(3, 6)
    layer = nn.Linear(6, 4)
    with gc.no_grad():
        layer.weight *= 1e-6
    model = quantized(layer, x)
    gc.export(model, x, path=tmp_path / "net.onnx")
    names = {t.name for t in onnx.load(tmp_path / "net.onnx").graph.initializer}
    assert "0.bias" in names and "0.bias_codes" not in names
    (result,) = by_runtime(tmp_path / "net.onnx", [x.numpy()])
    assert np.allclose(result, model(x).detach().numpy(), rtol=1e-6)


def test_inputs_without_a_batch_are_written_op_by_op(tmp_path: Path):
    x = gc.randn(4, 9)
    model = quantized(nn.Conv1d(4, 6, 3), x)
    gc.export(model, x, path=tmp_path / "net.onnx")
    assert "ConvInteger" in operators(tmp_path / "net.onnx")
    (result,) = by_runtime(tmp_path / "net.onnx", [x.numpy()])
    assert np.allclose(result, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
