"""Checkpoints in eager mode."""

import gc
import weakref

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import GradientError


def _model():
    graphc.manual_seed(3)
    block = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.4), nn.Linear(8, 6))
    return block.to(graphc.float64)


def _x(seed=0, shape=(5, 6)):
    return graphc.tensor(np.random.default_rng(seed).standard_normal(shape))


def _trained(through):
    block = _model()
    for i in range(3):
        (through(block, _x(i)).tanh() ** 2).sum().backward()
    state = {name: np.array(value) for name, value in block.state_dict().items()}
    return [np.array(p.grad) for p in block.parameters()], state, graphc.get_rng_state().tolist()


def test_gradients_buffers_and_random_numbers_are_those_of_the_function():
    plain = _trained(lambda block, x: block(x))
    again = _trained(graphc.checkpoint)
    assert all(np.array_equal(a, b) for a, b in zip(plain[0], again[0], strict=True))
    assert all(np.array_equal(plain[1][name], again[1][name]) for name in plain[1])
    assert plain[2] == again[2]


def test_random_numbers_outside_of_modules_are_drawn_again():
    w = graphc.ones(1000, requires_grad=True)
    graphc.manual_seed(1)
    y = graphc.checkpoint(lambda w: graphc.rand(1000) * w, w)
    after = graphc.rand(3)
    y.sum().backward()
    assert np.array_equal(w.grad, y.detach())
    graphc.manual_seed(1)
    graphc.rand(1000)
    assert np.array_equal(graphc.rand(3), after)


def test_without_preserve_rng_state_they_are_drawn_anew():
    w = graphc.ones(1000, requires_grad=True)
    y = graphc.checkpoint(lambda w: graphc.rand(1000) * w, w, preserve_rng_state=False)
    y.sum().backward()
    assert not np.array_equal(w.grad, y.detach())


def test_intermediate_values_are_not_kept():
    alive = []

    def function(x):
        y = x.exp()
        alive.append(weakref.ref(y._data))
        return y.sin().sum()

    x = _x().requires_grad_()
    loss = graphc.checkpoint(function, x)
    gc.collect()
    assert alive[0]() is None
    loss.backward()
    assert len(alive) == 2
    gc.collect()
    assert alive[1]() is None
    assert np.allclose(x.grad, np.cos(np.exp(np.array(x.detach()))) * np.exp(np.array(x.detach())))


def test_second_derivatives():
    x = _x().requires_grad_()

    def derivatives(through):
        y = through(lambda x: (x.exp() * x).sin(), x).sum()
        (first,) = graphc.autograd.grad(y, [x], create_graph=True)
        (second,) = graphc.autograd.grad((first**2).sum(), [x], create_graph=True)
        return first, second, *graphc.autograd.grad(second.sum(), [x])

    plain = derivatives(lambda function, x: function(x))
    again = derivatives(graphc.checkpoint)
    assert all(np.array_equal(a.detach(), b.detach()) for a, b in zip(plain, again, strict=True))


def test_a_graph_that_is_retained_runs_again():
    calls, x = [], _x().requires_grad_()

    def function(x):
        calls.append(1)
        return (x * x).sum()

    loss = graphc.checkpoint(function, x)
    loss.backward(retain_graph=True)
    loss.backward()
    assert np.allclose(x.grad, 4 * np.array(x.detach())) and len(calls) >= 2
    with pytest.raises(GradientError, match="already run backward"):
        loss.backward()


def test_checkpoints_in_checkpoints():
    def outer(x, scale):
        y = graphc.checkpoint(lambda x: x.sin() * scale, x)
        return graphc.checkpoint(lambda y: y.exp(), y) * y

    x, scale = _x().requires_grad_(), _x(4).requires_grad_()
    graphc.checkpoint(outer, x, scale=scale).sum().backward()
    gradients = np.array(x.grad), np.array(scale.grad)
    x.grad = scale.grad = None
    y = x.sin() * scale
    (y.exp() * y).sum().backward()
    assert np.array_equal(gradients[0], x.grad) and np.array_equal(gradients[1], scale.grad)


def test_results_of_any_structure_and_values_that_the_function_takes_from_outside():
    x, outside = _x().requires_grad_(), _x(1).requires_grad_()
    hidden = outside.exp()
    result = graphc.checkpoint(lambda a: {"sum": (a * hidden).sum(), "n": 3}, x)
    result["sum"].backward()
    assert result["n"] == 3 and np.allclose(x.grad, hidden.detach())
    assert np.allclose(outside.grad, np.array(x.detach()) * np.array(hidden.detach()))


def test_in_place_operations_inside():
    x = _x().requires_grad_()

    def function(x):
        y = x * 2
        y.relu_()
        z = y.sin()
        z.add_(1.0)
        return (z * z).sum()

    graphc.checkpoint(function, x).backward()
    gradient = np.array(x.grad)
    x.grad = None
    y = x * 2
    y.relu_()
    z = y.sin()
    z.add_(1.0)
    (z * z).sum().backward()
    assert np.array_equal(gradient, x.grad)


def test_a_value_that_its_gradient_needs_and_that_is_overwritten_is_an_error():
    loss = graphc.checkpoint(lambda x: x.exp().add_(1.0).sum(), _x().requires_grad_())
    with pytest.raises(GradientError, match="modified by an in-place operation"):
        loss.backward()


def test_an_argument_or_parameter_that_was_written_to_is_an_error():
    x, w = _x().requires_grad_(), _x(1).requires_grad_()
    y = x * 1
    loss = graphc.checkpoint(lambda y: (y * y).sum(), y)
    y.add_(1.0)
    with pytest.raises(GradientError, match="modified by an in-place operation"):
        loss.backward()
    loss = graphc.checkpoint(lambda x: (x * w).sum(), x)
    with graphc.no_grad():
        w.add_(1.0)
    with pytest.raises(GradientError, match="modified by an in-place operation"):
        loss.backward()


@pytest.mark.parametrize("later", [1, 3])
def test_a_function_that_does_something_else_is_an_error(later):
    count = [2]

    def function(x):
        for _ in range(count[0]):
            x = x.sin()
        return x.sum()

    loss = graphc.checkpoint(function, _x().requires_grad_())
    count[0] = later
    with pytest.raises(GradientError, match="something else when it ran again"):
        loss.backward()


def test_without_gradients_the_function_is_called_and_nothing_more():
    with graphc.no_grad():
        assert not graphc.checkpoint(lambda x: x * 2, _x().requires_grad_()).requires_grad
    assert graphc.checkpoint(lambda x: x * 2, _x()).requires_grad is False


def test_buffers_of_a_compiled_function_are_written_once():
    def trained(through):
        block = _model()
        compiled = graphc.compile(block)
        through(compiled, _x().requires_grad_()).sum().backward()
        return {name: np.array(value) for name, value in block.state_dict().items()}

    plain, again = trained(lambda block, x: block(x)), trained(graphc.checkpoint)
    assert all(np.array_equal(plain[name], again[name]) for name in plain)


def test_what_a_compiled_function_keeps_for_its_gradient_is_dropped_too():
    def residuals(tensor):
        return tensor.grad_fn.residuals

    compiled = graphc.compile(lambda x: (x.exp() * x.sin()).tanh())
    x = _x().requires_grad_()
    plain = compiled(x)
    again = graphc.checkpoint(compiled, x)
    assert residuals(plain) and all(isinstance(r, np.ndarray) for r in residuals(plain))
    assert not any(isinstance(r.data[0], (np.ndarray, graphc.Tensor)) for r in residuals(again))
    plain.sum().backward()
    gradient = np.array(x.grad)
    x.grad = None
    again.sum().backward()
    assert np.array_equal(gradient, x.grad)


@pytest.mark.parametrize("compiled", [False, True])
def test_numbers_of_a_step_that_began_before_are_drawn_again(compiled):
    class Net(nn.Module):
        def __init__(self, through):
            super().__init__()
            self.drop, self.through = nn.Dropout(0.5), through
            self.part = graphc.compile(self.twice) if compiled else self.twice

        def twice(self, x):
            return self.drop(x * x)

        def forward(self, x):
            return self.through(self.part, self.drop(x))

    results = []
    for through in (lambda f, x: f(x), graphc.checkpoint):
        graphc.manual_seed(0)
        net, x = Net(through), graphc.ones(64, dtype=graphc.float64, requires_grad=True)
        y, _ = net(x), net(x)
        y.sum().backward()
        assert x.grad is not None
        results.append(np.array(x.grad))
    np.testing.assert_array_equal(*results)
