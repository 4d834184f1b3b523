"""Functions of several steps on narrow floats: one rounding, types as PyTorch's, and compiled code gives the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.nn import functional as F

HALVES = [gc.bfloat16, gc.float16]
X = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32) * 2
CASES: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": lambda f, x: f.softmax(x, -1),
    "log_softmax": lambda f, x: f.log_softmax(x, -1),
    "gelu": lambda f, x: f.gelu(x),
    "silu": lambda f, x: f.silu(x),
    "sigmoid": lambda f, x: f.sigmoid(x),
    "elu": lambda f, x: f.elu(x),
    "mean": lambda f, x: x.mean(0),
    "var": lambda f, x: x.var(1),
    "logsumexp": lambda f, x: x.logsumexp(1),
    "layer_norm": lambda f, x: f.layer_norm(x, (8,), x[0], x[1]),
    "rms_norm": lambda f, x: f.rms_norm(x, (8,)),
    "linear": lambda f, x: f.linear(x, x[:3], x[0, :3]),
    "matmul": lambda f, x: x @ x.t(),
    "mse_loss": lambda f, x: f.mse_loss(x[0], x[1]),
    "attention": lambda f, x: f.scaled_dot_product_attention(x[None], x[None], x[None]),
    "arithmetic": lambda f, x: (x * 0.1 + 3) / x - x.exp(),
    "moves": lambda f, x: x.t().reshape(3, 16)[1:, ::2].flip(0),
    "order": lambda f, x: x.sort(1)[0] + x.max(),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_numbers_and_gradients_as_torch(torch, name: str, dtype: gc.dtype):
    ours = gc.tensor(X).to(dtype).requires_grad_()
    theirs = torch.tensor(X).to(getattr(torch, dtype.long_name)).requires_grad_()
    result, expected = CASES[name](F, ours), CASES[name](torch.nn.functional, theirs)
    assert str(expected.dtype) == f"torch.{result.dtype.long_name}"
    step = 2.0**-8 if dtype is gc.bfloat16 else 2.0**-11
    size = float(expected.abs().max())
    np.testing.assert_allclose(result.detach().float().numpy(), expected.detach().float().numpy(), atol=2 * step * size)
    result.sum().backward()
    expected.sum().backward()
    assert ours.grad.dtype is dtype
    size = max(float(theirs.grad.abs().max()), 1.0)
    np.testing.assert_allclose(ours.grad.float().numpy(), theirs.grad.float().numpy(), atol=6 * step * size)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["softmax", "layer_norm", "linear", "arithmetic", "moves", "mse_loss"])
def test_compiled_code_rounds_where_eager_code_does(name: str, dtype: gc.dtype):
    x = gc.tensor(X).to(dtype)
    result, expected = gc.compile(lambda x: CASES[name](F, x))(x), CASES[name](F, x)
    assert result.dtype is expected.dtype
    step = 2.0**-8 if dtype is gc.bfloat16 else 2.0**-11
    # Sums of f32 in another order may be rounded to the other neighbour.
    np.testing.assert_allclose(result.float().numpy(), expected.float().numpy(), rtol=2 * step, atol=step / 64)
    if name in ("arithmetic", "moves"):
        assert result.tolist() == expected.tolist()


def test_statistics_of_a_narrow_batch_are_those_of_f32():
    x = gc.tensor(X).bfloat16()
    mean, var = gc.zeros(8), gc.ones(8)
    y = F.batch_norm(x, mean, var, training=True)
    assert y.dtype is gc.bfloat16 and mean.dtype is gc.float32
    np.testing.assert_allclose(mean.numpy(), 0.1 * x.float().mean(0).numpy(), rtol=1e-5)


def test_activations_in_place_write_to_what_they_got():
    x = gc.tensor(X).half()
    assert F.elu(x, inplace=True) is x and x.dtype is gc.float16
    assert x.tolist() == F.elu(gc.tensor(X).half()).tolist()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("make", [gc.optim.SGD, gc.optim.AdamW], ids=["sgd", "adamw"])
def test_narrow_models_train_eagerly_and_compiled(dtype: gc.dtype, make: Any):
    gc.manual_seed(0)
    x = gc.tensor(X).to(dtype)
    losses = []
    for compiled in (False, True):
        gc.manual_seed(0)
        model = gc.nn.Sequential(gc.nn.Linear(8, 16), gc.nn.ReLU(), gc.nn.Linear(16, 8)).to(dtype)
        optimizer = make(model.parameters(), lr=0.01, **({"eps": 1e-4} if make is gc.optim.AdamW else {}))
        step = gc.compile_step(model, F.mse_loss, optimizer)
        results = []
        for _ in range(15):
            if compiled:
                results.append(float(step(x, x)))
            else:
                optimizer.zero_grad()
                loss = F.mse_loss(model(x), x)
                loss.backward()
                optimizer.step()
                results.append(float(loss))
        assert all(p.dtype is dtype for p in model.parameters()) and results[-1] < results[0]
        losses.append(results)
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.03)
