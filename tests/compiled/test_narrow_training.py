"""Training with bf16 factors of products: it goes where training in f32 goes, and weights stay f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArgumentError
from graphc.nn import functional as F

nn = gc.nn
WIDTH, BLOCK, SIGNS = 64, 32, 17


class Small(nn.Module):
    """One block of a GPT over characters."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(SIGNS, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, SIGNS)

    def forward(self, x: Any, y: Any) -> Any:
        b, t = x.shape
        h = self.tokens(x) + self.places(gc.arange(t))
        q, k, v = (z.view(b, t, 4, WIDTH // 4).transpose(1, 2) for z in self.qkv(self.norm1(h)).split(WIDTH, dim=2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.proj(a.transpose(1, 2).reshape(b, t, WIDTH))
        h = h + self.down(F.gelu(self.up(self.norm2(h))))
        return F.cross_entropy(self.head(h).view(-1, SIGNS), y.view(-1))


def batches(count: int) -> list[tuple[Any, Any]]:
    """Sequences in which each sign follows from the one before, and sometimes from nothing."""
    random = np.random.default_rng(0)
    following, found = random.permutation(SIGNS), []
    for _ in range(count):
        text = np.zeros((8, BLOCK + 1), np.int64)
        text[:, 0] = random.integers(0, SIGNS, 8)
        for place in range(BLOCK):
            free = random.random(8) < 0.2
            text[:, place + 1] = np.where(free, random.integers(0, SIGNS, 8), following[text[:, place]])
        found.append((gc.tensor(text[:, :-1].copy()), gc.tensor(text[:, 1:].copy())))
    return found


def losses(precision: str | None, whole: bool) -> tuple[list[float], Any]:
    gc.manual_seed(3)
    model = Small()
    optimizer = gc.optim.AdamW(model.parameters(), lr=3e-3)
    if whole:
        step = gc.compile_step(model, None, optimizer, precision=precision, clip_norm=1.0)
    else:

        def train(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = model(x, y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        step = gc.compile(train, precision=precision)
    found = [step(x, y) for x, y in batches(100)]
    return [float(loss.detach()) for loss in found], model


@pytest.fixture(scope="module")
def wide() -> list[float]:
    return losses(None, True)[0]


@pytest.mark.parametrize("whole", [True, False], ids=["step", "function"])
def test_a_small_gpt_converges_as_in_f32(wide: list[float], whole: bool):
    narrow, model = losses("bf16", whole)
    assert wide[0] > 2.5 and np.mean(wide[-10:]) < 1.6
    assert narrow != wide
    np.testing.assert_allclose(narrow, wide, atol=0.05)
    assert all(p.dtype is gc.float32 for p in model.parameters())


def test_a_first_step_is_near():
    def gradient(precision: str | None) -> Any:
        gc.manual_seed(0)
        model = nn.Linear(128, 128)
        step = gc.compile_step(model, F.mse_loss, gc.optim.SGD(model.parameters(), 1.0), precision=precision)
        before = model.weight.detach().numpy().copy()
        step(gc.randn(64, 128), gc.randn(64, 128))
        return before - model.weight.detach().numpy()

    wide, narrow = gradient(None), gradient("bf16")
    far = np.abs(wide - narrow).max() / np.abs(wide).max()
    assert 1e-5 < far < 1e-2


@pytest.mark.parametrize("precision", ["int8", "f16", "bf16_dot"])
def test_other_precisions_do_not_train(precision: str):
    model = nn.Linear(4, 4)
    optimizer = gc.optim.SGD(model.parameters(), 0.1)
    with pytest.raises(ArgumentError, match="for weights that stay as they are"):
        gc.compile_step(model, F.mse_loss, optimizer, precision=precision)

    @gc.compile(precision=precision)
    def train(x: Any) -> Any:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    with pytest.raises(ArgumentError, match="for weights that stay as they are"):
        train(gc.ones(2, 4))


def test_an_unknown_precision():
    model = nn.Linear(4, 4)
    with pytest.raises(ArgumentError, match="there is no precision 'bf8'"):
        gc.compile_step(model, F.mse_loss, gc.optim.SGD(model.parameters(), 0.1), precision="bf8")
