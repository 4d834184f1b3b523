"""Numbers that are not finite are found at the node that makes them, and the step that made them leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.calls.first_nan.state_rounds import CALLS
from graphc.errors import NonFiniteError
from graphc.hooks import tap, tap_gradient

KINDS = {
    # What is injected: the buffer, its value, the op that is to blame, the phase.
    "overflow": ("over", 1000.0, "exp", "forward"),
    "log of 0": ("argument", 0.0, "log", "forward"),
    "log of -1": ("argument", -1.0, "log", "forward"),
    "0 / 0": ("parts", 0.0, "div", "forward"),
    "slope of a root": ("root", 0.0, None, "backward"),
}


class Fault(nn.Module):
    """Returns what it is given as long as nothing is injected."""

    def __init__(self):
        super().__init__()
        for name, value in (("over", 0.0), ("argument", 1.0), ("parts", 1.0), ("root", 1.0)):
            self.register_buffer(name, graphc.tensor(value))

    def forward(self, x):
        root = (self.root + 0.0 * x.mean()).sqrt() - self.root
        return x * self.over.exp() * (self.parts / self.parts) + self.argument.log() + root


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.cells, self.fault, self.head = Fault(), nn.LSTM(4, 6), Fault(), nn.Linear(6, 1)

    def forward(self, x):
        return self.head(self.fault(self.cells(self.first(x))[0])[-1])


def perceptron():
    layers = [layer for _ in range(4) for layer in (nn.Linear(8, 8), Fault(), nn.LeakyReLU())]
    return nn.Sequential(*layers, nn.Linear(8, 1)), (16, 8)


def convolution():
    block = [nn.Conv2d(2, 4, 3), Fault(), nn.BatchNorm2d(4), nn.ReLU(), Fault()]
    return nn.Sequential(*block, nn.Flatten(), nn.Linear(4 * 16, 1), Fault()), (3, 2, 6, 6)


def recurrent():
    return Recurrent(), (5, 3, 4)


def _batch(random, shape):
    rows = shape[1] if len(shape) == 3 else shape[0]
    return random.normal(size=shape).astype(np.float32), random.normal(size=(rows, 1)).astype(np.float32)


def _state(model, optimizer):
    tensors = [*model.state_dict().values(), *(t for s in optimizer.state.values() for t in s.values())]
    return [t.numpy().copy() for t in tensors]


def _is_found(step, model, batch, message, calls=1):
    """Whether one of the next calls raises, says this, and the first one changes nothing."""
    before = _state(model, step.optimizer)
    with pytest.raises(NonFiniteError) as caught:
        for _ in range(calls):
            step(*map(graphc.tensor, batch))
    if calls > 1:
        return all(text in str(caught.value) for text in message)
    for old, new in zip(before, _state(model, step.optimizer), strict=True):
        np.testing.assert_array_equal(old, new)
    return all(text in str(caught.value) for text in message)


@pytest.mark.parametrize(("make", "count"), [(perceptron, 40), (convolution, 40), (recurrent, 20)])
def test_all_of_100_injections_are_found_where_they_are(make, count):
    graphc.manual_seed(1)
    model, shape = make()
    step = graphc.compile_step(model, nn.MSELoss(), graphc.optim.Adam(model.parameters(), lr=1e-3), first_nan=True)
    random = np.random.default_rng(count)
    faults = [(path, m) for path, m in model.named_modules() if isinstance(m, Fault)]
    weights = list(model.named_parameters())
    for _ in range(20):
        step(*map(graphc.tensor, _batch(random, shape)))
    for number in range(count):
        batch = _batch(random, shape)
        kind = [*KINDS, "weight", "input"][random.integers(len(KINDS) + 2)]
        message: tuple[str, ...]
        calls = 1
        if kind == "input":
            batch[0].flat[random.integers(batch[0].size)] = np.nan
            target_tensor, message = None, ("input", "1 NaN")
        elif kind == "weight":
            path, target_tensor = weights[random.integers(len(weights))]
            value, message = random.choice([np.nan, np.inf, -np.inf]), (f"{path} is not finite",)
            # A gate of a cell is 1 for an infinite weight, and all that it leads to is finite.
            calls = CALLS if np.isinf(value) and "cells" in path else 1
        else:
            path, module = faults[random.integers(len(faults))]
            name, value, op, phase = KINDS[kind]
            target_tensor, message = getattr(module, name), (f"in {path} (Fault), {phase}", f"by {op} " if op else "")
        values_before = None if target_tensor is None else target_tensor.detach().numpy().copy()
        if target_tensor is not None:
            with graphc.no_grad():
                changed = values_before.copy()
                changed.flat[random.integers(changed.size)] = value
                target_tensor.copy_(graphc.tensor(changed))
        assert _is_found(step, model, batch, message, calls), (number, kind, message)
        if target_tensor is not None:
            with graphc.no_grad():
                target_tensor.copy_(graphc.tensor(values_before))
        step(*map(graphc.tensor, _batch(random, shape)))


def test_masks_of_infinities_are_no_fault():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.scores = nn.Linear(4, 4)
            self.register_buffer("mask", graphc.tensor(np.triu(np.full((4, 4), -np.inf, np.float32), 1)))

        def forward(self, x):
            masked = self.scores(x) + self.mask
            return masked.softmax(-1) @ x, masked

    model = Attention()
    optimizer = graphc.optim.SGD(model.parameters(), lr=0.1)
    step = graphc.compile_step(model, lambda out, y: ((out[0] - y) ** 2).mean(), optimizer, first_nan=True)
    for _ in range(3):
        step(graphc.randn(4, 4), graphc.randn(4, 4))
    with graphc.no_grad():
        model.mask.fill_(-np.inf)
    with pytest.raises(NonFiniteError, match=r"forward: f32\[4,4\].* 16 NaN"):
        step(graphc.randn(4, 4), graphc.randn(4, 4))


def test_a_learning_rate_and_an_update_that_overflow_are_named():
    model = nn.Linear(3, 1)
    optimizer = graphc.optim.SGD(model.parameters(), lr=0.1)
    step = graphc.compile_step(model, nn.MSELoss(), optimizer, first_nan=True)
    batch = graphc.ones(2, 3), graphc.zeros(2, 1)
    step(*batch)
    optimizer.param_groups[0]["lr"] = 1e39
    with pytest.raises(NonFiniteError, match=r"step 2: .*lr.* is not finite"):
        step(*batch)
    optimizer.param_groups[0]["lr"] = 3e38
    with pytest.raises(NonFiniteError, match=r"weight is not finite.* update of .*caused this"):
        for _ in range(2):
            step(100 * batch[0], 100 + batch[1])


def test_an_update_that_overflows_is_not_written():
    model = nn.Linear(3, 1)
    optimizer = graphc.optim.Adam(model.parameters(), lr=0.1)
    step = graphc.compile_step(model, nn.MSELoss(), optimizer, first_nan="all")
    batch = graphc.ones(2, 3), graphc.zeros(2, 1)
    step(*batch)
    before = _state(model, optimizer)
    with pytest.raises(
        NonFiniteError, match=r"step 2: .* made by mul for weight \(Linear\), update: f32\[1,3\] .*3 inf"
    ):
        step(1e10 * batch[0], batch[1])  # squares of the gradients
    for old, new in zip(before, _state(model, optimizer), strict=True):
        np.testing.assert_array_equal(old, new)
    assert np.isfinite(step(*batch).item())


def test_products_that_come_near_the_largest_number_are_no_fault():
    model = nn.Linear(64, 64, bias=False)
    optimizer = graphc.optim.SGD(model.parameters(), lr=1e-36)
    steps = [
        graphc.compile_step(m, lambda out, y: (out * y).sum(), o, first_nan=armed)
        for m, o, armed in ((model, optimizer, True), _copied(model, optimizer))
    ]
    x, y = 1e17 * graphc.ones(2, 64), 1e18 * graphc.ones(2, 64)
    for _ in range(3):
        for step in steps:
            step(x, y)
    for one, two in zip(*(s.model.parameters() for s in steps), strict=True):
        np.testing.assert_allclose(one.detach().numpy(), two.detach().numpy(), rtol=1e-6)


def _copied(model, optimizer):
    other = nn.Linear(64, 64, bias=False)
    other.load_state_dict(model.state_dict())
    return other, graphc.optim.SGD(other.parameters(), lr=optimizer.param_groups[0]["lr"]), False


def test_an_infinity_that_vanishes_is_not_reported():
    model = nn.Sequential(Fault(), nn.Tanh(), nn.Linear(3, 1))
    with graphc.no_grad():
        model[0].argument.fill_(0.0)
    optimizer = graphc.optim.SGD(model.parameters(), lr=0.1)
    step = graphc.compile_step(model, nn.MSELoss(), optimizer, first_nan=True)
    assert np.isfinite(step(graphc.ones(2, 3), graphc.zeros(2, 1)).item())


def test_a_dynamic_loss_scale_may_overflow():
    model = nn.Linear(3, 1)
    optimizer = graphc.optim.SGD(model.parameters(), lr=1e-3)
    scale = graphc.DynamicScale(start=1e38)
    step = graphc.compile_step(model, nn.MSELoss(), optimizer, first_nan=True, loss_scale=scale)
    step(100 * graphc.ones(2, 3), graphc.zeros(2, 1))
    assert step.loss_scale == pytest.approx(5e37)


def test_arguments_with_named_sizes_and_accumulation_are_evaluated_again():
    model = nn.Linear(3, 1)
    optimizer = graphc.optim.SGD(model.parameters(), lr=1e-3)
    options = {"first_nan": True, "accumulate": 2}
    rows = graphc.Dim("rows")
    step = graphc.compile_step(model, nn.MSELoss(), optimizer, dims=((rows, 3), (rows, 1)), **options)
    step(graphc.ones(2, 3), graphc.zeros(2, 1))
    with pytest.raises(NonFiniteError, match=r"input .* is not finite: f32\["):
        step(graphc.full((5, 3), np.nan), graphc.zeros(5, 1))


# ---- Python functions in the step


def _seen(model, calls):
    """Lets a model's modules, gradients and parameters tell when they are reached."""
    for path, module in model.named_modules():
        module.register_forward_hook(lambda *_, path=path: calls.append(f"forward {path}"))
        module.register_full_backward_hook(lambda *_, path=path: calls.append(f"backward {path}"))
    for path, param in model.named_parameters():
        param.register_hook(lambda g, path=path: calls.append(f"gradient {path}"))


def _perceptron():
    graphc.manual_seed(3)
    return nn.Sequential(nn.Linear(8, 16), Fault(), nn.LeakyReLU(), nn.Linear(16, 1))


def test_hooks_are_called_once_where_a_step_is_stopped():
    calls: list[str] = []
    model, random = _perceptron(), np.random.default_rng(0)
    _seen(model, calls)
    step = graphc.compile_step(model, nn.MSELoss(), graphc.optim.Adam(model.parameters(), lr=1e-3), first_nan=True)
    batch = _batch(random, (4, 8))
    step(*map(graphc.tensor, batch))
    usual = list(calls)
    assert len(usual) == 2 * 5 + 4
    for name, value, op, phase in KINDS.values():
        with graphc.no_grad():
            value_before = getattr(model[1], name).item()
            getattr(model[1], name).fill_(value)
        calls.clear()
        assert _is_found(step, model, batch, (f"in 1 (Fault), {phase}", op or ""))
        assert calls == usual
        with graphc.no_grad():
            getattr(model[1], name).fill_(value_before)
    calls.clear()
    step(*map(graphc.tensor, batch))
    assert calls == usual


def test_what_a_hook_makes_once_is_found():
    model, number = _perceptron(), [0]

    def spoil(module, inputs, output):
        number[0] += 1
        return output * np.nan if number[0] == 3 else output * 1.0

    model[0].register_forward_hook(spoil)
    step = graphc.compile_step(model, nn.MSELoss(), graphc.optim.SGD(model.parameters(), lr=0.1), first_nan=True)
    batch = _batch(np.random.default_rng(0), (4, 8))
    for _ in range(2):
        step(*map(graphc.tensor, batch))
    assert _is_found(step, model, batch, ("step 3", "by forward hook of Linear in 0", "64 NaN"))
    assert number == [3]
    assert np.isfinite(step(*map(graphc.tensor, batch)).item())


def test_a_gradient_that_a_hook_spoils_is_found():
    model, spoils = _perceptron(), [False]
    model[3].weight.register_hook(lambda g: g * np.inf if spoils[0] else None)
    step = graphc.compile_step(model, nn.MSELoss(), graphc.optim.SGD(model.parameters(), lr=0.1), first_nan=True)
    batch = _batch(np.random.default_rng(0), (4, 8))
    step(*map(graphc.tensor, batch))
    spoils[0] = True
    assert _is_found(step, model, batch, ("step 2", "by hook of a parameter for 3.weight (Linear)", "inf"))


def test_a_step_that_is_stopped_without_a_reason_goes_on_as_ever():
    messages_of_runs = []
    for armed in (False, True):
        calls: list[str] = []
        graphc.manual_seed(0)
        model = nn.Linear(64, 64, bias=False)
        _seen(model, calls)
        step = graphc.compile_step(
            model,
            lambda out, y: ((out * y).sum(), out.abs().max()),
            graphc.optim.SGD(model.parameters(), lr=1e-36),
            first_nan=armed,
            grad_norm=False,
        )
        for _ in range(3):
            results = step(1e17 * graphc.ones(2, 64), 1e18 * graphc.ones(2, 64))
        messages_of_runs.append([*(r.numpy() for r in results), model.weight.detach().numpy()])
        assert len(calls) == 9
    for one, two in zip(*messages_of_runs, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5)


def test_an_error_of_a_hook_is_that_of_the_step():
    model = _perceptron()

    def fails(*_):
        raise graphc.errors.IndexRangeError("of the hook")

    step = graphc.compile_step(model, nn.MSELoss(), graphc.optim.SGD(model.parameters(), lr=0.1), first_nan=True)
    model[2].register_forward_hook(fails)
    with pytest.raises(graphc.errors.IndexRangeError, match="of the hook"):
        step(graphc.ones(4, 8), graphc.ones(4, 1))


def test_taps_tell_of_the_step_that_is_stopped():
    reports: list[tuple[str, int]] = []

    class Tapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.Linear(3, 4)

        def forward(self, x):
            y = self.cells(x)
            tap(y, lambda statistics: reports.append(("value", statistics.nonfinite)))
            y = tap_gradient(y, lambda statistics: reports.append(("gradient", statistics.nonfinite)))
            return y.log()

    model = Tapped()
    with graphc.no_grad():
        model.cells.bias.fill_(100.0)
    step = graphc.compile_step(model, nn.MSELoss(), graphc.optim.SGD(model.parameters(), lr=1e-6), first_nan=True)
    step(graphc.ones(2, 3), graphc.zeros(2, 4))
    assert sorted(reports) == [("gradient", 0), ("value", 0)]
    reports.clear()
    with graphc.no_grad():
        model.cells.weight.fill_(0.0)
        model.cells.bias.fill_(0.0)
    with pytest.raises(NonFiniteError, match=r"made by log in Tapped, forward"):
        step(graphc.ones(2, 3), graphc.zeros(2, 4))
    assert sorted(reports) == [("gradient", 8), ("value", 0)]


# ---- other steps


def test_an_index_out_of_range_is_no_number():
    model = nn.Linear(3, 4)
    calls: list[str] = []
    _seen(model, calls)
    optimizer = graphc.optim.SGD(model.parameters(), lr=0.1)
    step = graphc.compile_step(model, nn.CrossEntropyLoss(), optimizer, first_nan=True)
    step(graphc.ones(2, 3), graphc.tensor([0, 1]))
    usual, before = len(calls), model.weight.detach().numpy().copy()
    with pytest.raises(graphc.errors.IndexRangeError, match="target 9"):
        step(graphc.ones(2, 3), graphc.tensor([0, 9]))
    assert (model.weight.detach().numpy() == before).all()
    assert usual < len(calls) <= 2 * usual and len([c for c in calls if c.startswith("forward")]) == 2


OPTIONS: dict[str, dict] = {
    "accumulation": {"accumulate": 3},
    "scale": {"loss_scale": 1024.0},
    "limits": {"clip_norm": 1.0, "clip_value": 10.0, "grad_norm": True},
    "other norm": {"clip_norm": 1.0, "norm_type": float("inf")},
    "averages": {"ema": 0.9, "grads": True},
    "bf16": {"precision": "bf16"},
    "memory": {"memory": "100%"},
}


@pytest.mark.sampled(50)
@pytest.mark.parametrize("level", [True, "all"])
@pytest.mark.parametrize("name", OPTIONS)
def test_armed_steps_are_the_same_and_stop(name, level):
    models, steps = [], []
    for armed in (False, level):
        models.append(_perceptron())
        optimizer = graphc.optim.AdamW(models[-1].parameters(), lr=1e-2)
        steps.append(graphc.compile_step(models[-1], nn.MSELoss(), optimizer, first_nan=armed, **OPTIONS[name]))
    random = np.random.default_rng(5)
    for _ in range(7):
        batch = _batch(random, (16, 8))
        losses = [step(*map(graphc.tensor, batch)).item() for step in steps]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for one, two in zip(*(_state(m, s.optimizer) for m, s in zip(models, steps, strict=True)), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)
    for _ in range(3):
        batch = _batch(random, (16, 8))
        batch[0][3, 3] = np.nan
        assert _is_found(steps[1], models[1], batch, ("input", "1 NaN"))
        with graphc.no_grad():
            models[1][1].argument.fill_(0.0)
        batch = _batch(random, (16, 8))
        assert _is_found(steps[1], models[1], batch, ("made by log in 1 (Fault), forward",))
        with graphc.no_grad():
            models[1][1].argument.fill_(1.0)
        assert np.isfinite(steps[1](*map(graphc.tensor, batch)).item())


@pytest.mark.parametrize("kind", [list, dict])
def test_steps_of_several_optimizers(kind):
    model = _perceptron()
    optimizers = [graphc.optim.Adam(m.parameters(), lr=1e-3) for m in (model[0], model[3])]

    def loss(output, y):
        first, second = (output - y).square().mean(), (output - y).abs().mean()
        return {"a": first, "b": second} if kind is dict else first + second

    optimizer_argument = dict(zip("ab", optimizers, strict=True)) if kind is dict else optimizers
    step = graphc.compile_step(model, loss, optimizer_argument, first_nan=True)
    batch = _batch(np.random.default_rng(0), (4, 8))
    step(*map(graphc.tensor, batch))
    with graphc.no_grad():
        model[1].root.fill_(0.0)
    before = [t.numpy().copy() for o in optimizers for s in o.state.values() for t in s.values()]
    with pytest.raises(NonFiniteError, match=r"in 1 \(Fault\), backward"):
        step(*map(graphc.tensor, batch))
    after = [t.numpy() for o in optimizers for s in o.state.values() for t in s.values()]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
