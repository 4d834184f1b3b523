"""Networks with the layers that quantization replaces."""

from __future__ import annotations

from typing import Any

import graphc as gc
from graphc import nn


class Net(nn.Module):
    """Convolutions (one of them depthwise, one 1x1), two batch normalizations, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16, stride=2)
        self.branch = nn.BatchNorm2d(16)
        self.pointwise = nn.Conv2d(16, 32, 1, bias=False)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        x = self.norm(self.first(x)).relu()
        y = self.depthwise(x)
        x = (self.branch(y) + y).relu()
        return self.head(self.pointwise(x).mean((2, 3)))


def net() -> Net:
    """Return the network in evaluation mode, with statistics of some batches."""
    gc.manual_seed(0)
    model = Net()
    for _ in range(3):
        model(2 * images(8) + 1)
    return model.eval()


def images(count: int = 4) -> Any:
    return gc.randn(count, 3, 12, 12)


def mlp() -> nn.Sequential:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 5)).eval()
