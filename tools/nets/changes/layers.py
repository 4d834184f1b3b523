"""Changes of layers: every plain attribute of every layer with numbers, flags or texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphc as gc
from graphc import nn
from tools.nets.changes.table import changes

LAYERS: dict[str, Callable[[], Any]] = {
    "Linear": lambda: nn.Linear(4, 4),
    "BatchNorm1d": lambda: nn.BatchNorm1d(4),
    "LayerNorm": lambda: nn.LayerNorm(4),
    "RMSNorm": lambda: nn.RMSNorm(4),
    "GroupNorm": lambda: nn.GroupNorm(2, 4),
    "Dropout": lambda: nn.Dropout(0.5),
    "AlphaDropout": lambda: nn.AlphaDropout(0.5),
    "FeatureAlphaDropout": lambda: nn.FeatureAlphaDropout(0.5),
    "RReLU": lambda: nn.RReLU(),
    "PReLU": lambda: nn.PReLU(),
    "LeakyReLU": lambda: nn.LeakyReLU(),
    "ELU": lambda: nn.ELU(),
    "CELU": lambda: nn.CELU(),
    "SELU": lambda: nn.SELU(),
    "GELU": lambda: nn.GELU(),
    "Softplus": lambda: nn.Softplus(),
    "Softmax": lambda: nn.Softmax(1),
    "Softmin": lambda: nn.Softmin(1),
    "LogSoftmax": lambda: nn.LogSoftmax(1),
    "Hardtanh": lambda: nn.Hardtanh(),
    "Hardshrink": lambda: nn.Hardshrink(),
    "Softshrink": lambda: nn.Softshrink(),
    "Threshold": lambda: nn.Threshold(0.1, 0.5),
    "Hardsigmoid": lambda: nn.Hardsigmoid(),
    "SiLU": lambda: nn.SiLU(),
    "Bilinear": lambda: _Around(nn.Bilinear(4, 4, 4), lambda layer, x: layer(x, x)),
    "Flatten": lambda: nn.Flatten(),
    "Embedding": lambda: _Around(nn.Embedding(6, 4), _looked_up),
    "EmbeddingBag": lambda: _Around(nn.EmbeddingBag(6, 4), _looked_up),
    "Conv1d": lambda: _Around(nn.Conv1d(2, 2, 1), _in_channels),
    "ConvTranspose1d": lambda: _Around(nn.ConvTranspose1d(2, 2, 1), _in_channels),
    "AvgPool1d": lambda: _Around(nn.AvgPool1d(1), _in_channels),
    "MaxPool1d": lambda: _Around(nn.MaxPool1d(1), _in_channels),
    "LPPool1d": lambda: _Around(nn.LPPool1d(2.0, 1), _in_channels),
    "AdaptiveAvgPool1d": lambda: _Around(nn.AdaptiveAvgPool1d(2), _in_channels),
    "InstanceNorm1d": lambda: _Around(nn.InstanceNorm1d(2, affine=True, track_running_stats=True), _in_channels),
    "LocalResponseNorm": lambda: _Around(nn.LocalResponseNorm(2), _in_channels),
    "ConstantPad1d": lambda: _Around(nn.ConstantPad1d((0, 1), 0.5), _cut),
    "ZeroPad1d": lambda: _Around(nn.ZeroPad1d((0, 1)), _cut),
    "Upsample": lambda: _Around(nn.Upsample(scale_factor=2.0, mode="nearest"), _in_channels),
    "GRU": lambda: _Around(nn.GRU(4, 4), _first),
    "LSTM": lambda: _Around(nn.LSTM(4, 4), _first),
    "RNN": lambda: _Around(nn.RNN(4, 4), _first),
    "MultiheadAttention": lambda: _Around(nn.MultiheadAttention(4, 2), lambda layer, x: layer(x, x, x)[0]),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2, 4),
    "CosineSimilarity": lambda: _Around(nn.CosineSimilarity(), lambda layer, x: x * layer(x, x.flip(1)).mean()),
    "PairwiseDistance": lambda: _Around(nn.PairwiseDistance(), lambda layer, x: x * layer(x, x.flip(1)).mean()),
}
"""Layers with attributes, as a module on rows of four numbers that gives such rows."""


class _Around(nn.Module):
    """A layer, and how it is applied to rows of four numbers."""

    def __init__(self, layer: Any, apply: Callable[[Any, Any], Any]):
        super().__init__()
        self.layer, self.rows = layer, apply

    def forward(self, x: Any) -> Any:
        return self.rows(self.layer, x)


def _looked_up(layer: Any, x: Any) -> Any:
    result = layer((x.detach().abs() * 3).long().clamp(0, 5)[:, :2])
    return x + (result.sum(1) if result.ndim == 3 else result)


def _in_channels(layer: Any, x: Any) -> Any:
    return x * layer(x.reshape(-1, 2, 2)).flatten(1).mean(1, keepdim=True)


def _cut(layer: Any, x: Any) -> Any:
    return layer(x[:, None, :3]).flatten(1)[:, :4]


def _first(layer: Any, x: Any) -> Any:
    return layer(x[:, None])[0].flatten(1)[:, :4] + x


def attributes_of(layer: Any) -> dict[str, Any]:
    """Return a layer's attributes of plain types: numbers, flags, texts or tuples of numbers."""
    layer = getattr(layer, "layer", layer)
    return {
        name: value
        for name, value in vars(layer).items()
        if isinstance(value, (bool, int, float, str, tuple)) and not name.startswith("_") and name != "training"
    }


TEXTS = {"tanh": "none", "none": "tanh", "mean": "sum", "nearest": "linear", "zeros": "circular"}


def other(value: Any) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 0.5 + 0.1
    if isinstance(value, tuple):
        return tuple(other(v) for v in value)
    return TEXTS.get(value, value)


for _name, _make in LAYERS.items():
    gc.manual_seed(0)
    for _attribute, _value in attributes_of(_make()).items():
        changes(
            f"""
{_name}.{_attribute}:
    around = make()
    s.model.body.append(around)
    s.model.train()
    yield
    getattr(around, "layer", around).{_attribute} = {other(_value)!r}
""",
            {"make": _make},
            ("lean",),
            ("compile", "inference", "freeze", "child", "step", "export"),
        )
