"""Nets whose pictures tests measure: chains, branches, nested modules, loops, and functions."""

from __future__ import annotations

import graphc as gc
from graphc import nn
from graphc.nn import functional as F


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.bn = nn.BatchNorm2d(4)
        self.head = nn.Sequential(nn.Linear(4 * 36, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        x = F.relu(self.bn(self.conv(x)))
        return F.log_softmax(self.head(x.flatten(1)), 1)


class Block(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.first = nn.Linear(size, size)
        self.second = nn.Linear(size, size)

    def forward(self, x):
        y = self.norm(x)
        y = F.silu(self.first(y)) * self.second(y)
        return x + y


class Residual(nn.Module):
    def __init__(self, count: int = 3):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.blocks = nn.Sequential(*[Block(8) for _ in range(count)])

    def forward(self, x):
        y = self.blocks(self.embed(x))
        return y, y.mean()


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        y, (h, c) = self.rnn(x)
        return self.fc(y[-1]).tanh(), h, c


def traced() -> dict[str, tuple]:
    """Return (model, graph) by name."""
    inputs = {
        Convolutions: gc.zeros(2, 1, 8, 8),
        Residual: gc.zeros(1, 5, dtype=gc.int64),
        Loop: gc.zeros(5, 1, 3),
    }
    nets = {kind.__name__: (kind().eval(), x) for kind, x in inputs.items()}
    nets["Many"] = (Residual(20).eval(), gc.zeros(1, 5, dtype=gc.int64))
    return {name: (model, gc.trace(model, x)) for name, (model, x) in nets.items()}
