"""Quantization of models: which layers, errors, accuracy, files of other formats, digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, AttributeValueError, NonFiniteError
from graphc.nn import functional as F
from graphc.quantization import QuantizedConv2d, QuantizedLinear
from graphc.quantization.observers import OBSERVERS
from tests.quantization.nets import images, mlp, net


def quantized_names(model: nn.Module) -> list[str]:
    return [name for name, m in model.named_modules() if isinstance(m, (QuantizedLinear, QuantizedConv2d))]


@pytest.mark.parametrize("method", OBSERVERS)
@pytest.mark.parametrize("per_channel", [True, False])
def test_a_quantized_model_is_close_and_the_model_stays_as_it_was(method: str, per_channel: bool):
    model = net()
    state, text = {k: v.clone() for k, v in model.state_dict().items()}, repr(model)
    quantized = gc.quantize(model, [images() for _ in range(4)], method=method, per_channel=per_channel)
    assert quantized_names(quantized) == ["first", "depthwise", "pointwise", "head"]
    assert repr(model) == text and all(gc.equal(v, state[k]) for k, v in model.state_dict().items())
    x = images(16)
    exact, result = model(x).detach().numpy(), quantized(x).detach().numpy()
    assert np.abs(result - exact).max() < 0.05 * np.abs(exact).max() and not quantized.training


def test_a_training_model_stays_in_training_mode():
    model = net().train()
    assert not gc.quantize(model, [images()], accuracy=lambda m: 1.0).training
    assert model.training and model.norm.training


def test_skipped_layers_stay_f32():
    model, x = nn.Sequential(mlp(), nn.Linear(5, 5)).eval(), [gc.randn(4, 12)]
    assert quantized_names(gc.quantize(model, x, skip="0.2")) == ["0.0", "0.4", "1"]
    assert quantized_names(gc.quantize(model, x, skip=["0"])) == ["1"]
    assert quantized_names(gc.quantize(net(), [images()], skip=nn.Conv2d)) == ["head"]
    by_function = gc.quantize(model, x, skip=lambda name, module: getattr(module, "out_features", 0) == 5)
    assert quantized_names(by_function) == ["0.0", "0.2"]
    with pytest.raises(AttributeValueError, match="skip names 'body'"):
        gc.quantize(model, x, skip=["body"])
    with pytest.raises(ArgumentError, match="skip holds int"):
        gc.quantize(model, x, skip=[3])


def test_shared_layers_and_tied_weights_stay_shared():
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
            self.inner = nn.Linear(4, 4)
            self.again = self.inner
            self.head.weight = self.words.weight

        def forward(self, x: Any) -> Any:
            return self.head(self.again(self.inner(self.words(x))))

    model = gc.quantize(Tied().eval(), [gc.arange(7)])
    assert model.again is model.inner and model.head.weight is model.words.weight
    assert quantized_names(model) == ["head", "inner"] and type(model.words) is nn.Embedding


def test_layers_without_a_call_and_subclasses_stay_f32():
    class Doubled(nn.Linear):
        def forward(self, input: Any) -> Any:
            return 2 * super().forward(input)

    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused, self.special = nn.Linear(4, 4), nn.Linear(4, 4), Doubled(4, 4)

        def forward(self, x: Any) -> Any:
            return self.special(self.used(x))

    model = gc.quantize(Unused(), [gc.randn(2, 4)])
    assert quantized_names(model) == ["used"] and type(model.special) is Doubled
    assert model.quantization["unused"].reason == "no call in the calibration data"


def test_sums_that_may_exceed_32_bits_stay_f32():
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide, self.narrow = nn.Linear(70_000, 2), nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.narrow(self.wide(x))

    model = gc.quantize(Wide(), [gc.randn(2, 70_000)])
    assert quantized_names(model) == ["narrow"]
    assert model.quantization["wide"].reason == "sums of more products than i32 holds"
    largest = gc.quantize(nn.Linear(65_000, 1, bias=False), [gc.full((1, 65_000), 2.0)])
    with gc.no_grad():
        largest.weight.fill_(1.0)
        assert float(largest.eval()(gc.full((1, 65_000), 2.0))) == pytest.approx(130_000, rel=1e-6)


def test_errors_say_what_to_do():
    model, x = mlp(), gc.randn(4, 12)
    with pytest.raises(ArgumentError, match="the calibration data has no inputs"):
        gc.quantize(model, [])
    with pytest.raises(ArgumentError, match="ReLU has no layer to quantize"):
        gc.quantize(nn.ReLU(), [x])
    with pytest.raises(ArgumentError, match="Sequential has no layer to quantize"):
        gc.quantize(mlp().double(), [x])
    with pytest.raises(ArgumentError, match="pass an instance"):
        gc.quantize(nn.Linear, [x])  # type: ignore[arg-type]
    with pytest.raises(AttributeValueError, match="precision 'int3' is not known"):
        gc.quantize(model, [x], precision="int3")
    with pytest.raises(AttributeValueError, match="method 'mean' is not known"):
        gc.quantize(model, [x], method="mean")
    bad = x.clone()
    bad[0, 0] = float("nan")
    with pytest.raises(NonFiniteError, match="an input of 0 holds NaN"):
        gc.quantize(model, [x, bad])


@pytest.mark.parametrize("parameter", ["weight", "bias"])
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_parameter_that_is_not_finite_is_named(parameter: str, number: float):
    model, x = nn.Sequential(mlp(), nn.ReLU()).eval(), gc.randn(4, 12)
    with gc.no_grad():
        getattr(model[0][2], parameter)[3] = number
    with pytest.raises(NonFiniteError, match=rf"parameter 0\.2\.{parameter} holds NaN") as error:
        gc.quantize(model, [x])
    assert "skip=['0.2']" in str(error.value)
    with pytest.raises(NonFiniteError, match=f"parameter {parameter} holds NaN"):
        gc.quantize(model[0][2], [gc.randn(4, 32)])


@pytest.mark.parametrize("method", OBSERVERS)
def test_data_in_which_no_layer_gets_an_input_is_refused(method: str):
    with pytest.raises(ArgumentError, match="no layer got an input") as error:
        gc.quantize(mlp(), [gc.zeros(0, 12)], method=method, smooth=0.5, equalize=True, correct_bias=True)
    assert "pass inputs that are not empty, for which the model calls 0, 2, 4" in str(error.value)
    assert quantized_names(gc.quantize(mlp(), [gc.zeros(0, 12), gc.randn(4, 12)], method=method)) == ["0", "2", "4"]


def test_the_noisiest_layers_become_f32_until_the_accuracy_suffices():
    model = mlp()
    with gc.no_grad():
        model[2].weight *= 1e-3
        model[2].weight[:, 0] = 50.0  # one input dominates the scale of every output channel
    x = gc.randn(64, 12)
    expected = model(x).detach()

    def accuracy(m: Any) -> float:
        return -float((m(x) - expected).abs().max())

    plain = gc.quantize(model, [x])
    worst = min(plain.quantization.layers, key=lambda layer: layer.snr)
    drop = 0.5 * -accuracy(plain)
    better = gc.quantize(model, [x], accuracy=accuracy, drop=drop)
    assert accuracy(better) >= -drop > accuracy(plain)
    assert worst.name in better.quantization.float_layers
    assert "is below" in better.quantization[worst.name].reason
    assert gc.quantize(model, [x], accuracy=accuracy, drop=1e9).quantization.float_layers == ()
    assert len(gc.quantize(model, [x], accuracy=accuracy, drop=0.0).quantization.float_layers) == 3


def digits() -> tuple[Any, ...]:
    datasets = pytest.importorskip("sklearn.datasets", reason="the digits belong to scikit-learn")
    pixels, labels = datasets.load_digits(return_X_y=True)
    held_out = np.random.default_rng(0).permutation(len(labels)) % 5 == 0
    x, y = gc.tensor((pixels / 16).astype(np.float32)), gc.tensor(labels.astype(np.int64))
    return x[gc.tensor(~held_out)], y[gc.tensor(~held_out)], x[gc.tensor(held_out)], y[gc.tensor(held_out)]


def cnn() -> nn.Module:
    blocks = [nn.Unflatten(1, (1, 8, 8))]
    for i, o, groups, kernel in ((1, 16, 1, 3), (16, 16, 16, 3), (16, 32, 1, 1)):
        blocks += [nn.Conv2d(i, o, kernel, padding=kernel // 2, groups=groups), nn.BatchNorm2d(o), nn.ReLU()]
    return nn.Sequential(*blocks, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10))


def dense() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


@pytest.mark.parametrize("build", [dense, cnn])
@pytest.mark.parametrize("method", OBSERVERS)
def test_digits_are_recognised_as_well_as_in_f32(build: Any, method: str, trained: dict[Any, Any]):
    x, y, held_out, labels = digits()
    if build not in trained:
        trained[build] = train(build, x, y)
    model = trained[build]

    def correct(m: Any) -> int:
        return int((m(held_out).argmax(1) == labels).sum())

    quantized = gc.quantize(model, [x[i : i + 64] for i in range(0, 512, 64)], method=method)
    assert len(quantized.quantization.float_layers) == 0
    assert correct(model) > 0.95 * len(labels)
    assert correct(quantized) >= correct(model) - 0.003 * len(labels)


@pytest.fixture(scope="module")
def trained() -> dict[Any, Any]:
    return {}


def train(build: Any, x: Any, y: Any) -> nn.Module:
    gc.manual_seed(0)
    model = build()
    step = gc.compile_step(model, F.cross_entropy, gc.optim.Adam(model.parameters(), lr=3e-3))
    for _ in range(20):
        for rows in gc.randperm(len(y)).split(100):
            step(x[rows], y[rows])
    return model.eval()


def test_onnx_files_give_the_same(tmp_path: Path):
    pytest.importorskip("onnx", reason="exporting to ONNX needs the package onnx")
    model, x = gc.quantize(net(), [images() for _ in range(2)]), images()
    gc.export(model, x, path=tmp_path / "net.onnx")
    expected = model(x).detach().numpy()
    with gc.no_grad():
        assert np.allclose(gc.from_onnx(tmp_path / "net.onnx")(x).numpy(), expected, rtol=1e-5, atol=1e-5)
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = ort.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert np.abs(result - expected).max() < 1e-4 * np.abs(expected).max()


def test_measuring_the_accuracy_keeps_the_mode_of_each_module():
    """Such as a batch normalization in evaluation mode inside of a model in training mode."""
    model = gc.nn.Sequential(gc.nn.Linear(4, 8), gc.nn.BatchNorm1d(8), gc.nn.Dropout(), gc.nn.Linear(8, 2))
    for training in (True, False):
        model.train(training)
        model[1].train(not training)
        before = [module.training for module in model.modules()]
        gc.quantize(model, [gc.randn(16, 4)], accuracy=lambda m: 1.0)
        assert [module.training for module in model.modules()] == before
