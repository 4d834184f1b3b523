"""Training loops over compiled models: limits on gradients as native calls, and loops as a whole against eager ones."""

import numpy as np
import pytest

import graphc
from graphc import nn, optim
from graphc.compiled import loop
from graphc.errors import GradientError
from graphc.nn.utils import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_


def parameters(native, dtypes=("float32", "float32", "float64"), scale=1.0):
    rng = np.random.default_rng(0)
    found = []
    for dtype, shape in zip(dtypes, [(3, 4), (), (5,)], strict=True):
        p = nn.Parameter(graphc.zeros(*shape, dtype=getattr(graphc, dtype)))
        p.grad = graphc.tensor(np.asarray(rng.standard_normal(shape) * scale, dtype))
        p._in_compiled = native
        found.append(p)
    return found


def both(change, **options):
    """What a change of gradients returns and leaves, natively and by operations."""
    found = []
    for native in (True, False):
        params = parameters(native, **options)
        result = change(params)
        found.append((result, [p.grad.numpy().copy() for p in params]))
    (a, first), (b, second) = found
    for x, y in zip(first, second, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-6)
    return a, b


@pytest.fixture
def runs(monkeypatch):
    """Names of the programs that are run."""
    found = []
    program = loop.Loop._program

    def counted(self, key, make):
        found.append(key[0])
        return program(self, key, make)

    monkeypatch.setattr(loop.Loop, "_program", counted)
    return found


@pytest.mark.parametrize("kind", [2.0, 1, 3.0, float("inf"), 0.0])
@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_norms(kind, limit, runs):
    a, b = both(lambda params: clip_grad_norm_(params, limit, kind))
    assert a.dtype is b.dtype and a.shape == b.shape == ()
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
    assert runs == (["norm", "scale"] if limit == 0.5 else ["norm"])


def test_norms_that_are_given(runs):
    both(lambda params: clip_grads_with_norm_(params, 1.0, graphc.tensor(4.0)))
    both(lambda params: clip_grads_with_norm_(params, graphc.tensor(1.0), graphc.tensor(4.0)))
    assert runs == ["scale"]


def test_values(runs):
    both(lambda params: clip_grad_value_(params, 0.3))
    assert runs == ["clamp"]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite(bad):
    def change(params):
        params[0].grad[0, 0] = bad
        return clip_grad_norm_(params, 1.0)

    a, b = both(change)
    np.testing.assert_array_equal(a.numpy(), b.numpy())

    def refused(params):
        params[0].grad[0, 0] = bad
        with pytest.raises(GradientError, match="norm of the gradients is"):
            clip_grad_norm_(params, 1.0, error_if_nonfinite=True)

    both(refused)


def test_no_gradients_and_shared_ones():
    assert clip_grad_norm_([], 1.0).item() == 0.0

    def shared(params):
        params[1].grad = None
        params[2].grad = None
        params.append(nn.Parameter(graphc.zeros(3, 4)))
        params[-1].grad = params[0].grad
        norm = clip_grad_norm_(params, 1.0)
        del params[1:]
        return norm

    a, b = both(shared, dtypes=("float32",) * 3)
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_a_loop_over_a_compiled_model(name):
    found = []
    for compiled in (True, False):
        graphc.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3)
        ).double()
        run = graphc.compile(model) if compiled else model
        optimizer = getattr(optim, name)(model.parameters(), lr=0.05)
        schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
        x, y = graphc.randn(16, 6, dtype=graphc.float64), graphc.randint(0, 3, (16,))
        losses = []
        for step in range(12):
            loss = nn.functional.cross_entropy(run(x), y)
            if step % 2 == 0:
                optimizer.zero_grad()
            loss.backward()
            if step % 2:
                clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                schedule.step()
            losses.append(loss.item())
        found.append((losses, [t.detach().numpy().copy() for t in model.state_dict().values()]))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-10)
    for a, b in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
