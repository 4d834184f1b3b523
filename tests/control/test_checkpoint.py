"""Checkpoints in traced and compiled code."""

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.ir.graph.parse import parse_graph
from graphc.ir.op import Trait


def _block():
    graphc.manual_seed(5)
    layers = [
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Conv2d(4, 3, 3, padding=1),
    ]
    return nn.Sequential(*layers).to(graphc.float64)


class _Net(nn.Module):
    def __init__(self, through):
        super().__init__()
        self.block, self.through = _block(), through

    def forward(self, x):
        return self.through(self.block, x).tanh()


def _images(seed):
    return graphc.tensor(np.random.default_rng(seed).standard_normal((2, 3, 6, 6)))


def _plain(function, *args):
    return function(*args)


def _steps(through, how):
    net = _Net(through)
    optimizer = graphc.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    step = graphc.compile_step(net, lambda out, y: (out * y).sum(), optimizer)
    call = graphc.compile(net) if how == "compile" else net
    for i in range(3):
        x, y = _images(i), _images(10 + i)
        if how == "step":
            losses.append(step(x, y).item())
        else:
            optimizer.zero_grad()
            loss = (call(x) * y).sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses, {name: np.array(value) for name, value in net.state_dict().items()}


@pytest.mark.parametrize("how", ["eager", "compile", "step"])
def test_training_is_that_of_the_function(how):
    losses, state = _steps(_plain, how)
    others, other = _steps(graphc.checkpoint, how)
    assert np.allclose(losses, others, rtol=1e-12)
    assert all(np.allclose(state[name], other[name], rtol=1e-10, atol=1e-13) for name in state)


def test_the_trace_holds_one_node_that_prints_and_parses():
    graph = graphc.trace(_Net(graphc.checkpoint), _images(0))
    assert sum(node.op.name == "checkpoint" for node in graph.nodes()) == 1
    assert parse_graph(str(graph)) == graph


def test_the_backward_part_computes_it_again():
    net = _Net(graphc.checkpoint)
    step = graphc.compile_step(net, lambda out, y: (out * y).sum(), graphc.optim.SGD(net.parameters(), lr=0.1))
    step(_images(0), _images(1))
    (graph,) = step.graphs
    assert any(node.op.has(Trait.WAITS) for node in graph.nodes())
    (node,) = (node for node in graph.nodes() if node.op.name == "checkpoint")
    again = [node for node in graph.nodes() if node.op.has(Trait.RANDOM)]
    assert len(again) == 1 and again[0].location.module == "block.3"
    first = [node for node in node.attrs["body"].nodes() if node.op.has(Trait.RANDOM)]
    assert len(first) == 1 and first[0].attrs == again[0].attrs


def test_derivatives_inside_of_a_trace_to_the_third_order():
    def derivatives(through):
        def f(x):
            y = through(lambda x: (x.exp() * x).sin(), x).sum()
            (first,) = graphc.autograd.grad(y, [x], create_graph=True)
            (second,) = graphc.autograd.grad((first**2).sum(), [x], create_graph=True)
            return first, second, *graphc.autograd.grad(second.sum(), [x])

        return f

    x = graphc.tensor(np.linspace(-1, 1, 7), requires_grad=True)
    expected = derivatives(_plain)(x)
    for result in (graphc.compile(derivatives(graphc.checkpoint))(x), derivatives(graphc.checkpoint)(x)):
        assert all(np.allclose(a.detach(), b.detach(), rtol=1e-12) for a, b in zip(expected, result, strict=True))


def test_batches():
    def f(x):
        return graphc.checkpoint(lambda x: x.sin() * x, x).sum()

    x = graphc.tensor(np.linspace(-1, 1, 6).reshape(2, 3))
    gradients = graphc.vmap(graphc.grad(f))(x)
    assert np.allclose(gradients, np.cos(x) * np.array(x) + np.sin(x))


def test_functions_in_a_row():
    graphc.manual_seed(0)
    layers = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(5)]).to(graphc.float64)
    x = graphc.tensor(np.linspace(-1, 1, 8).reshape(2, 4))
    layers(x).sum().backward()
    plain = [np.array(p.grad) for p in layers.parameters()]
    for call in (layers, list(layers)):
        layers.zero_grad()
        graphc.checkpoint_sequential(call, 2, x, use_reentrant=False).sum().backward()
        assert all(np.array_equal(a, p.grad) for a, p in zip(plain, layers.parameters(), strict=True))
    with pytest.raises(ArgumentError, match="5 functions into 6 segments"):
        graphc.checkpoint_sequential(layers, 6, x)


def test_what_the_function_writes_to_and_reads_from_outside():
    kept = graphc.zeros(3, dtype=graphc.float64)

    def f(x, scale):
        def inner(x):
            kept.add_(1.0)
            return (x * scale + kept).exp(), 3, x

        y, three, same = graphc.checkpoint(inner, x)
        return y * three + same

    x, scale = (graphc.tensor(np.linspace(a, 1, 3), requires_grad=True) for a in (-1, 0))
    compiled = graphc.compile(f)
    compiled(x, scale).sum().backward()
    gradients = np.array(x.grad), np.array(scale.grad), np.array(kept)
    x.grad = scale.grad = None
    kept.fill_(0.0)
    f(x, scale).sum().backward()
    assert gradients[2].tolist() == [1.0] * 3 == kept.tolist()
    assert np.allclose(gradients[0], x.grad) and np.allclose(gradients[1], scale.grad)


def test_arguments_of_pytorch():
    x = graphc.ones(2, requires_grad=True)
    given = {"use_reentrant": False, "determinism_check": "none", "debug": True, "early_stop": False}
    graphc.checkpoint(graphc.tanh, x, **given).sum().backward()
    assert x.grad.shape == (2,)
    with pytest.raises(ArgumentError, match="context_fn is not available"):
        graphc.checkpoint(graphc.tanh, x, context_fn=lambda: None)


def test_no_function_is_an_error():
    with pytest.raises(ArgumentError, match="takes a callable"):
        graphc.checkpoint(graphc.ones(2))


class _Hooked(nn.Module):
    def __init__(self, through):
        super().__init__()
        self.first, self.second, self.through = nn.Linear(4, 4), nn.Linear(4, 4), through

    def block(self, x):
        hidden = self.first(x).tanh()
        return self.second(hidden * _larger(hidden.detach()))

    def forward(self, x):
        return self.through(self.block, x).tanh()


@graphc.opaque
def _larger(x):
    return np.abs(x.numpy()) + 1.0


@pytest.mark.parametrize("how", ["compile", "step"])
def test_python_functions_and_hooks_inside_are_called_once(how):
    def events(through):
        graphc.manual_seed(2)
        results, net = [], _Hooked(through).to(graphc.float64)
        net.first.register_forward_hook(lambda module, args, output: results.append(("forward", output.sum().item())))
        net.second.register_full_backward_hook(lambda module, gi, go: results.append(("backward", go[0].sum().item())))
        x, y = graphc.ones(3, 4, dtype=graphc.float64), graphc.zeros(3, 4, dtype=graphc.float64)
        optimizer = graphc.optim.SGD(net.parameters(), lr=0.1)
        if how == "step":
            step = graphc.compile_step(net, nn.MSELoss(), optimizer)
            return results, [step(x, y).item() for _ in range(3)]
        call, losses = graphc.compile(net), []
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(call(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return results, losses

    (plain, losses), (again, others) = events(_plain), events(graphc.checkpoint)
    assert [name for name, _ in plain] == [name for name, _ in again] == ["forward", "backward"] * 3
    assert np.allclose([v for _, v in plain], [v for _, v in again], rtol=1e-12)
    assert np.allclose(losses, others, rtol=1e-12)


def test_random_numbers_and_buffers_in_a_compiled_training_function():
    def trained(compiled):
        graphc.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).to(graphc.float64)
        optimizer = graphc.optim.SGD(net.parameters(), lr=0.1)

        def train(x):
            optimizer.zero_grad()
            loss = (graphc.checkpoint(net, x) * x).sum()
            loss.backward()
            optimizer.step()
            return loss

        step = graphc.compile(train) if compiled else train
        return [step(graphc.randn(5, 4, dtype=graphc.float64)).item() for _ in range(4)]

    assert np.allclose(trained(True), trained(False), rtol=1e-12)
