"""Models that onnxruntime.quantization has quantized compute what onnxruntime computes, eagerly and compiled."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from tests.interop.onnx.one_node import needs_exact_bytes
from tools.nets.quantized.evaluators import runtime

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
quantization = pytest.importorskip("onnxruntime.quantization")
pytestmark = needs_exact_bytes


class Rows(nn.Module):
    """Rows through three layers."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(24, 48), nn.Linear(48, 33), nn.Linear(33, 5)

    def forward(self, x: Any) -> Any:
        return self.third(self.second(self.first(x).relu()).sigmoid())


class Images(nn.Module):
    """Convolutions: plain, depthwise, in groups; a residual sum, and both kinds of pooling."""

    def __init__(self):
        super().__init__()
        self.first, self.deep = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.point, self.grouped = nn.Conv2d(16, 16, 1), nn.Conv2d(16, 32, 3, stride=2, padding=1, groups=4)
        self.last = nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        x = self.first(x).relu()
        x = x + self.point(F.relu6(self.deep(x)))
        return self.last(F.max_pool2d(self.grouped(x).relu(), 2).mean((2, 3)))


class Recurrent(nn.Module):
    """A recurrent layer, and a linear one on its last state."""

    def __init__(self, layer: type):
        super().__init__()
        self.layer, self.last = layer(12, 20, batch_first=True), nn.Linear(20, 4)

    def forward(self, x: Any) -> Any:
        return self.last(self.layer(x)[0][:, -1])


class Attention(nn.Module):
    """Attention with four heads, a residual sum, and layer normalization."""

    def __init__(self):
        super().__init__()
        self.joined, self.last, self.norm = nn.Linear(32, 96), nn.Linear(32, 32), nn.LayerNorm(32)

    def forward(self, x: Any) -> Any:
        q, k, v = self.joined(x).reshape(2, 9, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1) @ v
        return self.norm(x + self.last(mixed.transpose(1, 2).reshape(2, 9, 32)))


MODELS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "rows": (Rows, (4, 24)),
    "images": (Images, (2, 3, 16, 16)),
    "lstm": (lambda: Recurrent(nn.LSTM), (2, 7, 12)),
    "gru": (lambda: Recurrent(nn.GRU), (2, 7, 12)),
    "attention": (Attention, (2, 9, 32)),
}
"""Models, and the shapes of their inputs."""


class _Calibration(quantization.CalibrationDataReader):
    def __init__(self, name: str, shape: tuple[int, ...]):
        self.batches = iter({name: _numbers(shape, seed)} for seed in range(4))

    def get_next(self) -> Any:
        return next(self.batches, None)


def _numbers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Any]:
    """Return a model's file, prepared as onnxruntime recommends, the name of its input, and the input's shape."""
    gc.manual_seed(0)
    make, shape = MODELS[request.param]
    exported, path = (tmp_path_factory.mktemp("models") / f"{name}.onnx" for name in ("exported", "prepared"))
    gc.export(make().eval(), gc.zeros(*shape), path=exported)
    quantization.quant_pre_process(exported, path, skip_symbolic_shape=True)
    return path, onnx.load(path).graph.input[0].name, shape


def _check(path: Path, shape: tuple[int, ...], integers: set[str]) -> None:
    """Compare a quantized model with onnxruntime without fusion, and check that it has one of these operators."""
    proto, x = onnx.load(path), _numbers(shape, 99)
    assert integers & {node.op_type for node in proto.graph.node}
    results = runtime(proto, {proto.graph.input[0].name: x})
    assert results is not None
    (expected,) = results.values()
    module = gc.from_onnx(path)
    for call in (module, gc.compile(module)):
        np.testing.assert_allclose(call(x).detach().numpy(), expected, rtol=1e-5, atol=2e-6)


def _options() -> list[Any]:
    """Return options of static quantization. All combinations are slow tests, except for some."""
    options = []
    combinations = product(quantization.QuantFormat, ("QUInt8", "QInt8"), (False, True), (False, True))
    for number, (form, activation, per_channel, reduced) in enumerate(combinations):
        label = f"{form.name} {activation}{' per_channel' if per_channel else ''}{' reduce_range' if reduced else ''}"
        marks = [] if number in (2, 5, 11, 12) else [pytest.mark.slow]
        options.append(pytest.param(form, activation, per_channel, reduced, id=label, marks=marks))
    return options


@pytest.mark.parametrize(("form", "activation", "per_channel", "reduced"), _options())
def test_static_scales(model, tmp_path: Path, form: Any, activation: str, per_channel: bool, reduced: bool):
    path, name, shape = model
    quantization.quantize_static(
        path,
        tmp_path / "quantized.onnx",
        _Calibration(name, shape),
        quant_format=form,
        activation_type=getattr(quantization.QuantType, activation),
        weight_type=quantization.QuantType.QInt8,
        per_channel=per_channel,
        reduce_range=reduced,
    )
    _check(tmp_path / "quantized.onnx", shape, {"QuantizeLinear"})


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("weights", ["QUInt8", "QInt8"])
def test_dynamic_scales(model, tmp_path: Path, weights: str, per_channel: bool):
    path, _, shape = model
    options = {"weight_type": getattr(quantization.QuantType, weights), "per_channel": per_channel}
    quantization.quantize_dynamic(path, tmp_path / "quantized.onnx", **options)
    _check(tmp_path / "quantized.onnx", shape, {"DynamicQuantizeLinear", "DynamicQuantizeLSTM"})


def test_models_that_onnxruntime_has_fused(model, tmp_path: Path):
    path, name, shape = model
    quantized, fused = tmp_path / "quantized.onnx", tmp_path / "fused.onnx"
    form = quantization.QuantFormat.QOperator
    quantization.quantize_static(path, quantized, _Calibration(name, shape), quant_format=form, per_channel=True)
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(fused)
    onnxruntime.InferenceSession(str(quantized), options, providers=["CPUExecutionProvider"])
    _check(fused, shape, {"QGemm"})
