"""The backward pass of compiled functions: gradients that leaves keep as they are, hooks, accumulation."""

import numpy as np
import pytest

import graphc
from graphc import nn


@pytest.fixture
def pair():
    graphc.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    return model, graphc.compile(model), graphc.randn(4, 5)


def gradients(model, x, call):
    model.zero_grad()
    (call(x) ** 2).sum().backward()
    return [p.grad.numpy().copy() for p in model.parameters()]


def agree(result, expected):
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_gradients_have_memory_of_their_own(pair):
    model, compiled, x = pair
    expected = gradients(model, x, model)
    for _ in range(4):
        agree(gradients(model, x, compiled), expected)
    held = [p.grad for p in model.parameters()]
    before = [g.numpy().copy() for g in held]
    gradients(model, x * 2, compiled)  # into memory that is used again, but not where somebody holds it
    agree([g.numpy() for g in held], before)


def test_gradients_accumulate(pair):
    model, compiled, x = pair
    expected = gradients(model, x, model)
    gradients(model, x, compiled)
    (compiled(x) ** 2).sum().backward()
    agree([p.grad.numpy() for p in model.parameters()], [2 * g for g in expected])


def test_what_a_hook_keeps_is_not_the_gradient_of_the_leaf(pair):
    model, compiled, x = pair
    kept = []
    handle = model[0].weight.register_hook(kept.append)
    expected = gradients(model, x, compiled)[0]
    model[0].weight.grad.zero_()
    np.testing.assert_array_equal(kept[0].numpy(), expected)
    handle.remove()


def test_what_a_hook_of_the_node_keeps_is_not_the_gradient_of_the_leaf(pair):
    model, compiled, x = pair
    kept = []
    out = compiled(x)
    out.grad_fn.register_hook(lambda inputs, outputs: kept.extend(inputs))
    out.sum().backward()
    values = [g.numpy().copy() for g in kept]
    for p in model.parameters():
        p.grad.zero_()
    agree([g.numpy() for g in kept], values)


def test_a_replaced_parameter_is_the_one_that_is_read(pair):
    model, compiled, x = pair
    gradients(model, x, compiled)
    model[2].weight = nn.Parameter(graphc.ones(3, 7))
    agree(gradients(model, x, compiled), gradients(model, x, model))
    model[2].weight.data = graphc.full((3, 7), 0.5)
    agree(gradients(model, x, compiled), gradients(model, x, model))


def test_gradients_of_the_output_that_are_not_dense(pair):
    model, compiled, x = pair
    weights = graphc.randn(3, 4).t()
    compiled(x).backward(weights)
    results = [p.grad.numpy().copy() for p in model.parameters()]
    model.zero_grad()
    model(x).backward(weights)
    agree(results, [p.grad.numpy() for p in model.parameters()])
