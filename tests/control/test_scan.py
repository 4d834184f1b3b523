"""graphc.scan and recurrent layers: eager, traced, compiled and trained results agree, whatever the length."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc import nn, optim
from graphc.compiler.stages import Stages
from graphc.control.scan import scan
from graphc.errors import ArgumentError, ShapeError, TraceError
from graphc.ops.flow.loop import scan as scan_op


def tensor(*shape: int, seed: int = 0, grad: bool = False) -> graphc.Tensor:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return graphc.tensor(values, requires_grad=grad)


def running(total: graphc.Tensor, x: graphc.Tensor) -> tuple[graphc.Tensor, graphc.Tensor]:
    total = total * 0.5 + x
    return total, total.tanh()


@pytest.mark.parametrize("reverse", [False, True])
def test_eager_and_compiled(reverse: bool):
    x = tensor(6, 3)

    def function(x):
        return scan(running, x[0] * 0, x, reverse=reverse)

    last, stacks = function(x)
    values = x.numpy()[::-1] if reverse else x.numpy()
    total, expected = np.zeros(3, np.float32), []
    for row in values:
        total = total * np.float32(0.5) + row
        expected.append(np.tanh(total))
    np.testing.assert_allclose(last.numpy(), total, rtol=1e-6)
    np.testing.assert_allclose(stacks.numpy(), expected[::-1] if reverse else expected, rtol=1e-5)
    result = graphc.compile(function)(x)
    np.testing.assert_allclose(result[0].numpy(), last.numpy(), rtol=1e-5)
    np.testing.assert_allclose(result[1].numpy(), stacks.numpy(), rtol=1e-5)


def test_structures_and_length():
    def step(carry, x):
        assert x is None
        return {"a": carry["b"], "b": carry["a"] + carry["b"]}, {"seen": carry["a"], "none": None}

    def fibonacci(one):
        return scan(step, {"a": one * 0, "b": one}, length=10)

    one = graphc.tensor([1.0])
    for function in (fibonacci, graphc.compile(fibonacci)):
        last, ys = function(one)
        assert last["a"].item() == 55 and ys["none"] is None
        np.testing.assert_array_equal(ys["seen"].numpy()[:, 0], [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])


def test_a_traced_loop_is_one_node_for_any_length():
    def kernels(length: int) -> int:
        graph = graphc.trace(lambda x: scan(running, x[0], x), tensor(length, 3))
        assert [n.op for n in graph.nodes()].count(scan_op.op) == 1
        return len(Stages(graph).scheduled.kernels)

    assert kernels(5) == kernels(50)


def test_gradients_inside_of_a_trace():
    x, weight = tensor(5, 4), tensor(4, 4, seed=1, grad=True)

    def loss(x):
        return scan(lambda h, row: ((h @ weight + row).tanh(),) * 2, x[0] * 0, x)[1].sum()

    loss(x).backward()
    expected = weight.grad.numpy().copy()
    weight.grad = None
    graphc.compile(loss)(x).backward()
    np.testing.assert_allclose(weight.grad.numpy(), expected, rtol=1e-4, atol=1e-5)

    def second(x, w):
        y = scan(lambda h, row: ((h @ w + row).tanh(),) * 2, x[0] * 0, x)[1].sum()
        (g,) = graphc.autograd.grad(y, w, create_graph=True)
        return graphc.autograd.grad((g * g).sum(), w)[0]

    result = graphc.compile(second)(x, weight)
    np.testing.assert_allclose(result.detach().numpy(), second(x, weight).detach().numpy(), rtol=1e-3, atol=1e-4)


def test_no_grad_inside_of_a_step():
    x = tensor(4, 3, grad=True)

    def step(total, row):
        with graphc.no_grad():
            scale = row * 2
        return total + row * scale, None

    def loss(x):
        return scan(step, x[0] * 0, x)[0].sum()

    loss(x).backward()
    expected, x.grad = x.grad.numpy().copy(), None
    np.testing.assert_allclose(expected, 2 * x.detach().numpy(), rtol=1e-6)
    graphc.compile(loss)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)


def test_refusals():
    x = tensor(4, 3)
    with pytest.raises(ShapeError, match="do not determine the number of steps"):
        scan(running, x[0], (x, tensor(5, 3)))
    with pytest.raises(ShapeError, match="do not determine the number of steps"):
        scan(running, x[0])
    with pytest.raises(ShapeError, match="no steps"):
        scan(running, x[0], tensor(0, 3))
    with pytest.raises(ArgumentError, match="must return a pair"):
        scan(lambda c, x: c, x[0], x)
    with pytest.raises(ShapeError, match=r"carry: shape \[3\] before the step and \[1, 3\] after"):
        scan(lambda c, x: (c.reshape(1, 3), x), x[0], x)


def test_steps_that_are_no_functions_are_refused_in_a_trace():
    x, count = tensor(4, 3), graphc.zeros(1)

    def writes(c, x):
        count.add_(1)
        return c, x

    with pytest.raises(TraceError, match="writes to a tensor from outside"):
        graphc.trace(lambda x: scan(writes, x[0], x), x)


LAYERS = {
    "lstm": lambda: nn.LSTM(3, 5, num_layers=2, bidirectional=True, batch_first=True),
    "gru": lambda: nn.GRU(3, 5, bidirectional=True, bias=False),
    "rnn": lambda: nn.RNN(3, 5, num_layers=2, nonlinearity="relu"),
}


def flat(output) -> list[graphc.Tensor]:
    y, state = output
    return [y, *(state if isinstance(state, tuple) else (state,))]


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("given", [False, True])
def test_compiled_layers(name: str, given: bool):
    graphc.manual_seed(0)
    layer = LAYERS[name]()
    x = tensor(4, 6, 3, grad=True)
    arguments = [x]
    if given:
        states = flat(layer(x))[1:]
        first = [tensor(*s.shape, seed=i) for i, s in enumerate(states)]
        arguments.append(tuple(first) if len(first) > 1 else first[0])
    results = []
    for module in (layer, graphc.compile(layer)):
        layer.zero_grad()
        x.grad = None
        outputs = flat(module(*arguments))
        sum(((o * o).sum() for o in outputs), graphc.tensor(0.0)).backward()
        gradients = [p.grad.numpy().copy() for p in layer.parameters()] + [x.grad.numpy().copy()]
        results.append([o.detach().numpy() for o in outputs] + gradients)
    for expected, result in zip(*results, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=2e-5)


class Tagger(nn.Module):
    """A tag for each word."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.rnn = nn.LSTM(6, 7, batch_first=True)
        self.tags = nn.Linear(7, 4)

    def forward(self, x):
        return self.tags(self.rnn(self.words(x))[0])


def test_compiled_training_of_a_tagger():
    graphc.manual_seed(0)
    net = Tagger()
    other = copy.deepcopy(net)
    rng = np.random.default_rng(0)
    words, tags = (graphc.from_numpy(rng.integers(0, n, (3, 8))) for n in (11, 4))

    def loss_of(logits, tags):
        return F.cross_entropy(logits.reshape(-1, 4), tags.reshape(-1))

    step = graphc.compile_step(net, loss_of, optim.Adam(net.parameters(), lr=0.05))
    optimizer = optim.Adam(other.parameters(), lr=0.05)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        expected = loss_of(other(words), tags)
        expected.backward()
        optimizer.step()
        losses.append(float(step(words, tags).item()))
        assert losses[-1] == pytest.approx(expected.item(), rel=1e-3)
    assert losses[-1] < losses[0]


def test_a_longer_sequence_is_no_larger_program():
    layer = nn.LSTM(3, 4)

    def size(length: int) -> tuple[int, int]:
        program = Stages(graphc.trace(layer, tensor(length, 2, 3))).scheduled
        return len(program.kernels), len(program.calls)

    assert size(100) == size(1000)


class Noisy(nn.Module):
    """Draws before, in and behind the steps, in its own name and in that of a layer."""

    def __init__(self):
        super().__init__()
        self.mix, self.drop = nn.Linear(4, 4, dtype=graphc.float64), nn.Dropout(0.5)

    def forward(self, x):
        def inner(state, _):
            return self.drop(state) + graphc.rand(4, dtype=graphc.float64), None

        def step(state, x):
            state = self.drop(self.mix(state).tanh()) + x
            state = graphc.scan(inner, state, length=2)[0]
            return state, self.drop(state)

        x = self.drop(x)
        last, stacks = graphc.scan(step, x[0], x)
        return self.drop(stacks) + last


def test_random_numbers_and_gradients_are_those_of_eager_mode():
    model = Noisy()
    x = graphc.tensor(np.random.default_rng(0).standard_normal((5, 4)))
    results = []
    for function in (model, graphc.compile(model)):
        graphc.manual_seed(3)
        values = []
        for _ in range(2):
            model.zero_grad()
            y = function(x)
            y.sum().backward()
            grad = model.mix.weight.grad
            assert grad is not None
            values += [y.detach().numpy(), grad.numpy().copy(), graphc.get_rng_state().numpy()]
        results.append([*values, graphc.rand(3).numpy()])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_random_numbers_of_steps_differ_and_those_behind_are_others():
    def function(x):
        _, drawn = graphc.scan(lambda c, _: (c, graphc.rand(3)), (), x)
        return graphc.cat([drawn, graphc.rand(1, 3)])

    graphc.manual_seed(1)
    eager = function(tensor(4, 1)).numpy()
    assert len(np.unique(eager)) == 15
    graphc.manual_seed(1)
    np.testing.assert_array_equal(graphc.compile(function)(tensor(4, 1)).numpy(), eager)


def test_a_part_that_is_compiled_draws_like_the_whole():
    class Outer(nn.Module):
        def __init__(self, part):
            super().__init__()
            self.part, self.drop = part, nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(self.part(self.drop(x)))

    x, part = graphc.tensor(np.ones((3, 4))), Noisy()
    results = []
    for model in (Outer(part), Outer(graphc.compile(part))):
        graphc.manual_seed(5)
        results.append([model(x).detach().numpy() for _ in range(2)])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)


def test_vmap_of_steps_that_draw_is_refused():
    def function(x):
        return graphc.scan(lambda c, _: (c + graphc.rand(3), None), x, length=2)[0]

    with pytest.raises(TraceError, match="random numbers inside of a loop or a branch"):
        graphc.vmap(function, randomness="different")(tensor(4, 3))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [True, 1, 4, 11, 40])
def test_checkpoints_change_no_value(size: int, reverse: bool):
    """Chunks that divide the 11 steps, chunks that do not, and one longer than all steps."""
    w, xs = tensor(3, 3), {"x": tensor(11, 3, seed=1), "y": tensor(11, seed=2)}

    def loss(w, xs, checkpoint=False):
        def step(carry, row):
            carry = (carry @ w).tanh() + row["x"] * row["y"]
            return carry, {"sum": carry.sum(), "all": carry}

        carry, ys = scan(step, w[0], xs, reverse=reverse, checkpoint=checkpoint)
        return (carry * ys["sum"][3] + ys["all"][5] ** 2).sum()

    plain = graphc.func.value_and_grad(loss, argnums=(0, 1))
    chunked = graphc.func.value_and_grad(lambda w, xs: loss(w, xs, size), argnums=(0, 1))
    value, (by_w, by_xs) = graphc.compile(plain)(w, xs)
    for run in (chunked, graphc.compile(chunked)):
        actual, (again_w, again_xs) = run(w, xs)
        if run is not chunked:
            assert actual.item() == value.item()
        np.testing.assert_allclose(actual.numpy(), value.numpy(), rtol=1e-5)
        np.testing.assert_allclose(again_w.numpy(), by_w.numpy(), rtol=1e-4, atol=1e-6)
        for key in xs:
            np.testing.assert_allclose(again_xs[key].numpy(), by_xs[key].numpy(), rtol=1e-4, atol=1e-6)


def test_checkpoints_keep_less():
    """Memory of a gradient grows with the square root of the steps."""

    def arena(checkpoint, length):
        def loss(w, x):
            return scan(lambda c, _: ((c @ w).tanh().exp().sin(), None), x, length=length, checkpoint=checkpoint)[
                0
            ].sum()

        return Stages(graphc.trace(graphc.grad(loss), tensor(8, 8), tensor(8))).scheduled.arena

    assert arena(False, 3600) > 3.5 * arena(False, 900)
    assert arena(True, 3600) < 2.5 * arena(True, 900) < arena(False, 900) / 4


def test_checkpoints_repeat_random_numbers():
    x = tensor(9, 3, grad=True)
    drop = nn.Dropout(0.5)

    def loss(x):
        return (scan(lambda c, x: (drop(c.sin() + x), c), x[0] * 0, x, checkpoint=3)[0] ** 2).sum()

    gradients = []
    for run in (loss, graphc.compile(loss)):
        graphc.manual_seed(0)
        gradients.append(graphc.autograd.grad(run(x), x)[0].numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-5)
    assert np.any(gradients[0])


@pytest.mark.parametrize("checkpoint", [-1, 1.5, "all"])
def test_chunks_have_a_length(checkpoint):
    with pytest.raises(ArgumentError, match="checkpoint must be True or at least 1"):
        scan(running, tensor(3), tensor(4, 3), checkpoint=checkpoint)


def test_chunks_of_named_dimensions_are_refused():
    function = graphc.compile(lambda x: scan(running, x[0], x, checkpoint=2)[0], dims={"x": (graphc.Dim("n"), None)})
    with pytest.raises(ArgumentError, match="same in all calls"):
        function(tensor(8, 3))
