"""Tangents through compiled functions: as those of the functions themselves, and by programs alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import func, nn
from graphc.calls.function import Compiled
from graphc.errors import GradientError
from graphc.func import functional
from graphc.tensors.structure import flatten

F64 = graphc.float64


def agree(actual: Any, expected: Any):
    pairs = list(zip(flatten(actual)[0], flatten(expected)[0], strict=True))
    assert pairs
    for a, b in pairs:
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-10, atol=1e-12)


def refuse(*args: Any) -> Any:
    raise AssertionError("the Python code is called")


def values(*shape: int, seed: int = 1) -> Any:
    return graphc.tensor(np.random.default_rng(seed).normal(size=shape))


W = values(3, 3, seed=7).requires_grad_()


def rows(x: Any) -> Any:
    return graphc.tanh(x @ W).sum(0)


def number(x: Any) -> Any:
    return (graphc.tanh(x @ W) ** 2).sum()


def jvp(f: Callable[..., Any], x: Any, t: Any) -> Any:
    return func.jvp(f, (x,), (t,))


def jvp_without_history(f: Callable[..., Any], x: Any, t: Any) -> Any:
    with graphc.no_grad():
        result = func.jvp(f, (x,), (t,))
    assert not any(a.requires_grad for a in result)
    return result


def forward_twice(f: Callable[..., Any], x: Any, t: Any) -> Any:
    return func.jvp(lambda y: func.jvp(f, (y,), (t * 2,))[1], (x,), (t,))


def forward_three_times(f: Callable[..., Any], x: Any, t: Any) -> Any:
    return func.jvp(lambda y: forward_twice(f, y, t + 1)[1], (x,), (t,))


def reverse_over_forward(f: Callable[..., Any], x: Any, t: Any) -> Any:
    y = x.clone().requires_grad_()
    tangent = func.jvp(f, (y,), (t,))[1]
    return graphc.autograd.grad((tangent**2).sum(), [y, W])


def forward_over_reverse(f: Callable[..., Any], x: Any, t: Any) -> Any:
    return func.jvp(lambda y: func.grad(lambda z: f(z).sum())(y), (x,), (t,))


def reverse_over_both(f: Callable[..., Any], x: Any, t: Any) -> Any:
    y = x.clone().requires_grad_()
    product = forward_over_reverse(f, y, t)[1]
    return graphc.autograd.grad((product**2).sum(), [y, W])


def forward_over_two_reverses(f: Callable[..., Any], x: Any, t: Any) -> Any:
    def slope(y: Any) -> Any:
        return (func.grad(lambda z: f(z).sum())(y) ** 2).sum()

    return func.jvp(func.grad(slope), (x,), (t,))


def product_with_a_hessian(f: Callable[..., Any], x: Any, t: Any) -> Any:
    return functional.hvp(lambda y: f(y).sum(), x, t)


def jacobian(f: Callable[..., Any], x: Any, t: Any) -> Any:
    return func.jacfwd(f)(x)


def tangents_of_a_parameter(f: Callable[..., Any], x: Any, t: Any) -> Any:
    return func.jvp(lambda y, w: f(y) @ w if f(y).dim() else f(y) * w.sum(), (x, t.sum(0)), (t, x.sum(0)))


WAYS = (
    jvp,
    jvp_without_history,
    forward_twice,
    forward_three_times,
    reverse_over_forward,
    forward_over_reverse,
    reverse_over_both,
    forward_over_two_reverses,
    product_with_a_hessian,
    jacobian,
    tangents_of_a_parameter,
)


@pytest.mark.parametrize("transform", WAYS, ids=lambda transform: transform.__name__)
@pytest.mark.parametrize("function", [rows, number], ids=lambda f: f.__name__)
def test_programs_alone_give_what_the_function_does(function: Callable[..., Any], transform: Callable[..., Any]):
    compiled = graphc.compile(function)
    x, t = values(2, 3), values(2, 3, seed=2)
    expected = transform(function, x, t)
    agree(transform(compiled, x, t), expected)
    compiled._target = refuse
    agree(transform(compiled, x, t), expected)


def test_a_module_with_two_results_of_which_one_is_no_float():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 4, dtype=F64), nn.Linear(3, 4, dtype=F64)

        def forward(self, x, scale):
            y = self.first(x) * scale
            return {"y": y, "most": y.argmax(1), "other": self.second(scale.reshape(1, 1).expand(1, 3))}

    model = Both()
    compiled = graphc.compile(model)
    x, t = values(2, 3), values(2, 3, seed=2)
    scale = graphc.tensor(2.0, dtype=F64)

    def pushed(f: Any) -> Any:
        with graphc.autograd.forward_ad.dual_level():
            result = f(graphc.autograd.forward_ad.make_dual(x, t), scale)
            return {k: graphc.autograd.forward_ad.unpack_dual(v) for k, v in result.items()}

    expected, found = pushed(model), pushed(compiled)
    assert found["most"].tangent is None and found["other"].tangent is None
    agree(found["y"], expected["y"])
    agree(found["most"].primal, expected["most"].primal)


def test_parameters_that_have_tangents():
    model = nn.Linear(3, 2, dtype=F64)
    direction = values(2, 3)

    def pushed(f: Any) -> Any:
        with graphc.autograd.forward_ad.dual_level():
            weight = model.weight
            weight._tangents = None
            graphc.tape.tangents.set_tangent(weight, graphc.tape.tangents.levels.get()[-1], direction)
            result = graphc.autograd.forward_ad.unpack_dual(f(values(4, 3)))
        weight._tangents = None
        return result

    compiled = graphc.compile(model)
    expected = pushed(model)
    agree(pushed(compiled), expected)
    agree(expected.tangent, values(4, 3) @ direction.T)


def test_random_numbers_are_those_of_the_call():
    dropout = nn.Dropout(0.5)

    def function(x: Any) -> Any:
        return dropout(x) ** 2

    compiled = graphc.compile(function)
    x, t = values(50), values(50, seed=2)
    results = []
    for f in (function, compiled, compiled):
        graphc.manual_seed(3)
        results.append((jvp(f, x, t), graphc.randn(2)))
    agree(results[1], results[0])
    agree(results[2], results[0])


def test_calls_without_tangents_inside_of_a_level_are_native():
    compiled = graphc.compile(number)
    x, t = values(2, 3), values(2, 3, seed=2)
    expected = compiled(x)
    compiled._target = refuse
    agree(func.jvp(lambda y: (y * compiled(x)).sum(), (x,), (t,))[1], t.sum() * expected)


class Doubled(graphc.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, *grads):
        return grads[0] * 2

    @staticmethod
    def jvp(ctx, *tangents):
        return tangents[0] * 20


def partly_constant(x: Any) -> Any:
    with graphc.no_grad():
        factor = x * 3
    return x * factor


def test_what_has_other_rules_for_tangents_runs_as_python():
    x, t = values(3), values(3, seed=2)
    for function in (Doubled.apply, partly_constant):
        compiled = graphc.compile(lambda y, f=function: f(y))
        agree(jvp(compiled, x, t), jvp(function, x, t))
        compiled._target = refuse
        with pytest.raises(AssertionError, match="the Python code is called"):
            jvp(compiled, x, t)


@pytest.mark.parametrize(
    "function",
    [
        lambda y: y**2 * y.detach(),
        lambda y: nn.functional.log_softmax(y @ W, 1) * 2,
        lambda y: nn.functional.cross_entropy(y @ W, graphc.tensor([0, 2])),
        lambda y: graphc.scan(lambda c, v: (graphc.tanh(c + v), c.detach() * v**2), y[0], y)[1],
    ],
)
@pytest.mark.parametrize("transform", [jvp, forward_twice, reverse_over_forward, forward_over_reverse, jacobian])
def test_what_is_detached_has_no_tangents_in_programs_either(
    function: Callable[..., Any], transform: Callable[..., Any]
):
    x, t = values(2, 3), values(2, 3, seed=2)

    def of_weights(y: Any) -> Any:
        return function(y * (1 + 0 * W.sum()))

    expected = transform(of_weights, x, t)
    compiled = graphc.compile(of_weights)
    agree(transform(compiled, x, t), expected)
    compiled._target = refuse
    agree(transform(compiled, x, t), expected)


def test_buffers_that_are_written_have_tangents_too():
    x, t = values(4, 3), values(4, 3, seed=2)
    results = []
    for compiled in (False, True):
        norm = nn.BatchNorm1d(3, dtype=F64)
        result = jvp(graphc.compile(norm) if compiled else norm, x, t)
        results.append((result, norm.state_dict()["running_mean"].clone()))
    agree(results[1], results[0])


def test_batch_normalisation_in_training_is_a_program():
    gc_net = nn.Sequential(nn.Linear(3, 4, dtype=F64), nn.BatchNorm1d(4, dtype=F64), nn.Tanh())
    state = {name: tensor.clone() for name, tensor in gc_net.state_dict().items()}
    x, t = values(4, 3), values(4, 3, seed=2)
    expected = jvp(gc_net, x, t), {name: tensor.clone() for name, tensor in gc_net.state_dict().items()}
    compiled = graphc.compile(gc_net)
    for target in (gc_net, refuse):
        gc_net.load_state_dict(state)
        compiled._target = target
        agree(jvp(compiled, x, t), expected[0])
        agree(gc_net.state_dict(), expected[1])


def test_statistics_that_are_read_have_tangents():
    class Centered(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", graphc.zeros(3, dtype=F64))

        def forward(self, x):
            with graphc.no_grad():
                self.mean.mul_(0.5).add_(x.mean(0))
            return x - self.mean

    x, t = values(4, 3), values(4, 3, seed=2)
    agree(jvp(graphc.compile(Centered()), x, t), jvp(Centered(), x, t))


def test_a_gradient_that_was_computed_without_tangents_takes_those_of_its_weights_along():
    compiled, x, t = graphc.compile(rows), values(2, 3).requires_grad_(), values(3, seed=3)

    def pulled(f: Any) -> Any:
        y = f(x)
        return func.jvp(lambda w: graphc.autograd.grad(y, x, w, retain_graph=True)[0], (t,), (t * 2,))

    agree(pulled(compiled), pulled(rows))


def test_an_argument_that_was_written_to_is_an_error():
    compiled = graphc.compile(number)
    x, t = values(2, 3), values(2, 3, seed=2)
    with graphc.autograd.forward_ad.dual_level():
        dual = graphc.autograd.forward_ad.make_dual(x, t).requires_grad_()
        leaf = dual * 1
        y = compiled(leaf)
        leaf.mul_(2)
        with pytest.raises(GradientError, match="modified by an in-place operation"):
            graphc.autograd.grad(y, dual)


def test_there_is_one_program_for_each_choice_of_moving_arguments():
    compiled = graphc.compile(lambda x, y: x * y + y)
    assert isinstance(compiled, Compiled)
    x, y = values(3), values(3, seed=2)
    for _ in range(3):
        func.jvp(lambda a: compiled(a, y), (x,), (y,))
        func.jvp(compiled, (x, y), (y, x))
    (variant,) = compiled.variants
    assert sorted(variant.derivative._pushed) == [(0,), (0, 1)]
