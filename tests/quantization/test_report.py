"""Reports of quantized layers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError
from graphc.quantization import quantization_report
from tests.quantization.nets import images, mlp, net


def test_the_ratio_is_that_of_squares_and_inputs_out_of_range_are_counted():
    gc.manual_seed(0)
    layer, x = nn.Linear(5, 3).eval(), gc.linspace(-1, 1, 20).reshape(4, 5)
    model = gc.quantize(nn.Sequential(layer), [x])
    y = gc.cat([x, gc.full((1, 5), 4.0)])
    report = quantization_report(model, [y])["0"]
    exact, result = layer(y).detach().numpy(), model(y).detach().numpy()
    noise = np.square(exact.astype(float) - result).sum()
    assert report.snr == pytest.approx(10 * math.log10(np.square(exact.astype(float)).sum() / noise), abs=1e-6)
    assert report.clipped == 5 / 25 and report.low == pytest.approx(-1, abs=0.01)
    assert model.quantization["0"].clipped == 0


def test_layers_are_listed_in_their_order_with_those_that_stay_f32():
    model = gc.quantize(net(), [images()], skip="pointwise")
    report = model.quantization
    assert [layer.name for layer in report.layers] == ["first", "depthwise", "pointwise", "head"]
    assert report.float_layers == ("pointwise",) and report.folded == ("first",)
    assert all(layer.snr > 30 for layer in report.layers if layer.is_quantized)
    lines = str(report).splitlines()
    assert lines[2].split() == ["pointwise", "Conv2d", "f32:", "skipped"] and "dB" in lines[0]
    again = quantization_report(model, [images()])
    assert again.float_layers == ("pointwise",) and again.folded == ("first",)


def test_a_model_without_quantized_layers_or_data_is_refused():
    with pytest.raises(ArgumentError, match=r"pass the result of gc\.quantize"):
        quantization_report(mlp(), [gc.randn(2, 12)])
    with pytest.raises(ArgumentError, match="has no inputs"):
        quantization_report(gc.quantize(mlp(), [gc.randn(2, 12)]), [])


def test_the_ratio_of_the_results_compares_with_f32_layers():
    model, data = net(), [images() for _ in range(2)]
    quantized = gc.quantize(model, data)
    exact, result = (np.concatenate([m(x).detach().numpy() for x in data]).astype(float) for m in (model, quantized))
    ratio = 10 * math.log10(np.square(exact).sum() / np.square(exact - result).sum())
    assert quantized.quantization.snr == pytest.approx(ratio, abs=0.01)
    assert str(quantized.quantization).splitlines()[-1].split() == ["results", f"{ratio:.1f}", "dB"]
    assert quantization_report(quantized, data).snr == pytest.approx(ratio, abs=0.01)
    assert gc.equal(quantized(data[0]), gc.tensor(result[:4].astype(np.float32)))


def test_a_layer_by_itself_is_a_model():
    layer, x = nn.Linear(5, 3), gc.randn(4, 5)
    quantized = gc.quantize(layer, [x])
    assert quantized.quantization[""].snr == quantized.quantization.snr > 30
