"""Opaque functions: Python in the middle of compiled code, gradient included."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import GradientError, ShapeError, TraceError
from graphc.nn import functional as F


def numpy_softplus(x):
    return gc.from_numpy(np.log1p(np.exp(x.detach().numpy())))


class Cube(gc.autograd.Function):
    """k * x**3 by numpy, both ways."""

    opaque = True

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return gc.from_numpy(k * x.detach().numpy() ** 3)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return gc.from_numpy(3 * ctx.k * x.detach().numpy() ** 2 * g.numpy()), None


class Detected(Cube):
    """The same, of which nobody says that it is opaque."""

    opaque = False


@pytest.mark.parametrize("function", [Cube, Detected])
def test_custom_functions_of_numpy(function):
    def f(x, w):
        h = function.apply(gc.tanh(x @ w), 2.0)
        return (h * h).sum()

    gc.manual_seed(0)
    x, w = gc.randn(4, 3, dtype=gc.float64), gc.randn(3, 5, dtype=gc.float64, requires_grad=True)
    expected = f(x, w)
    expected.backward()
    gradient, w.grad = w.grad, None
    compiled = gc.compile(f)
    for _ in range(2):
        found = compiled(x, w)
        found.backward()
        np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-12)
        np.testing.assert_allclose(w.grad.numpy(), gradient.numpy(), rtol=1e-10)
        w.grad = None
    with gc.no_grad():
        np.testing.assert_allclose(compiled(x, w).item(), expected.item(), rtol=1e-12)


def test_two_calls_in_flight_keep_apart_what_they_saved():
    compiled = gc.compile(lambda x: Cube.apply(x, 1.0).sum())
    a = gc.tensor([1.0, 2.0], requires_grad=True)
    b = gc.tensor([3.0, 4.0], requires_grad=True)
    first, second = compiled(a), compiled(b)
    first.backward()
    second.backward()
    assert a.grad.tolist() == [3, 12] and b.grad.tolist() == [27, 48]


def test_a_graph_that_is_kept_runs_backward_twice():
    compiled = gc.compile(lambda x: Cube.apply(x, 1.0).sum())
    a = gc.tensor([1.0, 2.0], requires_grad=True)
    value = compiled(a)
    value.backward(retain_graph=True)
    value.backward()
    assert a.grad.tolist() == [6, 24]
    with pytest.raises(GradientError):
        value.backward()


def test_training_steps_and_training_functions():
    def trained(kind):
        gc.manual_seed(0)
        net = nn.Linear(3, 5).double()
        optimizer = gc.optim.SGD(net.parameters(), lr=0.01)
        x, y = gc.randn(4, 3, dtype=gc.float64), gc.zeros(4, 5, dtype=gc.float64)

        def loss_of(output, y):
            return F.mse_loss(Cube.apply(output, 1.0), y)

        def train(x, y):
            optimizer.zero_grad()
            loss = loss_of(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        step = {"step": gc.compile_step(net, loss_of, optimizer), "train": gc.compile(train), "eager": train}[kind]
        return [step(x, y).item() for _ in range(4)]

    expected = trained("eager")
    np.testing.assert_allclose(trained("step"), expected, rtol=1e-10)
    np.testing.assert_allclose(trained("train"), expected, rtol=1e-10)


class Instance(gc.autograd.Function):
    """The old style: an instance for each call."""

    def __init__(self, power):
        self.power = power

    def forward(self, x):
        self.save_for_backward(x)
        return gc.from_numpy(x.detach().numpy() ** self.power)

    def backward(self, g):
        (x,) = self.saved_tensors
        return gc.from_numpy(self.power * x.detach().numpy() ** (self.power - 1) * g.numpy())


def test_instances_of_functions():
    compiled = gc.compile(lambda x: Instance(2)(x).sum())
    x = gc.tensor([1.0, 3.0], requires_grad=True)
    for _ in range(2):
        x.grad = None
        compiled(x).backward()
        assert x.grad.tolist() == [2, 6]


def test_functions_see_the_values_of_each_call():
    seen = []

    @gc.opaque(results=lambda x: x)
    def look(x):
        seen.append(x.tolist())
        return x + len(seen)

    compiled = gc.compile(lambda x: look(x * 2) * 10)
    assert [compiled(gc.tensor([float(i)])).item() for i in range(3)] == [10, 40, 70]
    assert seen == [[0], [2], [4]]
    assert look(gc.tensor([5.0])).item() == 9, "in eager mode it is the function itself"


def test_results_are_learned_from_a_run_on_zeros():
    @gc.opaque
    def parts(x, scale, *, names):
        return {"sum": x.detach().numpy().sum() * scale, names[0]: [x.argmax(), x.numpy().astype(np.int32)]}

    x = gc.tensor([[1.0, 5.0], [2.0, 3.0]])
    found = gc.compile(lambda x: parts(x, 2.0, names=("rest",)))(x)
    assert found["sum"].item() == 22 and found["rest"][0].item() == 1
    assert found["rest"][1].dtype is gc.int32 and found["rest"][1].tolist() == [[1, 5], [2, 3]]


def test_functions_that_cannot_run_on_zeros_need_results():
    @gc.opaque
    def inverse(x):
        return np.linalg.inv(x.numpy())

    with pytest.raises(TraceError, match=r"was run on zeros[\s\S]*LinAlgError[\s\S]*results="):
        gc.compile(inverse)(gc.eye(3))
    known = gc.opaque(lambda x: np.linalg.inv(x.numpy()), results=lambda x: x)
    np.testing.assert_allclose(gc.compile(known)(gc.eye(3) * 2).numpy(), np.eye(3) / 2)


def test_order_of_calls_is_that_of_the_function():
    seen = []
    first = gc.opaque(lambda x: seen.append("first"), results=lambda x: None)
    second = gc.opaque(lambda x: seen.append("second"), results=lambda x: None)

    @gc.compile
    def f(x):
        second(x)
        first(x.sum())
        second(x * 2)
        return x

    for _ in range(3):
        f(gc.ones(3))
    assert seen == ["second", "first", "second"] * 3


def test_gradients_go_through_operations_of_graphc():
    @gc.opaque(results=lambda x: x)
    def scaled(x):
        factor = 2.0 if x.sum().item() > 0 else 3.0
        return x * factor

    compiled = gc.compile(lambda x: (scaled(x) ** 2).sum())
    for start, factor in ((1.0, 4.0), (-1.0, 9.0)):
        x = gc.tensor([start, start], requires_grad=True)
        compiled(x).backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * factor * x.detach().numpy())


def test_errors_are_those_of_the_function():
    calls = []

    @gc.opaque(results=lambda x: x)
    def check(x):
        calls.append(1)
        if x.max().item() > 1:
            raise LookupError("too large")
        return x

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", gc.zeros(()))

        def forward(self, x):
            self.count += 1
            return check(x) + self.count

    model = Counting()
    compiled = gc.compile(model)
    assert compiled(gc.zeros(2)).tolist() == [1, 1]
    with pytest.raises(LookupError, match="too large"):
        compiled(gc.full((2,), 2.0))
    assert model.count.item() == 1 and len(calls) == 2, "nothing is written, and it is called once"
    assert compiled(gc.zeros(2)).tolist() == [2, 2]


def test_results_of_another_shape_are_refused():
    shapes = [3]
    grow = gc.opaque(lambda x: gc.zeros(shapes[0]), results=lambda x: gc.zeros(3))
    compiled = gc.compile(lambda x: grow(x))
    compiled(gc.ones(1))
    shapes[0] = 4
    with pytest.raises(ShapeError, match=r"returned f32\[4\], the compiled code takes f32\[3\]"):
        compiled(gc.ones(1))


def test_gradients_that_would_be_lost_are_refused():
    weight = gc.ones(2, requires_grad=True)
    hidden = gc.opaque(lambda x: x * weight, results=lambda x: x)
    with pytest.raises(GradientError, match="would not carry the gradient"):
        gc.compile(lambda x: hidden(x).sum())(gc.ones(2, requires_grad=True))


def test_what_cannot_call_python_says_so(tmp_path):
    opaque = gc.opaque(numpy_softplus, results=lambda x: x)
    with pytest.raises(TraceError, match=r"numpy_softplus runs in Python"):
        gc.trace(lambda x: opaque(x), gc.ones(2))
    with pytest.raises(TraceError, match=r"numpy_softplus runs in Python"):
        gc.export(lambda x: opaque(x), gc.ones(2), path=str(tmp_path / "m.gcm"))
    with pytest.raises(TraceError, match="a step of a loop"):
        gc.compile(lambda x: gc.scan(lambda h, r: (opaque(r), r), gc.zeros(2), x))(gc.ones(3, 2))


@pytest.mark.parametrize("threads", [1, 2])
def test_with_threads(threads):
    before = gc.get_num_threads()
    gc.set_num_threads(threads)
    try:
        opaque = gc.opaque(lambda x: x.numpy()[:, ::-1].copy(), results=lambda x: x)
        compiled = gc.compile(lambda x: (opaque(gc.exp(x) + 1) @ gc.exp(x).t()).sum(0))
        gc.manual_seed(0)
        x = gc.randn(300, 200) * 0.1
        e = np.exp(x.numpy())
        np.testing.assert_allclose(compiled(x).numpy(), ((e + 1)[:, ::-1] @ e.T).sum(0), rtol=1e-4)
    finally:
        gc.set_num_threads(before)
