"""Monitors: what hooks see is right, nothing changes, and closing leaves no hook behind."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.monitor import Monitor, Writer


class Memory(Writer):
    def __init__(self):
        self.scalars: dict[tuple[str, int], float] = {}
        self.tables: dict[tuple[str, int], object] = {}
        self.images: dict[tuple[str, int], np.ndarray] = {}
        self.flushes = 0
        self.closed = 0

    def scalar(self, name, value, step):
        self.scalars[name, step] = value

    def histogram(self, name, value, step):
        self.tables[name, step] = value

    def image(self, name, value, step):
        self.images[name, step] = value

    def flush(self):
        self.flushes += 1

    def close(self):
        self.closed += 1


def make() -> nn.Module:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


X = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)


def test_activations_and_gradients():
    model, memory = make(), Memory()
    hidden = model[1](model[0](gc.tensor(X)))
    with Monitor(model, memory, histograms=True) as monitor:
        loss = (model(gc.tensor(X)) ** 2).sum()
        loss.backward()
        monitor.step(loss=loss, rate=0.5)
    values = hidden.detach().numpy()
    seen = {name: value for (name, step), value in memory.scalars.items() if step == 0}
    assert seen["1 (ReLU)/mean"] == pytest.approx(values.mean(), rel=1e-5)
    assert seen["1 (ReLU)/std"] == pytest.approx(values.std(), rel=1e-5)
    assert seen["1 (ReLU)/zeros"] == pytest.approx((values == 0).mean())
    assert seen["0.weight/gradient"] == pytest.approx(np.linalg.norm(model[0].weight.grad.numpy()), rel=1e-5)
    assert seen["2 (Linear)/gradient"] == pytest.approx(
        np.linalg.norm(2 * model(gc.tensor(X)).detach().numpy()), rel=1e-5
    )
    assert (seen["loss"], seen["rate"]) == (pytest.approx(loss.item()), 0.5)
    assert memory.tables["1 (ReLU)/values", 0].count == values.size
    assert ("0.weight/gradient values", 0) in memory.tables and ("0 (Linear)/values", 0) in memory.tables
    assert not memory.scalars.keys() & memory.tables.keys()
    assert (memory.flushes, memory.closed) == (1, 1)


def test_the_model_computes_what_it_would_without():
    results = []
    for watched in (False, True):
        model = make()
        monitor = Monitor(model, Memory(), histograms=True) if watched else None
        with gc.hooks.strict():
            y = model(gc.tensor(X))
            y.sum().backward()
        results.append([y.detach().numpy(), *(p.grad.numpy() for p in model.parameters())])
        if monitor:
            monitor.close()
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_closing_leaves_no_hook():
    model = make()
    monitor = Monitor(model, Memory())
    monitor.close()
    monitor.close()
    assert not any(m._forward_hooks for m in model.modules())
    assert not any(p._hooks for p in model.parameters())


def test_every_other_step():
    model, memory = make(), Memory()
    monitor = Monitor(model, memory, every=3)
    for i in range(7):
        model(gc.tensor(X)).sum().backward()
        monitor.step(loss=i)
    assert sorted(step for name, step in memory.scalars if name == "0 (Linear)/mean") == [0, 3, 6]
    assert sorted(step for name, step in memory.scalars if name == "0.bias/gradient") == [0, 3, 6]
    assert sorted(step for name, step in memory.scalars if name == "loss") == list(range(7))


def test_chosen_names():
    memory = Memory()
    model = nn.Sequential(make(), nn.Tanh())
    with Monitor(model, memory, names=["0.*", "0"], classes=False) as monitor:
        model(gc.tensor(X)).sum().backward()
        monitor.step()
    modules = {name.rpartition("/")[0] for name, _ in memory.scalars}
    assert modules == {"0", "0.0", "0.1", "0.2", "0.0.weight", "0.0.bias", "0.2.weight", "0.2.bias"}


def test_infinite_values_are_counted_apart():
    memory = Memory()
    model = nn.ReLU()
    with Monitor(model, memory) as monitor:
        model(gc.tensor([1.0, float("inf"), float("nan")]))
        monitor.step()
    assert memory.scalars["ReLU/values/nonfinite", 0] >= 1
    assert memory.scalars["ReLU/mean", 0] == 1.0


def test_several_calls_and_several_outputs():
    class Pair(nn.Module):
        def forward(self, x):
            return x, {"double": x * 2}

    memory = Memory()
    model = Pair()
    with Monitor(model, memory) as monitor:
        model(gc.ones(2))
        model(gc.ones(2) * 3)
        monitor.step()
    assert memory.scalars["Pair.0/mean", 0] == 2.0
    assert memory.scalars["Pair.1/mean", 0] == 4.0


def test_traces_are_not_disturbed():
    model, memory = make(), Memory()
    with Monitor(model, memory) as monitor:
        gc.trace(model, gc.tensor(X))
        monitor.step()
    assert not memory.scalars


def test_numbers_histograms_and_images_of_the_user():
    memory = Memory()
    with Monitor(make(), memory) as monitor:
        monitor.histogram("weights", gc.ones(4))
        monitor.image("digit", gc.zeros(1, 3, 3))
        monitor.scalar("one", gc.tensor([[1.5]]))
        with pytest.raises(ArgumentError, match="is not a number"):
            monitor.scalar("two", gc.ones(2))
    assert memory.tables["weights", 0].count == 4
    assert memory.images["digit", 0].shape == (3, 3, 3)
    assert memory.scalars["one", 0] == 1.5


def test_wrong_arguments():
    with pytest.raises(ArgumentError):
        Monitor(lambda x: x)
    with pytest.raises(ArgumentError):
        Monitor(make(), every=0)


@pytest.mark.parametrize("kind", ["compile", "compile_step"])
def test_compiled_code_is_watched_as_eager_code(kind):
    def run(kind):
        model, memory = make(), Memory()
        optimizer, loss_of = gc.optim.SGD(model.parameters(), lr=0.1), nn.MSELoss()
        step = gc.compile_step(model, loss_of, optimizer)
        call = gc.compile(model) if kind == "compile" else model
        with Monitor(model, memory, every=2, classes=True, histograms=True) as monitor:
            for _ in range(4):
                x, y = gc.randn(5, 3), gc.randn(5, 2)
                if kind == "compile_step":
                    loss = step(x, y)
                else:
                    optimizer.zero_grad()
                    loss = loss_of(call(x), y)
                    loss.backward()
                    optimizer.step()
                monitor.step(loss=loss)
        return memory

    expected, found = run("eager"), run(kind)
    assert ("0 (Linear)/gradient", 2) in expected.scalars
    assert expected.scalars.keys() == found.scalars.keys()
    assert expected.tables.keys() == found.tables.keys()
    for key, value in expected.scalars.items():
        assert found.scalars[key] == pytest.approx(value, rel=1e-4, abs=1e-6)


def test_compiled_steps_tell_writers_what_eager_mode_tells():
    found = []
    for compiled in (False, True):
        model, memory = make(), Memory()
        optimizer = gc.optim.SGD(model.parameters(), lr=0.0)
        step = gc.compile_step(model, lambda out, y: ((out - y) ** 2).sum(), optimizer)
        with Monitor(model, memory, histograms=True, classes=True) as monitor:
            for _ in range(2):
                if compiled:
                    step(gc.tensor(X), gc.zeros(5, 2))
                else:
                    (model(gc.tensor(X)) ** 2).sum().backward()
                    model.zero_grad()
                monitor.step()
        found.append(memory)
    eager, native = found
    assert native.scalars.keys() == eager.scalars.keys() and "0 (Linear)/mean" in {name for name, _ in native.scalars}
    for name, value in eager.scalars.items():
        assert native.scalars[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name
    assert native.tables.keys() == eager.tables.keys() and eager.tables
    for name, table in eager.tables.items():
        np.testing.assert_allclose(native.tables[name].edges, table.edges, rtol=1e-4, atol=1e-6)
        assert (native.tables[name].count, native.tables[name].dropped) == (table.count, table.dropped)
        assert native.tables[name].total == pytest.approx(table.total, rel=1e-4, abs=1e-5)
        assert native.tables[name].squares == pytest.approx(table.squares, rel=1e-4)


def test_steps_between_tell_nothing_in_compiled_code():
    model, memory = make(), Memory()
    optimizer = gc.optim.SGD(model.parameters(), lr=0.0)
    step = gc.compile_step(model, lambda out, y: ((out - y) ** 2).sum(), optimizer)
    with Monitor(model, memory, every=3) as monitor:
        for _ in range(4):
            step(gc.tensor(X), gc.zeros(5, 2))
            monitor.step()
    assert sorted(step for name, step in memory.scalars if name == "0.weight/gradient") == [0, 3]


def test_what_is_not_finite_is_counted_and_left_out_of_the_means():
    memory, model = Memory(), nn.Sequential(nn.ReLU())
    with Monitor(model, memory, classes=False) as monitor:
        model(gc.tensor([1.0, float("nan"), 3.0]))
        model(gc.tensor([5.0, 5.0, 5.0]))
        monitor.step()
        model(gc.tensor([float("inf"), float("nan")]))
        monitor.step()
    assert memory.scalars == {
        ("0/values/nonfinite", 0): 1.0,
        ("0/mean", 0): 3.5,
        ("0/std", 0): 0.5,
        ("0/zeros", 0): 0.0,
        ("0/values/nonfinite", 1): 2.0,
    }
