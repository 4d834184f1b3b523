"""Values that forward hooks keep are part of the autograd graph, in compiled code as in eager mode."""

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import GradientError

X = gc.from_numpy(np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32))


def network():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    rng = np.random.default_rng(0)
    for p in net.parameters():
        p.data.copy_(gc.from_numpy(rng.normal(size=p.shape)))
    return net


def gradients(compiled, hook, loss):
    """Return the gradients of the parameters, zeros for None. ``loss`` takes the output and ``hook(output)``."""
    net, kept = network(), []
    net[1].register_forward_hook(lambda module, args, output: kept.append(hook(output)))
    if compiled:
        net.compile()
    loss(net(X), kept[0]).backward()
    return [np.zeros(p.shape) if p.grad is None else p.grad.numpy() for p in net.parameters()]


@pytest.mark.parametrize("hook", [lambda out: out, lambda out: out.pow(2).mean()], ids=["itself", "computed"])
@pytest.mark.parametrize(
    "loss",
    [
        lambda out, kept: out.sin().sum() + kept.square().sum(),
        lambda out, kept: kept.square().sum(),
        lambda out, kept: out.sin().sum(),
    ],
    ids=["both", "kept", "output"],
)
def test_a_loss_of_what_a_hook_kept_trains_what_made_it(hook, loss):
    for result, expected in zip(gradients(True, hook, loss), gradients(False, hook, loss), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_an_output_that_a_hook_kept_can_retain_its_gradient():
    def grad_of_kept(compiled):
        net, kept = network(), []

        def hook(module, args, output):
            output.retain_grad()
            kept.append(output)

        net[1].register_forward_hook(hook)
        if compiled:
            net.compile()
        net(X).sin().sum().backward()
        return kept[0].grad.numpy()

    np.testing.assert_allclose(grad_of_kept(True), grad_of_kept(False), rtol=1e-5, atol=1e-6)


def test_passes_over_a_graph_that_is_kept_count_what_a_hook_kept_each_time():
    net, kept = network(), []
    net[1].register_forward_hook(lambda module, args, output: kept.append(output))
    net.compile()
    loss = net(X).sum() + kept[0].sum()
    loss.backward(retain_graph=True)
    once = net[0].weight.grad.numpy().copy()
    loss.backward()
    np.testing.assert_allclose(net[0].weight.grad.numpy(), 2 * once, rtol=1e-6)


def test_the_gradient_of_an_input_that_a_hook_kept_is_refused_rather_than_lost():
    net, kept = network(), []
    net[2].register_forward_hook(lambda module, args, output: kept.append(args[0]))
    net.compile()
    out = net(X)
    with pytest.raises(GradientError, match="the gradient of a value that a forward hook of Linear kept"):
        (out.sum() + kept[0].sum()).backward()
