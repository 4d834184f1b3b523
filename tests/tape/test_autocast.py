"""``autocast``: which results are narrow, in eager and compiled code, with PyTorch as the judge of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.errors import ArgumentError
from graphc.nn import functional as F

RANDOM = np.random.default_rng(0)
X, Y = (RANDOM.standard_normal(s).astype(np.float32) for s in ((5, 8), (8, 3)))


@pytest.mark.parametrize("dtype", [gc.bfloat16, gc.float16], ids=str)
def test_products_are_narrow_and_losses_are_f32(dtype: gc.dtype):
    x, y = gc.tensor(X), gc.tensor(Y)
    with gc.autocast("cpu", dtype=dtype):
        assert gc.is_autocast_enabled() and gc.get_autocast_dtype() is dtype
        product = x @ y
        assert product.dtype is (product + product).dtype is F.softmax(product, 1).dtype is dtype
        assert (product + x[:, :3]).dtype is (x + x).dtype is F.mse_loss(product, product).dtype is gc.float32
        assert F.linear(x, y.t(), gc.zeros(3)).dtype is gc.einsum("ij,jk", x, y).dtype is dtype
        assert (x.double() @ y.double()).dtype is gc.float64
    expected = (x.to(dtype).float() @ y.to(dtype).float()).to(dtype)
    assert product.tolist() == expected.tolist()
    assert not gc.is_autocast_enabled() and (x @ y).dtype is gc.float32


def test_it_nests_and_decorates():
    x = gc.tensor(X)

    @gc.autocast("cpu")
    def inside() -> Any:
        with gc.autocast("cpu", enabled=False):
            assert (x @ x.t()).dtype is gc.float32
        return x @ x.t()

    assert inside().dtype is gc.bfloat16 and not gc.is_autocast_enabled()


def test_wrong_settings_are_told():
    with pytest.raises(ArgumentError, match="no device type 'tpu'"):
        gc.autocast("tpu")
    with pytest.warns(UserWarning, match="f32 is neither f16 nor bf16"), gc.autocast("cpu", dtype=gc.float32):
        assert not gc.is_autocast_enabled()


def test_gradients_have_the_types_of_what_they_belong_to():
    x, w = gc.tensor(X, requires_grad=True), gc.tensor(Y, requires_grad=True)
    with gc.autocast("cpu"):
        (x @ w).sum().backward()
    assert x.grad.dtype is w.grad.dtype is gc.float32
    assert w.grad.tolist() == (x.detach().bfloat16().float().sum(0)[:, None] * gc.ones(3)).bfloat16().tolist()


def make(package: Any) -> Any:
    n = package.nn
    layers = [n.Conv2d(1, 4, 3), n.BatchNorm2d(4), n.ReLU(), n.Flatten(), n.Linear(64, 16), n.LayerNorm(16), n.GELU()]
    return n.Sequential(*layers, n.Linear(16, 5))


IMAGES, LABELS = RANDOM.standard_normal((12, 1, 6, 6)).astype(np.float32), RANDOM.integers(0, 5, 12)


def test_compiled_code_follows_the_state_and_computes_the_same():
    gc.manual_seed(0)
    model, x = make(gc).eval(), gc.tensor(IMAGES)
    compiled = gc.compile(model)
    with gc.no_grad():
        for _ in range(2):
            with gc.autocast("cpu"):
                assert compiled(x).tolist() == model(x).tolist() and compiled(x).dtype is gc.bfloat16
            with gc.autocast("cpu", dtype=gc.float16):
                assert compiled(x).dtype is gc.float16
            assert compiled(x).dtype is gc.float32
            np.testing.assert_allclose(compiled(x).numpy(), model(x).numpy(), atol=1e-5)


def test_a_compiled_step_follows_the_state():
    gc.manual_seed(0)
    model, x, labels = make(gc), gc.tensor(IMAGES), gc.tensor(LABELS)
    step = gc.compile_step(model, F.cross_entropy, gc.optim.SGD(model.parameters(), lr=0.1))
    with gc.autocast("cpu"):
        losses = [float(step(x, labels)) for _ in range(10)]
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_training_with_a_scaler_as_torch(torch, dtype: str):
    torch.manual_seed(0)
    theirs, ours = make(torch), make(gc)
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    found = []
    for package, model in ((torch, theirs), (gc, ours)):
        x, labels = package.tensor(IMAGES), package.tensor(LABELS)
        optimizer = package.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scaler, losses = package.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=5), []
        for _ in range(20):
            with package.autocast("cpu", dtype=getattr(package, dtype)):
                loss = package.nn.functional.cross_entropy(model(x), labels)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        found.append((losses, scaler.get_scale()))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=0.05, atol=2e-3)
    assert found[0][1] == found[1][1] and found[1][0][-1] < found[1][0][0] / 5
