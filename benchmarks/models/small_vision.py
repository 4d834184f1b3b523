"""Small models of phones and microcontrollers: squeeze-and-excite networks, keywords, anomalies, persons."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from benchmarks.models.standard import module


def _unit(nn: ModuleType, channels: int, filters: int, kernel: int, act: Any, stride: int = 1, groups: int = 1) -> Any:
    conv = nn.Conv2d(channels, filters, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(filters), *([act()] if act else []))


def _squeezed(nn: ModuleType, channels: int, inner: int, act: Any, gate: Any) -> Any:
    """Return squeeze-and-excite: a gate for each channel, computed from the means over the image."""

    def forward(self, x):
        return x * self.gate(self.expand(self.act(self.reduce(nn.functional.adaptive_avg_pool2d(x, 1)))))

    layers = {"reduce": nn.Conv2d(channels, inner, 1), "expand": nn.Conv2d(inner, channels, 1)}
    return module(nn, "SqueezeExcite", forward, **layers, act=act(), gate=gate())


def _inverted(
    nn: ModuleType, channels: int, wide: int, filters: int, kernel: int, stride: int, act: Any, squeeze: Any
) -> Any:
    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)

    layers = [_unit(nn, channels, wide, 1, act)] if wide != channels else []
    layers.append(_unit(nn, wide, wide, kernel, act, stride, wide))
    layers += [squeeze] if squeeze is not None else []
    body = nn.Sequential(*layers, _unit(nn, wide, filters, 1, None))
    return module(nn, "InvertedResidual", forward, body=body, residual=stride == 1 and channels == filters)


def _classifier(nn: ModuleType, features: Sequence[Any], head: Sequence[Any]) -> Any:
    pool = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*features, *pool, *head)


def build_mobilenet_v3(nn: ModuleType) -> Any:
    """Return MobileNetV3-Small (Howard et al. 2019, table 2): hard swish. Input [n, 3, 224, 224]."""
    relu, swish = nn.ReLU, nn.Hardswish
    rows = (
        *((3, 16, 16, True, relu, 2), (3, 72, 24, False, relu, 2), (3, 88, 24, False, relu, 1)),
        *((5, 96, 40, True, swish, 2), (5, 240, 40, True, swish, 1), (5, 240, 40, True, swish, 1)),
        *((5, 120, 48, True, swish, 1), (5, 144, 48, True, swish, 1), (5, 288, 96, True, swish, 2)),
        *((5, 576, 96, True, swish, 1), (5, 576, 96, True, swish, 1)),
    )
    layers, channels = [_unit(nn, 3, 16, 3, swish, 2)], 16
    for kernel, wide, filters, squeezes, act, stride in rows:
        squeeze = _squeezed(nn, wide, max(8, (wide // 4 + 4) // 8 * 8), relu, nn.Hardsigmoid) if squeezes else None
        layers.append(_inverted(nn, channels, wide, filters, kernel, stride, act, squeeze))
        channels = filters
    layers.append(_unit(nn, channels, 576, 1, swish))
    return _classifier(nn, layers, [nn.Linear(576, 1024), swish(), nn.Linear(1024, 1000)])


def build_efficientnet(nn: ModuleType) -> Any:
    """Return EfficientNet-B0 (Tan and Le 2019, table 1): SiLU, squeeze-and-excite. Input [n, 3, 224, 224]."""
    rows = (
        *((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3)),
        *((6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)),
    )
    layers, channels = [_unit(nn, 3, 32, 3, nn.SiLU, 2)], 32
    for factor, kernel, stride, filters, count in rows:
        for i in range(count):
            wide = channels * factor
            squeeze = _squeezed(nn, wide, channels // 4, nn.SiLU, nn.Sigmoid)
            step = stride if i == 0 else 1
            layers.append(_inverted(nn, channels, wide, filters, kernel, step, nn.SiLU, squeeze))
            channels = filters
    layers.append(_unit(nn, channels, 1280, 1, nn.SiLU))
    return _classifier(nn, layers, [nn.Linear(1280, 1000)])


def _separable(nn: ModuleType, channels: int, filters: int, stride: int = 1) -> list[Any]:
    return [_unit(nn, channels, channels, 3, nn.ReLU, stride, channels), _unit(nn, channels, filters, 1, nn.ReLU)]


def build_keyword(nn: ModuleType) -> Any:
    """Return DS-CNN for keyword spotting (MLPerf Tiny): 49 frames of 10 features, 12 words. Input [n, 1, 49, 10]."""
    first = nn.Sequential(nn.Conv2d(1, 64, (10, 4), 2, (5, 1), bias=False), nn.BatchNorm2d(64), nn.ReLU())
    layers = [first, *(unit for _ in range(4) for unit in _separable(nn, 64, 64))]
    return _classifier(nn, layers, [nn.Linear(64, 12)])


def build_anomaly(nn: ModuleType) -> Any:
    """Return the autoencoder for anomalies of machine sounds (MLPerf Tiny): 640 features. Input [n, 640]."""
    layers, width = [], 640
    for filters in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        layers += [nn.Linear(width, filters), nn.BatchNorm1d(filters), nn.ReLU()]
        width = filters
    return nn.Sequential(*layers, nn.Linear(width, 640))


def build_person(nn: ModuleType) -> Any:
    """Return MobileNetV1 of a quarter of the width for person detection (MLPerf Tiny). Input [n, 3, 96, 96]."""
    layers, channels = [_unit(nn, 3, 8, 3, nn.ReLU, 2)], 8
    rows = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *((128, 1),) * 5, (256, 2), (256, 1))
    for filters, stride in rows:
        layers += _separable(nn, channels, filters, stride)
        channels = filters
    return _classifier(nn, layers, [nn.Linear(256, 2)])
