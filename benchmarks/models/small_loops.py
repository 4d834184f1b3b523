"""Small training loops for any framework: a model, its input and targets, the loss, and the optimizer's constructor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.models import loops
from benchmarks.models.standard import module

Loop = tuple[Any, list[np.ndarray], Any, Any]


class SmallLoop(loops.Loop):
    """One of the loops below, with the gradients' norm limited to 1: forward, loss, backward, clip, step."""

    def __init__(self, make: Callable[[Any], Loop], framework: Any, wrap: loops.Wrap):
        super().__init__(framework, wrap)
        model, self.arrays, self.loss, optimizer = make(framework)
        self.net = self.add(model)
        self.optimizer = optimizer(model.parameters(), lr=1e-3)
        self.parameters = list(model.parameters())

    def micro_step(self, x: Any, y: Any) -> Any:
        loss = self.loss(self.net(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.framework.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        return loss

    @classmethod
    def batch(cls, random: np.random.Generator) -> loops.Batch:
        raise NotImplementedError

    def batches(self) -> list[loops.Batch]:
        return [tuple(self.arrays)]


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def _labels(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, count, shape)


def perceptron(lib: Any) -> Loop:
    """Return a perceptron 784-128-10, batch 64, Adam."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    return model, [_numbers(64, 784), _labels(10, 64)], nn.functional.cross_entropy, lib.optim.Adam


def policy(lib: Any) -> Loop:
    """Return a control policy 17-64-64-6, batch 32, Adam: nearly all of its time is that of the calls."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(17, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 6))
    return model, [_numbers(32, 17), _numbers(32, 6)], nn.functional.mse_loss, lib.optim.Adam


def digits(lib: Any) -> Loop:
    """Return a convolutional network for digits, batch 32, SGD with momentum."""
    nn = lib.nn
    features = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*features, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1568, 10))
    batch = [_numbers(32, 1, 28, 28), _labels(10, 32)]
    return model, batch, nn.functional.cross_entropy, partial(lib.optim.SGD, momentum=0.9)


def convolutional(lib: Any) -> Loop:
    """Return two convolutions with batch norm, batch 32, Adam."""
    nn = lib.nn
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(1568, 10))
    return model, [_numbers(32, 1, 28, 28), _labels(10, 32)], nn.functional.cross_entropy, lib.optim.Adam


def tagger(lib: Any) -> Loop:
    """Return an LSTM that gives each word of 16 sentences of 20 a tag, Adam."""
    nn = lib.nn

    def loss(output: Any, tags: Any) -> Any:
        return nn.functional.cross_entropy(output.view(-1, 12), tags.view(-1))

    model = loops.build_tagger(nn, 1000, 64, 12, both_ways=False)
    return model, [_labels(1000, 16, 20), _labels(12, 16, 20)], loss, lib.optim.Adam


def variational(lib: Any) -> Loop:
    """Return a variational autoencoder 784-256-16, batch 64, Adam; it has no noise."""
    nn = lib.nn

    def forward(self: Any, x: Any) -> Any:
        mean, log = self.encoder(x).chunk(2, 1)
        return self.decoder(mean + (log * 0.5).exp()), mean, log

    encoder = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 32))
    decoder = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 784))
    model = module(nn, "Autoencoder", forward, encoder=encoder, decoder=decoder)

    def loss(output: Any, x: Any) -> Any:
        image, mean, log = output
        likelihood = nn.functional.binary_cross_entropy_with_logits(image, x, reduction="sum")
        return (likelihood - 0.5 * (1 + log - mean * mean - log.exp()).sum()) / 64

    x = np.random.default_rng(0).random((64, 784), np.float32)
    return model, [x, x], loss, lib.optim.Adam


def autoencoder(lib: Any) -> Loop:
    """Return an autoencoder 784-256-32-256-784, batch 64, RMSprop."""
    nn = lib.nn
    inner = [nn.Linear(784, 256), nn.Tanh(), nn.Linear(256, 32), nn.Tanh(), nn.Linear(32, 256), nn.Tanh()]
    x = _numbers(64, 784)
    return nn.Sequential(*inner, nn.Linear(256, 784)), [x, x], nn.functional.mse_loss, lib.optim.RMSprop


def transformer(lib: Any) -> Loop:
    """Return a language model of two blocks, width 64, 8 texts of 32 tokens, AdamW."""
    nn = lib.nn
    functional = nn.functional

    blocks = [loops.causal_block(nn, 64, 4) for _ in range(2)]
    model = nn.Sequential(nn.Embedding(256, 64), *blocks, nn.LayerNorm(64), nn.Linear(64, 256))

    def loss(output: Any, tokens: Any) -> Any:
        return functional.cross_entropy(output.view(-1, 256), tokens.view(-1))

    return model, [_labels(256, 8, 32), _labels(256, 8, 32)], loss, lib.optim.AdamW


def gated(lib: Any) -> Loop:
    """Return a GRU over 16 sequences of 24 steps, whose last output is classified; Adam."""
    nn = lib.nn

    def forward(self: Any, x: Any) -> Any:
        return self.head(self.gru(x)[0][:, -1])

    model = module(nn, "Classifier", forward, gru=nn.GRU(16, 32, batch_first=True), head=nn.Linear(32, 4))
    return model, [_numbers(16, 24, 16), _labels(4, 16)], nn.functional.cross_entropy, lib.optim.Adam


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

    def forward(self: Any, x: Any) -> Any:
        features = self.body(x)
        return nn.functional.log_softmax(self.policy(features), -1), self.value(features)[:, 0]

    def loss(output: Any, returns: Any) -> Any:
        logs, value = output
        advantage = returns - value.detach()
        entropy = -(logs.exp() * logs).sum(1).mean()
        return -(logs[:, 0] * advantage).mean() + 0.5 * nn.functional.mse_loss(value, returns) - 0.01 * entropy

    parts = {"body": nn.Sequential(nn.Linear(8, 64), nn.Tanh()), "policy": nn.Linear(64, 4), "value": nn.Linear(64, 1)}
    return module(nn, "Actor", forward, **parts), [_numbers(64, 8), _numbers(64)], loss, lib.optim.Adam


def residual(lib: Any) -> Loop:
    """Return two residual blocks of 16 channels on images of 16 x 16, batch 16, batch norm; SGD."""
    nn = lib.nn

    def forward(self: Any, x: Any) -> Any:
        hidden = nn.functional.relu(self.norm1(self.first(x)))
        return nn.functional.relu(x + self.norm2(self.second(hidden)))

    def block() -> Any:
        parts = {name: nn.Conv2d(16, 16, 3, padding=1, bias=False) for name in ("first", "second")}
        return module(nn, "Block", forward, **parts, norm1=nn.BatchNorm2d(16), norm2=nn.BatchNorm2d(16))

    pool = nn.AdaptiveAvgPool2d(1)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), block(), block(), pool, nn.Flatten(), nn.Linear(16, 10))
    return model, [_numbers(16, 3, 16, 16), _labels(10, 16)], nn.functional.cross_entropy, lib.optim.SGD


def segments(lib: Any) -> Loop:
    """Return a small U-Net on images of 32 x 32, batch 4: a class for each pixel; Adam."""
    nn = lib.nn

    def forward(self: Any, x: Any) -> Any:
        relu = nn.functional.relu
        first = relu(self.down1(x))
        second = relu(self.down2(self.pool(first)))
        return self.head(relu(self.mix(lib.cat([first, self.up(second)], 1))))

    parts = {"down1": nn.Conv2d(1, 8, 3, padding=1), "down2": nn.Conv2d(8, 16, 3, padding=1)}
    parts |= {"up": nn.ConvTranspose2d(16, 8, 2, stride=2), "mix": nn.Conv2d(16, 8, 3, padding=1)}
    net = module(nn, "Net", forward, **parts, head=nn.Conv2d(8, 3, 1), pool=nn.MaxPool2d(2))
    return net, [_numbers(4, 1, 32, 32), _labels(3, 4, 32, 32)], nn.functional.cross_entropy, lib.optim.Adam


LOOPS = {f.__name__: f for f in (perceptron, policy, digits, tagger, variational, autoencoder, transformer)}
"""Loops over compiled models."""
EAGER = {**LOOPS, **{f.__name__: f for f in (gated, bag, values, actor, residual, segments)}}
"""Loops in eager mode."""
