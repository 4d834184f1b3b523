"""Products with bf16 factors: which, along what, and what they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.base.dtypes import halves, pair
from graphc.base.errors import ArgumentError
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.graph.text import print_graph
from graphc.nn import functional as F
from graphc.passes.narrow_products import NarrowProducts
from graphc.passes.pipeline import PIPELINE, optimize, with_narrow_products
from tests.passes.graph_text import graph_of

NARROW = with_narrow_products(PIPELINE)
SPECIAL = np.array([1e-40, -0.0, 3.3e38, 1.00390625, 1.01171875, -2.0078125], np.float32)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def rounded(x: np.ndarray) -> np.ndarray:
    """To bf16, and wider again."""
    return halves(pair(x, x))[0].astype(np.float64)


def ops(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.nodes()]


def test_a_product_takes_pairs():
    graph = graph_of("""
        graph @g(%x: f32[64,32], %w: f32[48,32]) -> (f32[64,48]) {
          %y = matmul(%x, %w) {transpose_b=true} : f32[64,48]
          return %y
        }""")
    result = NarrowProducts().run(graph)
    assert result.changed == 1 and result.reasons == ("y: matmul of pairs of bf16, sums of f32",)
    assert "matmul(%bf16_pairs, %bf16_pairs.1) {transpose_b=true} : f32[64,48]" in print_graph(result.graph)
    assert NarrowProducts().run(result.graph).changed == 0


PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "rows": (lambda a, b: a @ b, (normal(64, 40), normal(40, 48))),
    "first transposed": (lambda a, b: a.T @ b, (normal(40, 64), normal(40, 48))),
    "second transposed": (lambda a, b: a @ b.T, (normal(64, 40), normal(48, 40))),
    "odd": (lambda a, b: a @ b, (normal(64, 41), normal(41, 48))),
    "batches": (lambda a, b: a @ b.transpose(-1, -2), (normal(6, 20, 32), normal(6, 30, 32))),
    "batches and a matrix": (lambda a, b: a @ b, (normal(6, 20, 33), normal(33, 30))),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_factors_are_rounded_and_sums_are_not(name: str):
    function, arrays = PRODUCTS[name]
    graph = optimize(gc.trace(function, *map(gc.tensor, arrays)), NARROW)
    assert ops(graph).count("bf16_pairs") == 2
    expected = function(*(gc.tensor(rounded(a)) for a in arrays)).numpy()
    (result,) = Evaluator().run(graph, arrays)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    compiled = gc.compile(graph)(*map(gc.tensor, arrays))
    np.testing.assert_allclose(compiled.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("channels", "groups", "images"), [(4, 1, 2), (3, 1, 3), (8, 2, 1)])
def test_a_convolution_and_its_gradients(channels: int, groups: int, images: int):
    x, weight = normal(images, channels, 22, 22), normal(16, channels // groups, 3, 3)
    g = normal(images, 16, 11, 11)

    def gradients(x: Any, weight: Any, g: Any) -> Any:
        y = F.conv2d(x, weight, stride=2, padding=1, groups=groups)
        return (y, *gc.autograd.grad(y, [x, weight], g))

    def traced(x: Any, weight: Any, g: Any) -> Any:
        return gradients(x.requires_grad_(), weight.requires_grad_(), g)

    operands = [gc.tensor(a) for a in (x, weight, g)]
    narrow = Stages(gc.trace(traced, *operands), passes=NARROW).optimized
    assert ops(narrow).count("bf16_pairs") >= 4
    wide = [gc.tensor(rounded(a), requires_grad=i < 2) for i, a in enumerate((x, weight, g))]
    for result, expected in zip(Evaluator().run(narrow, [x, weight, g]), gradients(*wide), strict=True):
        np.testing.assert_allclose(result, expected.detach().numpy(), rtol=1e-3, atol=1e-3)
    for result, expected in zip(gc.compile(narrow)(*operands), gradients(*wide), strict=True):
        np.testing.assert_allclose(result.numpy(), expected.detach().numpy(), rtol=1e-3, atol=1e-3)


def test_numbers_that_are_hard_to_round():
    a, b = np.tile(SPECIAL[[0, 1, 3, 4, 5]], (64, 8)), normal(40, 48)
    graph = optimize(gc.trace(lambda a, b: a @ b, gc.tensor(a), gc.tensor(b)), NARROW)
    np.testing.assert_allclose(Evaluator().run(graph, [a, b])[0], rounded(a) @ rounded(b), rtol=1e-4, atol=1e-4)
    a[0, 0], a[1, 0], a[2, 0] = np.nan, np.inf, 3.4e38
    result = gc.compile(graph)(gc.tensor(a), gc.tensor(b)).numpy()
    assert np.isnan(result[0]).all() and np.isinf(result[1]).all() and np.isinf(result[2]).all()
    assert np.isfinite(result[3:]).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:8, :8] @ x[:8, :8],
        lambda x: x.double() @ x.double(),
        lambda x: F.conv2d(x.reshape(1, 4, 32, 32), gc.ones(4, 1, 7, 7), groups=4),
    ],
    ids=["small", "f64", "one channel per group"],
)
def test_what_stays_as_it_is(function: Callable[[Any], Any]):
    graph = optimize(gc.trace(function, gc.tensor(normal(64, 64))), NARROW)
    assert "bf16_pairs" not in ops(graph)


def test_products_of_sizes_known_at_run_time_stay_as_they_are():
    rows = gc.Dim("rows", max=64)
    traced = gc.trace(lambda x: x @ gc.ones(64, 64), gc.tensor(normal(20, 64)), dims={"x": (rows, 64)})
    assert "bf16_pairs" not in ops(optimize(traced, NARROW))


def test_steps_of_scans_take_pairs():
    def run(xs: Any, w: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = ((h + x) @ w).tanh()
            return h, h

        return gc.scan(step, gc.zeros(32, 64), xs)[1]

    arrays = [normal(3, 32, 64), normal(64, 64) / 8]
    graph = optimize(gc.trace(run, *map(gc.tensor, arrays)), NARROW)
    assert "bf16_pairs" in str(graph)
    narrow = gc.compile(graph)(*map(gc.tensor, arrays)).numpy()
    wide = run(*map(gc.tensor, arrays)).numpy()
    assert 0 < np.abs(narrow - wide).max() < 0.1


# ---- training: it goes where training in f32 goes, and weights stay f32

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
    following, batches_drawn = random.permutation(SIGNS), []
    for _ in range(count):
        text = np.zeros((8, BLOCK + 1), np.int64)
        text[:, 0] = random.integers(0, SIGNS, 8)
        for position in range(BLOCK):
            free = random.random(8) < 0.2
            text[:, position + 1] = np.where(free, random.integers(0, SIGNS, 8), following[text[:, position]])
        batches_drawn.append((gc.tensor(text[:, :-1].copy()), gc.tensor(text[:, 1:].copy())))
    return batches_drawn


def losses(precision: str | None, is_step: bool) -> tuple[list[float], Any]:
    gc.manual_seed(3)
    model = Small()
    optimizer = gc.optim.AdamW(model.parameters(), lr=3e-3)
    if is_step:
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
    loss_values = [step(x, y) for x, y in batches(100)]
    return [float(loss.detach()) for loss in loss_values], model


@pytest.fixture(scope="module")
def wide() -> list[float]:
    return losses(None, True)[0]


@pytest.mark.parametrize("is_step", [True, False], ids=["step", "function"])
def test_a_small_gpt_converges_as_in_f32(wide: list[float], is_step: bool):
    narrow, model = losses("bf16", is_step)
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
    with pytest.raises(ArgumentError, match="does not support training"):
        gc.compile_step(model, F.mse_loss, optimizer, precision=precision)

    @gc.compile(precision=precision)
    def train(x: Any) -> Any:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    with pytest.raises(ArgumentError, match="does not support training"):
        train(gc.ones(2, 4))


def test_an_unknown_precision():
    model = nn.Linear(4, 4)
    with pytest.raises(ArgumentError, match="there is no precision 'bf8'"):
        gc.compile_step(model, F.mse_loss, gc.optim.SGD(model.parameters(), 0.1), precision="bf8")
