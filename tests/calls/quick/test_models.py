"""Both tiers agree on layers and small models, to a few roundings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls.quick.quick_calls import QuickCalls
from graphc.nn import functional as F
from tests.calls.quick.held import end


class Residual(nn.Module):
    """Convolutions of several kinds around a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Conv2d(4, 12, 3, padding=1, stride=2)
        self.deep = nn.Conv2d(12, 12, 3, padding=2, dilation=2, groups=12)
        self.norm = nn.BatchNorm2d(12)
        self.up = nn.ConvTranspose2d(12, 4, 2, stride=2)

    def forward(self, x: Any) -> Any:
        y = F.silu(self.norm(self.deep(self.wide(x))))
        return F.max_pool2d(self.up(y) + x, 2)


class Attention(nn.Module):
    """A block of a transformer over embedded tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.block = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")

    def forward(self, tokens: Any) -> Any:
        return F.log_softmax(self.block(self.embedding(tokens)), dim=-1)


class Recurrent(nn.Module):
    """Gated units in both directions."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.layers = kind(6, 8, num_layers=2, bidirectional=True)  # type: ignore[call-arg]

    def forward(self, x: Any) -> Any:
        return self.layers(x)[0]


def images() -> Any:
    return gc.rand(2, 4, 8, 8)


def sequence() -> Any:
    return gc.randn(5, 3, 6)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]] = {
    "convolutions": (Residual, images),
    "attention": (Attention, lambda: gc.randint(0, 50, (2, 7))),
    "lstm": (lambda: Recurrent(nn.LSTM), sequence),
    "gru": (lambda: Recurrent(nn.GRU), sequence),
    "f64": (lambda: Residual().double(), lambda: images().double()),
    "bf16": (lambda: Residual().bfloat16(), lambda: images().bfloat16()),
}
TOLERANCE = {"f64": 1e-12, "f32": 2e-5, "bf16": 2e-2}


@gc.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_both_tiers_agree(name: str):
    gc.manual_seed(0)
    make, inputs = MODELS[name]
    model, x = make().eval(), inputs()
    compiled = gc.compile(model, tier="auto")
    first = compiled(x)
    assert isinstance(compiled.variants[-1].calls, QuickCalls)
    end()
    last = compiled(x)
    assert not isinstance(compiled.variants[-1].calls, QuickCalls)
    assert (first.dtype, first.shape) == (last.dtype, last.shape)
    tolerance = TOLERANCE[first.dtype.name]
    quick, full = (t.double().numpy() for t in (first, last))
    np.testing.assert_allclose(quick, full, rtol=tolerance, atol=tolerance * np.abs(full).max())
