"""Training loops over compiled models: limits on gradients as native calls, and loops as a whole against eager ones."""

import numpy as np
import pytest

import graphc
from graphc import nn, optim
from graphc.calls.program_store import ProgramStore
from graphc.errors import GradientError
from graphc.nn.utils import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_


def parameters(native, dtypes=("float32", "float32", "float64"), scale=1.0):
    rng = np.random.default_rng(0)
    results = []
    for dtype, shape in zip(dtypes, [(3, 4), (), (5,)], strict=True):
        p = nn.Parameter(graphc.zeros(*shape, dtype=getattr(graphc, dtype)))
        p.grad = graphc.tensor(np.asarray(rng.standard_normal(shape) * scale, dtype))
        p._in_compiled = native
        results.append(p)
    return results


def both(change, **options):
    """Return the result and the gradients after a change of gradients, natively and by operations."""
    results = []
    for native in (True, False):
        params = parameters(native, **options)
        result = change(params)
        results.append((result, [p.grad.numpy().copy() for p in params]))
    (a, first), (b, second) = results
    for x, y in zip(first, second, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-6)
    return a, b


@pytest.fixture
def runs(monkeypatch):
    """Names of the programs that are run."""
    results = []
    find_or_make = ProgramStore.find_or_make

    def counted(self, key, make):
        results.append(key[0])
        return find_or_make(self, key, make)

    monkeypatch.setattr(ProgramStore, "find_or_make", counted)
    return results


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
    results = []
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
        results.append((losses, [t.detach().numpy().copy() for t in model.state_dict().values()]))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-10)
    for a, b in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


LOSSES = [
    ("cross_entropy", {"label_smoothing": 0.1}, "labels"),
    ("cross_entropy", {"reduction": "none", "ignore_index": 1}, "labels"),
    ("nll_loss", {}, "labels"),
    ("mse_loss", {"reduction": "sum"}, "values"),
    ("smooth_l1_loss", {}, "values"),
    ("binary_cross_entropy_with_logits", {}, "values"),
]


@pytest.mark.parametrize(("name", "options", "kind"), LOSSES)
@pytest.mark.parametrize("viewed", [False, True])
def test_losses_of_what_compiled_code_gave(name, options, kind, viewed):
    function = getattr(nn.functional, name)
    model = nn.Linear(3, 4).double()
    compiled = graphc.compile(model)
    x = graphc.randn(5, 3, dtype=graphc.float64)
    y = graphc.randint(0, 4, (5,)) if kind == "labels" else graphc.rand(5, 4, dtype=graphc.float64)
    results = []
    for run in (compiled, model):
        model.zero_grad()
        out = run(x)
        loss = function(out.view(-1, 4) if viewed else out, y, **options)
        assert loss.grad_fn.is_compiled is (run is compiled)
        loss.sum().backward()
        results.append([loss.detach().numpy(), *[p.grad.numpy().copy() for p in model.parameters()]])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)


def test_losses_raise_what_they_raise():
    compiled = graphc.compile(nn.Linear(3, 4))
    out = compiled(graphc.ones(5, 3))
    with pytest.raises(graphc.errors.GraphcError, match="targets have shape"):
        nn.functional.cross_entropy(out, graphc.zeros(4, dtype=graphc.int64))
    with pytest.raises(graphc.errors.IndexRangeError):
        nn.functional.cross_entropy(out, graphc.full((5,), 9, dtype=graphc.int64))
    with graphc.autograd.detect_anomaly():
        loss = nn.functional.mse_loss(compiled(graphc.ones(5, 3)), graphc.ones(5, 4))
    assert not loss.grad_fn.is_compiled


def test_a_penalty_of_gradients_through_a_native_loss():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    compiled = graphc.compile(model)
    x, y = graphc.randn(5, 3, dtype=graphc.float64), graphc.randint(0, 2, (5,))
    results = []
    for run in (compiled, model):
        model.zero_grad()
        x = x.detach().requires_grad_()
        loss = nn.functional.cross_entropy(run(x), y)
        (g,) = graphc.autograd.grad(loss, x, create_graph=True)
        (loss + (g**2).sum()).backward()
        results.append([p.grad.numpy().copy() for p in model.parameters()])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_tangents_switch_it_off_while_they_are_taken_along(runs):
    params = parameters(True)
    with graphc.autograd.forward_ad.dual_level():
        clip_grad_norm_(params, 0.5)
    assert not runs
    clip_grad_norm_(params, 0.1)
    assert runs == ["norm", "scale"]
