"""Random models for training programs: layers, views, writes in place, buffers, and random numbers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from tools.nets.entries import entries

WIDTH = 6
f64 = gc.float64
Part = Callable[[Any], Any]


class Cube(gc.autograd.Function):
    """A function with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x * 0.1

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grads[0] * 0.3 * x * x


class DrawnModel(nn.Module):
    """A random sequence of parts that take and give f64[B,6]."""

    def __init__(self, number: int):
        super().__init__()
        self.choice = random.Random(number)
        self.drop = nn.Dropout(self.choice.choice([0.0, 0.3, 0.5]))
        self.scale = nn.Parameter(gc.ones(WIDTH))
        self.unused = nn.Parameter(gc.ones(2))
        self.shared = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("seen", gc.zeros(WIDTH))
        self.register_buffer("seen_too", gc.zeros(WIDTH), persistent=False)
        self.count = 0
        self.layers = nn.ModuleList()
        rare = {kind for kind in ("buffer_set", "counter") if self.choice.random() < 0.9}
        kinds = self.choice.sample([k for k in PARTS if k not in rare], self.choice.randint(2, 5))
        self.kinds = [*kinds, self.choice.choice(["linear", "scaled", "shared"])]
        self.parts = [PARTS[kind](self) for kind in self.kinds]
        self.returns = self.choice.choice(["tensor", "tensor", "tuple", "dict"])

    def add(self, layer: nn.Module) -> Any:
        """Return a layer that belongs to the model."""
        self.layers.append(layer)
        return layer

    def forward(self, x: Any) -> Any:
        for layer in self.parts:
            x = layer(x)
        if self.returns == "tuple":
            return x, x.abs().mean()
        return {"out": x, "size": (x * x).sum(1)} if self.returns == "dict" else x


_TEXT = """
linear:
    layer = m.add(nn.Linear(WIDTH, WIDTH, bias=m.choice.random() < 0.8))
    act = m.choice.choice([gc.tanh, F.gelu, F.silu, gc.sigmoid])
    return lambda x: act(layer(x))
shared:
    turned = m.choice.random() < 0.5
    return lambda x: F.linear(x, m.shared.weight.t() if turned else m.shared.weight) * 0.5 + m.shared(x)
scaled: return lambda x: x * m.scale + m.scale.sum() * 0.01
batch_norm:
    layer, norm = m.add(nn.Linear(WIDTH, WIDTH, bias=False)), m.add(nn.BatchNorm1d(WIDTH))
    return lambda x: norm(layer(x) + x)
layer_norm:
    norm = m.add(nn.LayerNorm(WIDTH, eps=0.1))
    return lambda x: norm(x * x + x)
group_norm:
    norm = m.add(nn.GroupNorm(2, WIDTH, eps=0.1))
    return lambda x: norm(x)
dropout: return lambda x: m.drop(x)
noise: return lambda x: x + 0.1 * gc.randn_like(x) if m.training else x
functional_dropout: return lambda x: F.dropout(x, 0.25, training=m.training) + 0.1 * x
convolution:
    layer = m.add(nn.Conv1d(1, 3, 3, padding=1))
    return lambda x: gc.tanh(layer(x.unsqueeze(1))).mean(1)
recurrent:
    layer = m.add(m.choice.choice([nn.LSTM, nn.GRU])(3, 3, batch_first=True))
    return lambda x: layer(x.reshape(-1, 2, 3))[0].reshape(-1, WIDTH) + 0.5 * x
attention:
    layer = m.add(nn.MultiheadAttention(2, 1, dropout=m.choice.choice([0.0, 0.2]), batch_first=True))
    def run(x):
        rows = x.reshape(-1, 3, 2)
        return layer(rows, rows, rows, need_weights=False)[0].reshape(-1, WIDTH) + x
    return run
embedding:
    layer = m.add(nn.Embedding(4, WIDTH))
    return lambda x: x + layer((x.detach()[:, 0] * 3).to(gc.int64).abs() % 4)
repeated:
    indices = gc.tensor([m.choice.randrange(WIDTH) for _ in range(WIDTH)])
    return lambda x: x[:, indices] * 0.7 + x * 0.3
buffer:
    def run(x):
        with gc.no_grad():
            m.seen.mul_(0.5).add_(x.mean(0))
        return x + m.seen
    return run
buffer_set:
    def run(x):
        m.seen_too = m.seen_too * 0.5 + x.detach().mean(0)
        return x + m.seen_too * 0.1
    return run
counter:
    def run(x):
        m.count += 1
        return x * (1 + 0.01 * m.count)
    return run
in_place:
    def run(x):
        y = x.clone()
        y[:, 1:3] *= 1.5
        y.view(-1)[::2].mul_(0.5)
        return y.add_(0.1)
    return run
custom: return lambda x: Cube.apply(gc.tanh(x)) + x
checkpoint:
    layer = m.add(nn.Linear(WIDTH, WIDTH))
    return lambda x: gc.checkpoint(lambda t: gc.tanh(m.drop(layer(t))), x)
cond:
    layer = m.add(nn.Linear(WIDTH, WIDTH))
    return lambda x: gc.cond(x.sum() > 0, lambda t: gc.tanh(layer(t)), lambda t: layer(t) * 0.5, (x,))
weight_norm:
    layer = m.add(nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH)))
    return lambda x: gc.tanh(layer(x))
penalty: return lambda x: x / (1 + m.shared.weight.norm())
"""
_NAMES = {"gc": gc, "nn": nn, "F": F, "WIDTH": WIDTH, "Cube": Cube}
PARTS: dict[str, Callable[[DrawnModel], Part]] = {e.name: e.function for e in entries(_TEXT, "m", _NAMES)}
"""Functions of a model that return a part of it, by name."""
