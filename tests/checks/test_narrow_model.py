"""Narrow weights of a whole model: accuracy with both forms, layers of ``gc.quantize``, and an unchanged model."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError


def net() -> nn.Sequential:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64))


def example() -> gc.Tensor:
    return gc.tensor(np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32))


def test_accuracy_is_measured_with_both_forms():
    model, x = net().eval(), example()
    with gc.no_grad():
        exact = model(x)
        narrow = gc.compile(model, precision="int4")(x)
    modes = []

    def accuracy(candidate):
        modes.append((candidate.training, gc.is_grad_enabled()))
        return (candidate(x) - exact).abs().max()

    figures = gc.check(model, x, precision="int4", accuracy=accuracy).precision
    assert figures is not None and figures.full_accuracy == 0.0
    assert figures.accuracy == pytest.approx(float((narrow - exact).abs().max()), rel=1e-3)
    assert modes == [(False, False)] * 2
    assert str(figures).splitlines()[-1] == f"  accuracy {figures.accuracy:.6g} with int4, 0 with full weights"


def test_the_model_is_left_alone():
    model, x = net(), example()
    model[3].eval()
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}

    def destructive(candidate):
        with gc.no_grad():
            score = float(candidate(x).mean())
            candidate.train()[0].weight.zero_()
        return score

    assert gc.check(model, x, precision="bf16", accuracy=destructive).good
    assert [module.training for module in model] == [True, True, True, False] and model.training
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])


def test_functions():
    model, x = net().eval(), example()
    figures = gc.check(lambda x: model(x), x, precision="bf16", accuracy=lambda f: f(x).shape[0]).precision
    assert figures is not None and (figures.full_accuracy, figures.accuracy) == (16, 16)
    assert [layer.name for layer in figures.layers] == ["0.weight", "3.weight"]


def test_layers_of_quantize_have_the_rows_of_their_report():
    model, x = net().eval(), example()
    small = gc.quantize(model, [x], skip=["3"])
    before = {name: value.numpy().copy() for name, value in small.state_dict().items()}
    exact = gc.quantization_report(small, [x])
    figures = gc.check(small, x.numpy(), precision="int8", accuracy=lambda m: (m(x) - model(x)).abs().max()).precision
    assert figures is not None and figures.weights == 1
    rows = {layer.name: layer for layer in figures.layers}
    assert {name: row.stored for name, row in rows.items()} == {"3.weight": "int8", "0.weight": "QuantizedLinear"}
    assert rows["0.weight"].snr == pytest.approx(exact["0"].snr)
    assert f"0.weight  QuantizedLinear  {exact['0'].snr:6.1f} dB" in str(figures)
    assert figures.full_accuracy is not None and figures.accuracy is not None
    assert figures.full_accuracy < 1e-3 < figures.accuracy
    for name, value in small.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])


def test_layers_of_quantize_without_full_weights():
    x = example()
    small = gc.quantize(net().eval(), [x], trainable=False)
    figures = gc.check(small, x, precision="int8", accuracy=lambda model: model(x).shape[0]).precision
    assert figures is not None and figures.layers == () and figures.accuracy == 16
    assert figures.full_accuracy is not None and isnan(figures.full_accuracy)
    assert str(figures).endswith("accuracy 16 with int8, no full weights")


def test_one_quantized_layer_is_a_model():
    x = example()
    figures = gc.check(gc.quantize(nn.Linear(64, 64), [x]), x, precision="int8").precision
    assert figures is not None and [layer.name for layer in figures.layers] == ["weight"]


def test_what_accuracy_must_be():
    model, x = net().eval(), example()
    with pytest.raises(ArgumentError, match=r'pass precision= too, such as precision="int8"'):
        gc.check(model, x, accuracy=lambda model: 1.0)
    with pytest.raises(ArgumentError, match="pass a function that takes a model and returns a number"):
        gc.check(model, x, precision="int8", accuracy=0.9)
    with pytest.raises(ArgumentError, match=r"accuracy= returned str(.|\n)*return a number"):
        gc.check(model, x, precision="int8", accuracy=lambda model: "good")
    with pytest.raises(ArgumentError, match=r"did not call the model(.|\n)*as in model\(x\)"):
        gc.check(model, x, precision="int8", accuracy=lambda _: float(model(x).mean()))
