"""Changes of layers: every plain attribute of every layer with numbers, flags or texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import graphc as gc
from graphc import nn
from tools.nets.changes.scene import Scene
from tools.nets.changes.table import add

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
    "Bilinear": lambda: _Twice(nn.Bilinear(4, 4, 4)),
    "Flatten": lambda: nn.Flatten(),
    "Embedding": lambda: _Looked(nn.Embedding(6, 4)),
    "EmbeddingBag": lambda: _Looked(nn.EmbeddingBag(6, 4)),
    "Conv1d": lambda: _Channels(nn.Conv1d(2, 2, 1)),
    "ConvTranspose1d": lambda: _Channels(nn.ConvTranspose1d(2, 2, 1)),
    "AvgPool1d": lambda: _Channels(nn.AvgPool1d(1)),
    "MaxPool1d": lambda: _Channels(nn.MaxPool1d(1)),
    "LPPool1d": lambda: _Channels(nn.LPPool1d(2.0, 1)),
    "AdaptiveAvgPool1d": lambda: _Channels(nn.AdaptiveAvgPool1d(2)),
    "InstanceNorm1d": lambda: _Channels(nn.InstanceNorm1d(2, affine=True, track_running_stats=True)),
    "LocalResponseNorm": lambda: _Channels(nn.LocalResponseNorm(2)),
    "ConstantPad1d": lambda: _Cut(nn.ConstantPad1d((0, 1), 0.5)),
    "ZeroPad1d": lambda: _Cut(nn.ZeroPad1d((0, 1))),
    "Upsample": lambda: _Channels(nn.Upsample(scale_factor=2.0, mode="nearest"), 2),
    "GRU": lambda: _First(nn.GRU(4, 4)),
    "LSTM": lambda: _First(nn.LSTM(4, 4)),
    "RNN": lambda: _First(nn.RNN(4, 4)),
    "MultiheadAttention": lambda: _Attention(nn.MultiheadAttention(4, 2)),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2, 4),
    "CosineSimilarity": lambda: _Distance(nn.CosineSimilarity()),
    "PairwiseDistance": lambda: _Distance(nn.PairwiseDistance()),
}
"""Layers with attributes, as a module on rows of four numbers that gives such rows."""


class _Around(nn.Module):
    def __init__(self, layer: Any, times: int = 1):
        super().__init__()
        self.layer = layer
        self.times = times


class _Twice(_Around):
    def forward(self, x: Any) -> Any:
        return self.layer(x, x)


class _Looked(_Around):
    def forward(self, x: Any) -> Any:
        rows = (x.detach().abs() * 3).long().clamp(0, 5)[:, :2]
        result = self.layer(rows)
        return x + (result.sum(1) if result.ndim == 3 else result)


class _Channels(_Around):
    def forward(self, x: Any) -> Any:
        y = self.layer(x.reshape(-1, 2, 2)).flatten(1)
        return x * y.mean(1, keepdim=True)


class _Cut(_Around):
    def forward(self, x: Any) -> Any:
        return self.layer(x[:, None, :3]).flatten(1)[:, :4]


class _First(_Around):
    def forward(self, x: Any) -> Any:
        return self.layer(x[:, None])[0].flatten(1)[:, :4] + x


class _Attention(_Around):
    def forward(self, x: Any) -> Any:
        return self.layer(x, x, x)[0]


class _Distance(_Around):
    def forward(self, x: Any) -> Any:
        return x * self.layer(x, x.flip(1)).mean()


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


def _layer_changes(name: str, make: Callable[[], Any], attribute: str, value: Any) -> None:
    def changed(s: Scene) -> Iterator[None]:
        around = make()
        s.model.body.append(around)
        s.model.train()
        yield
        setattr(getattr(around, "layer", around), attribute, other(value))

    add(f"{name}.{attribute}", changed, ("lean",), ("compile", "inference", "freeze", "child", "step", "export"))


for _name, _make in LAYERS.items():
    gc.manual_seed(0)
    for _attribute, _value in attributes_of(_make()).items():
        _layer_changes(_name, _make, _attribute, _value)
