"""Quantized layers: modes, copies, files, training with rounded floats."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, StateDictError
from graphc.nn import functional as F
from graphc.quantization import QuantizedConv1d, QuantizedConv2d, QuantizedConv3d, QuantizedLinear
from graphc.quantization.layers import QUANTIZED_LAYERS, grid_of
from tests.c_library.conftest import call_alone
from tests.native import target_or_skip
from tests.quantization.nets import images, mlp, net

LAYERS = [
    (nn.Linear(6, 4), (3, 6)),
    (nn.Linear(6, 4, bias=False), (2, 3, 6)),
    (nn.Conv1d(4, 6, 3, padding="same", dilation=2), (2, 4, 9)),
    (nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect", stride=2), (2, 4, 7, 8)),
    (nn.Conv2d(4, 8, (1, 3), padding="valid", groups=4, bias=False), (4, 7, 8)),
    (nn.Conv3d(2, 4, 2, groups=2, padding=1), (1, 2, 4, 5, 3)),
]


def converted(layer: Any, low: float = -3.0, high: float = 3.0, **options: Any) -> Any:
    copied = copy.deepcopy(layer).eval()
    return QUANTIZED_LAYERS[type(copied)].convert(copied, low, high, **options)


@pytest.mark.parametrize(("low", "high", "zero"), [(0.0, 5.1, 0), (1.0, 5.1, 0), (-1.0, 0.0, 255), (-1.0, 1.0, 128)])
def test_zero_has_a_code_of_its_own(low: float, high: float, zero: int):
    scale, point = grid_of(low, high)
    assert point == zero and scale == pytest.approx((max(high, 0) - min(low, 0)) / 255)
    assert grid_of(0.0, 0.0) == (1.0, 0)


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(("layer", "shape"), LAYERS)
def test_layers_are_close_to_their_f32_form_and_compile(layer: Any, shape: tuple[int, ...], per_channel: bool):
    gc.manual_seed(1)
    quantized, x = converted(layer, per_channel=per_channel), gc.randn(*shape).clamp(-3, 3)
    with gc.no_grad():
        exact, result = layer(x).numpy(), quantized(x).numpy()
        assert 10 * np.log10(np.square(exact).sum() / np.square(exact - result).sum()) > 30
        assert np.array_equal(quantized.float_forward(x).numpy(), exact)
        assert np.allclose(gc.compile(quantized)(x).numpy(), result, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("layer", "shape"), LAYERS)
def test_training_computes_the_same_numbers_in_floats(layer: Any, shape: tuple[int, ...]):
    gc.manual_seed(1)
    quantized, x = converted(layer), 2 * gc.randn(*shape)
    result = quantized(x).detach().numpy()
    assert np.allclose(quantized.train()(x).detach().numpy(), result, rtol=1e-4, atol=1e-4)


def test_evaluation_after_training_uses_codes_of_the_trained_weight():
    quantized = converted(nn.Linear(6, 4)).train()
    quantized(gc.randn(3, 6)).square().sum().backward()
    assert float(quantized.weight.grad.abs().sum()) > 0 and quantized.bias.grad is not None
    before = quantized.weight_codes.clone()
    with gc.no_grad():
        quantized.weight -= gc.randn(4, 6)
    codes = quantized.weight_codes
    quantized.eval()
    assert quantized.weight_codes is codes and not gc.equal(codes, before)
    largest = quantized.weight.detach().abs().amax(1)
    assert gc.equal(quantized.weight_scale, largest / 127) and gc.equal(codes.abs().amax(1), 127 * gc.ones(4).to("i8"))


@pytest.mark.parametrize("has_weight", [True, False])
def test_evaluation_reads_a_changed_input_scale(has_weight: bool):
    quantized, x = converted(nn.Linear(6, 4)), gc.randn(3, 6)
    if not has_weight:
        quantized.drop_weight()
    compiled = gc.compile(quantized)
    with gc.no_grad():
        compiled(x)
        quantized.input_scale *= 2
        quantized.input_zero.fill_(100)
        quantized.eval()
        expected = quantized.input_scale.item()
        assert quantized.input_grid == (expected, 100) and quantized.input_range == (-100 * expected, 155 * expected)
        wide = converted(nn.Linear(6, 4), *quantized.input_range)
        wide.load_state_dict(quantized.state_dict(), strict=False)
        assert gc.equal(quantized(x), wide(x))
        assert gc.allclose(compiled(x), quantized(x), atol=1e-6)


def test_a_compiled_layer_sees_the_codes_of_a_trained_weight():
    target_or_skip("host")
    quantized, x = converted(nn.Linear(6, 4)), gc.randn(3, 6)
    compiled = gc.compile(quantized)
    with gc.no_grad():
        first = compiled(x)
        quantized.train()
        quantized.weight *= -1
        quantized.eval()
        bias = quantized.bias
        assert gc.allclose(compiled(x) - bias, bias - first, atol=1e-6)


def test_training_lowers_the_loss_of_the_codes():
    gc.manual_seed(0)
    model = gc.quantize(mlp(), [gc.randn(64, 12)])
    x, labels = gc.randn(64, 12), gc.randint(0, 5, (64,))
    before = float(F.cross_entropy(model(x), labels))
    optimizer = gc.optim.Adam(model.train().parameters(), lr=1e-2)
    step = gc.compile_step(model, F.cross_entropy, optimizer)
    for _ in range(60):
        step(x, labels)
    assert float(F.cross_entropy(model.eval()(x), labels)) < 0.5 * before


@pytest.mark.parametrize("kind", [QuantizedLinear, QuantizedConv1d, QuantizedConv2d, QuantizedConv3d])
def test_reverting_gives_the_f32_layer(kind: Any):
    layer = next(layer for layer, _ in LAYERS if QUANTIZED_LAYERS[type(layer)] is kind)
    reverted = converted(layer).revert()
    assert type(reverted) is type(layer) and repr(reverted) == repr(layer)
    assert list(reverted.state_dict()) == list(layer.state_dict())


def test_copies_pickles_and_state_dictionaries_compute_the_same():
    model, x = gc.quantize(net(), [images() for _ in range(2)]), images()
    expected = model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert gc.equal(other(x), expected) and repr(other) == repr(model)
        assert str(other.quantization) == str(model.quantization)
    fresh = gc.quantize(net(), [3 * images()])
    assert not gc.equal(fresh(x), expected)
    fresh.load_state_dict(model.state_dict())
    assert gc.equal(fresh(x), expected)
    assert "head.weight_codes" in model.state_dict() and "head.input_zero" in model.state_dict()


def test_codes_that_are_loaded_without_a_weight_stay_until_the_weight_changes():
    x = images()
    small = gc.quantize(net(), [x], trainable=False, correct_bias=True)
    model = gc.quantize(net(), [3 * x])
    with gc.no_grad():
        model.head.weight *= 2
    missing = model.eval().load_state_dict(small.state_dict(), strict=False).missing_keys
    assert missing == ["first.weight", "depthwise.weight", "pointwise.weight", "head.weight"]
    copied = pickle.loads(pickle.dumps(model))
    for other in (model, model.eval(), model.train().eval(), copied.eval()):
        assert gc.equal(other(x), small(x))
    with gc.no_grad():
        model.head.weight *= -1
    model.eval()
    assert gc.equal(model.head.weight_codes, quantized_codes(model.head)) and model.head.corrected_bias is None
    assert gc.equal(model.first.weight_codes, small.first.weight_codes)


def quantized_codes(layer: Any) -> Any:
    return (layer.weight.detach() / layer.weight_scale.reshape(-1, 1)).round().to("i8")


@pytest.mark.parametrize("entries", [["weight"], ["weight", "weight_codes"]])
def test_a_loaded_weight_has_codes_of_its_own(entries: list[str]):
    layer, source, other = (converted(nn.Linear(6, 4)) for _ in range(3))
    layer.load_state_dict({"weight_codes": other.weight_codes}, strict=False)
    assert gc.equal(layer.eval().weight_codes, other.weight_codes)
    layer.load_state_dict({name: getattr(source, name) for name in entries}, strict=False)
    assert gc.equal(layer.eval().weight_codes, source.weight_codes)
    layer.load_state_dict({"weight_codes": other.weight_codes}, strict=False)
    layer.load_state_dict({"weight": layer.weight.detach()}, strict=False)
    assert gc.equal(layer.eval().weight_codes, source.weight_codes)


def test_codes_that_do_not_fit_leave_a_changed_weight_to_eval():
    layer = converted(nn.Linear(6, 4))
    with gc.no_grad():
        layer.weight *= -1
    with pytest.raises(StateDictError, match="size mismatch"):
        layer.load_state_dict({"weight_codes": gc.zeros(3, 3)}, strict=False)
    assert gc.equal(layer.eval().weight_codes, quantized_codes(layer))


def test_text_names_type_and_range():
    text = repr(converted(nn.Linear(6, 4), -1.0, 3.0))
    assert text.startswith("QuantizedLinear(in_features=6, out_features=4, bias=True, int8, input from -1")


def test_a_model_file_holds_codes_and_gives_the_same_bits(tmp_path: Path):
    target_or_skip("host")
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).eval()
    x = gc.randn(3, 256)
    quantized = gc.quantize(model, [x])
    gc.export(quantized, x, path=tmp_path / "net.gcm")
    with gc.no_grad():
        assert gc.equal(gc.load(tmp_path / "net.gcm")(x), gc.compile(quantized)(x))
    assert (tmp_path / "net.gcm").stat().st_size < 0.4 * 4 * sum(p.numel() for p in model.parameters())


def test_a_c_library_gives_the_same_bits(tmp_path: Path):
    target_or_skip("host")
    quantized, x = gc.quantize(net(), [images()]), images()
    gc.export(quantized, x, path=tmp_path / "net.gcm")
    library = gc.build_library(quantized, x, path=tmp_path / "net.so", emit=("so", "py"))
    ((result,),) = call_alone(library, [[x.numpy()]], tmp_path)
    assert np.array_equal(result, gc.load(tmp_path / "net.gcm")(x).detach().numpy())


def test_layers_without_f32_weights_compute_the_same_and_cannot_train():
    x = images()
    model, small = gc.quantize(net(), [x]), gc.quantize(net(), [x], trainable=False)
    assert gc.equal(model(x), small(x)) and gc.equal(pickle.loads(pickle.dumps(small)).eval()(x), model(x))
    assert "head.weight" in model.state_dict() and "head.weight" not in small.state_dict()
    # The f32 layers that both are compared with are interpreted, or compiled once a call is repeated.
    assert small.quantization.snr == pytest.approx(model.quantization.snr, rel=1e-4)
    with pytest.raises(ArgumentError, match="quantize the model with trainable=True"):
        small.train()(x)
    with pytest.raises(ArgumentError, match="no f32 weights to compare with"):
        gc.quantization_report(small.eval(), [x])
