"""Numbers that are not finite are found at the node that makes them, and the step that made them leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.compiled.state_rounds import CALLS
from graphc.errors import NonFiniteError

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
        return all(part in str(caught.value) for part in message)
    for old, new in zip(before, _state(model, step.optimizer), strict=True):
        np.testing.assert_array_equal(old, new)
    return all(part in str(caught.value) for part in message)


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
            held, message = None, ("input", "1 NaN")
        elif kind == "weight":
            path, held = weights[random.integers(len(weights))]
            value, message = random.choice([np.nan, np.inf, -np.inf]), (f"{path} is not finite",)
            # A gate of a cell is 1 for an infinite weight, and all that it leads to is finite.
            calls = CALLS if np.isinf(value) and "cells" in path else 1
        else:
            path, module = faults[random.integers(len(faults))]
            name, value, op, phase = KINDS[kind]
            held, message = getattr(module, name), (f"in {path} (Fault), {phase}", f"by {op} " if op else "")
        kept = None if held is None else held.detach().numpy().copy()
        if held is not None:
            with graphc.no_grad():
                changed = kept.copy()
                changed.flat[random.integers(changed.size)] = value
                held.copy_(graphc.tensor(changed))
        assert _is_found(step, model, batch, message, calls), (number, kind, message)
        if held is not None:
            with graphc.no_grad():
                held.copy_(graphc.tensor(kept))
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
    with pytest.raises(NonFiniteError, match=r"weight is not finite.* update of .*has made it so"):
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
    assert step.loss_scale == 5e37 or step.loss_scale < 1e38


def test_arguments_with_named_sizes_and_accumulation_are_evaluated_again():
    model = nn.Linear(3, 1)
    optimizer = graphc.optim.SGD(model.parameters(), lr=1e-3)
    options = {"first_nan": True, "accumulate": 2}
    rows = graphc.Dim("rows")
    step = graphc.compile_step(model, nn.MSELoss(), optimizer, dims=((rows, 3), (rows, 1)), **options)
    step(graphc.ones(2, 3), graphc.zeros(2, 1))
    with pytest.raises(NonFiniteError, match=r"input .* is not finite: f32\["):
        step(graphc.full((5, 3), np.nan), graphc.zeros(5, 1))
