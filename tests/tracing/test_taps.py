"""Taps: compiled code tells the statistics that eager mode tells, in forward and backward passes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import AttributeValueError, CompileError, TraceError
from graphc.hooks import Statistics, tap, tap_gradient, traced

X = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)


def watched():
    """A model that writes what taps tell to a dictionary."""
    gc.manual_seed(0)
    model, log = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), {}

    def hook_of(name):
        @traced
        def look(module, args, output):
            tap(output, lambda statistics: log.update({name: statistics}), "mean norm zeros range nan histogram")
            return tap_gradient(output, lambda statistics: log.update({f"{name}.gradient": statistics}))

        return look

    def gradient_hook_of(name):
        @traced
        def look(gradient):
            tap(gradient, lambda statistics: log.update({name: statistics}))

        return look

    for name, module in model.named_children():
        module.register_forward_hook(hook_of(name))
    for name, parameter in model.named_parameters():
        parameter.register_hook(gradient_hook_of(name))
    return model, log


def loss_of(output):
    return (output**2).sum()


def taken(log):
    results = {name: (*s[:-1], *s.histogram) for name, s in log.items()}
    log.clear()
    return results


def check(result, expected):
    assert result.keys() == expected.keys() and len(result) == 10
    for name, row in expected.items():
        np.testing.assert_allclose(result[name], row, rtol=2e-5, atol=1e-5, err_msg=name)


def test_compiled_models_steps_and_functions_tell_what_eager_mode_tells():
    model, log = watched()
    loss_of(model(gc.tensor(X))).backward()
    expected = taken(log)

    fast = gc.compile(model)
    for _ in range(2):
        model.zero_grad()
        loss_of(fast(gc.tensor(X))).backward()
        check(taken(log), expected)

    optimizer = gc.optim.SGD(model.parameters(), lr=0.0)
    gc.compile_step(model, lambda output, y: loss_of(output) + 0 * y.sum(), optimizer)(gc.tensor(X), gc.zeros(1))
    check(taken(log), expected)

    @gc.compile
    def train(x):
        optimizer.zero_grad()
        loss = loss_of(model(x))
        loss.backward()
        optimizer.step()
        return loss

    train(gc.tensor(X))
    check(taken(log), expected)


def test_taps_change_neither_results_nor_gradients():
    model, log = watched()
    plain = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    plain.load_state_dict(model.state_dict())
    for one in (model, plain):
        loss_of(gc.compile(one)(gc.tensor(X))).backward()
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-6, atol=1e-6)
    assert log


def test_a_gradient_that_does_not_get_there_is_not_told():
    observed = []

    @gc.compile
    def f(x):
        a, b = tap_gradient(x * 2, observed.append), tap_gradient(x * 3, observed.append)
        return a.sum() + b.sum().detach()

    x = gc.ones(3, requires_grad=True)
    f(x).backward()
    assert [result.size for result in observed] == [3] and x.grad.tolist() == [2, 2, 2]


def test_no_gradient_is_asked_for():
    observed = []
    f = gc.compile(lambda x: tap_gradient(x * 2, observed.append))
    assert f(gc.ones(3)).tolist() == [2, 2, 2] and not observed


def test_more_gradients_than_share_a_call_of_python():
    observed = []

    @gc.compile
    def f(x):
        for i in range(40):
            x = tap_gradient(x + i, lambda statistics, i=i: observed.append(i))
        return x.sum()

    f(gc.ones(2, requires_grad=True)).backward()
    assert sorted(observed) == list(range(40))


def test_what_a_tap_raises_is_raised_when_the_call_has_ended():
    model = nn.Linear(3, 2)
    before = model.weight.detach().numpy().copy()

    def fail(result):
        raise ValueError(f"mean {result.mean}")

    @traced
    def look(module, args, output):
        tap(output, fail)

    model.register_forward_hook(look)
    step = gc.compile_step(model, lambda o, y: ((o - y) ** 2).sum(), gc.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(ValueError, match="mean"):
        step(gc.ones(4, 3), gc.ones(4, 2))
    assert not np.array_equal(model.weight.detach().numpy(), before)


def test_taps_inside_of_a_checkpoint_and_of_derivatives():
    observed = []

    def f(x):
        tap(x, observed.append)
        return (tap_gradient(x, observed.append) ** 3).sum()

    gc.compile(lambda x: gc.checkpoint(f, x))(gc.ones(3, requires_grad=True)).backward()
    assert {result.size for result in observed} == {3}
    observed.clear()
    value, gradient = gc.compile(gc.value_and_grad(f))(gc.ones(3))
    assert value.item() == 3 and gradient.tolist() == [3, 3, 3]
    assert sorted(result.mean for result in observed) == [1, 3]


@pytest.mark.parametrize("wrap", [lambda f: gc.vmap(f), lambda f: gc.compile(gc.vmap(f))])
def test_taps_under_vmap_are_refused(wrap):
    def f(x):
        tap(x, print)
        return x * 2

    with pytest.raises(TraceError, match="a tap"):
        wrap(f)(gc.ones(2, 3))


def test_taps_in_a_step_of_a_scan_are_refused():
    def step(carry, x):
        tap(x, print)
        return carry + x, x

    with pytest.raises(TraceError, match="a tap runs in Python"):
        gc.compile(lambda xs: gc.scan(step, gc.zeros(2), xs))(gc.ones(3, 2))


def test_named_sizes():
    observed = []

    def f(x):
        tap(x, observed.append)
        return (tap_gradient(x, observed.append) ** 2).sum()

    fast = gc.compile(f, dims=((gc.Dim("n"), 2),))
    for n in (1, 3, 40):
        x = gc.randn(n, 2, requires_grad=True)
        fast(x).backward()
        value, gradient = observed[-2:]
        assert (value.size, gradient.size) == (2 * n, 2 * n)
        np.testing.assert_allclose(value.norm, np.linalg.norm(x.detach().numpy()), rtol=1e-5)
        np.testing.assert_allclose(gradient.mean, x.grad.numpy().mean(), rtol=1e-4, atol=1e-6)


def test_graphs_by_themselves_leave_taps_out():
    model, log = watched()
    names = {node.op.name for node in gc.trace(model, gc.tensor(X)).nodes()}
    assert not names & {"statistics", "host_call", "gradient_tap"} and not log


def test_devices_say_that_they_cannot():
    observed = []

    def f(x):
        tap(x, observed.append)
        return x * 2

    with pytest.raises(CompileError, match="calls Python"):
        gc.compile(f)(gc.ones(3).to("cuda-emu"))


def test_unknown_kinds():
    for wrap in (lambda f: f, gc.compile):
        with pytest.raises(AttributeValueError, match="unknown statistic 'median'"):
            wrap(lambda x: tap(x, print, "median"))(gc.ones(3))


def test_statistics_of_arrays():
    result = Statistics.of(np.array([[1.0, 0.0], [3.0, math.nan]]))
    assert (result.size, result.nonfinite, result.zeros, result.nan) == (4, 1, 1 / 3, 1)
    assert (result.min, result.max, result.mean) == (0, 3, pytest.approx(4 / 3))
    assert result.norm == pytest.approx(math.sqrt(10)) and result.histogram == ()
    assert sum(Statistics.of(np.arange(5.0), "histogram").histogram) == 5
