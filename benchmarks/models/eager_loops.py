"""Training loops for measuring eager mode: those of ``loop``, and six more of other families."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop import LOOPS as COMMON

Loop = tuple[Any, list[np.ndarray], Any, Any]
"""A model, its input and targets, the loss, and the optimizer's constructor."""


def gated(lib: Any) -> Loop:
    """Return a GRU over 16 sequences of 24 steps, whose last output is classified; Adam."""
    nn = lib.nn

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(16, 32, batch_first=True)
            self.head = nn.Linear(32, 4)

        def forward(self, x: Any) -> Any:
            return self.head(self.gru(x)[0][:, -1])

    return Classifier(), [_numbers(16, 24, 16), _labels(4, 16)], nn.functional.cross_entropy, lib.optim.Adam


def bag(lib: Any) -> Loop:
    """Return texts of 20 words as means of 32 numbers each, classified; Adagrad."""
    nn = lib.nn
    model = nn.Sequential(nn.EmbeddingBag(2000, 32), nn.Linear(32, 4))
    return model, [_labels(2000, 64, 20), _labels(4, 64)], nn.functional.cross_entropy, lib.optim.Adagrad


def values(lib: Any) -> Loop:
    """Return values of actions of a state of four numbers (DQN), batch 64, Huber loss; Adam."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    actions = _labels(2, 64)

    def loss(output: Any, target: Any) -> Any:
        return nn.functional.smooth_l1_loss(output.gather(1, lib.tensor(actions)[:, None])[:, 0], target)

    return model, [_numbers(64, 4), _numbers(64)], loss, lib.optim.Adam


def actor(lib: Any) -> Loop:
    """Return policy and value of a state of eight numbers, batch 64, with an entropy bonus; Adam."""
    nn = lib.nn

    class Actor(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 64), nn.Tanh())
            self.policy, self.value = nn.Linear(64, 4), nn.Linear(64, 1)

        def forward(self, x: Any) -> Any:
            features = self.body(x)
            return nn.functional.log_softmax(self.policy(features), -1), self.value(features)[:, 0]

    def loss(output: Any, returns: Any) -> Any:
        logs, value = output
        advantage = returns - value.detach()
        entropy = -(logs.exp() * logs).sum(1).mean()
        return -(logs[:, 0] * advantage).mean() + 0.5 * nn.functional.mse_loss(value, returns) - 0.01 * entropy

    return Actor(), [_numbers(64, 8), _numbers(64)], loss, lib.optim.Adam


def residual(lib: Any) -> Loop:
    """Return two residual blocks of 16 channels on images of 16 x 16, batch 16, batch norm; SGD."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (nn.Conv2d(16, 16, 3, padding=1, bias=False) for _ in range(2))
            self.norm1, self.norm2 = nn.BatchNorm2d(16), nn.BatchNorm2d(16)

        def forward(self, x: Any) -> Any:
            hidden = nn.functional.relu(self.norm1(self.first(x)))
            return nn.functional.relu(x + self.norm2(self.second(hidden)))

    pool = nn.AdaptiveAvgPool2d(1)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), Block(), Block(), pool, nn.Flatten(), nn.Linear(16, 10))
    return model, [_numbers(16, 3, 16, 16), _labels(10, 16)], nn.functional.cross_entropy, lib.optim.SGD


def segments(lib: Any) -> Loop:
    """Return a small U-Net on images of 32 x 32, batch 4: a class for each pixel; Adam."""
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
            self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
            self.mix, self.head = nn.Conv2d(16, 8, 3, padding=1), nn.Conv2d(8, 3, 1)
            self.pool = nn.MaxPool2d(2)

        def forward(self, x: Any) -> Any:
            relu = nn.functional.relu
            first = relu(self.down1(x))
            second = relu(self.down2(self.pool(first)))
            return self.head(relu(self.mix(lib.cat([first, self.up(second)], 1))))

    return Net(), [_numbers(4, 1, 32, 32), _labels(3, 4, 32, 32)], nn.functional.cross_entropy, lib.optim.Adam


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def _labels(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, count, shape)


LOOPS = {**COMMON, **{f.__name__: f for f in (gated, bag, values, actor, residual, segments)}}
