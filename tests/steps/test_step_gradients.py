"""Limits, sums and the loss scale in compiled steps, against eager loops."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn, optim
from graphc.errors import ArgumentError
from graphc.nn import functional as F
from tests.steps.step_loops import batch, both, classifier, difference

SETTINGS = {
    "value, then norm": {"clip_value": 0.05, "clip_norm": 0.1},
    "three micro-batches and a norm": {"accumulate": 3, "clip_norm": 0.3},
    "a scale": {"loss_scale": 1024.0},
    "all": {"accumulate": 2, "clip_norm": 0.3, "clip_value": 0.05, "ema": 0.9, "loss_scale": "dynamic"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_training_is_that_of_the_eager_loop(name):
    settings = SETTINGS[name]
    model, twin, step, average = both(lambda p: optim.AdamW(p, lr=0.02), **settings)
    assert difference(model, twin) < 1e-12
    assert (average is not None) == ("ema" in settings)
    if average is not None:
        assert difference(average, step.ema) < 1e-12 and step.ema.n_averaged.item() == 6
    assert len(step.graphs) == (1 if settings.get("accumulate", 1) == 1 else 2)


def test_gradients_and_their_norm_are_given_where_they_are_asked_for():
    model = classifier()
    graphc.manual_seed(1)
    F.cross_entropy(model(batch(0)[0]), batch(0)[1]).backward()
    expected = [p.grad.numpy().copy() for p in model.parameters()]
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1).item()
    limited = [p.grad.numpy().copy() for p in model.parameters()]
    for more, wanted in (({}, expected), ({"clip_norm": 0.1}, limited)):
        twin = classifier()
        optimizer = optim.SGD(twin.parameters(), lr=0.1)
        step = graphc.compile_step(twin, F.cross_entropy, optimizer, grads=True, grad_norm=True, **more)
        graphc.manual_seed(1)
        step(*batch(0))
        assert step.last_grad_norm.item() == pytest.approx(norm, rel=1e-12)
        for p, g in zip(twin.parameters(), wanted, strict=True):
            np.testing.assert_allclose(p.grad.numpy(), g, rtol=1e-12, atol=1e-15)
    plain = graphc.compile_step(twin, F.cross_entropy, optimizer)
    plain(*batch(0))
    assert plain.last_grad_norm is None


def test_accumulation_has_one_program_that_adds_up_and_one_that_updates():
    model = classifier()
    step = graphc.compile_step(model, F.cross_entropy, optim.SGD(model.parameters(), lr=0.1), accumulate=2)
    before = [p.detach().clone() for p in model.parameters()]
    step(*batch(0))
    assert all(p.equal(q) for p, q in zip(model.parameters(), before, strict=True))
    step(*batch(1))
    assert not any(p.equal(q) for p, q in zip(model.parameters(), before, strict=True))
    assert sorted(program.training.step.updates for program in step._compiled.variants) == [False, True]


def test_hooks_of_the_optimizer_run_at_updates_only():
    model = classifier()
    optimizer, seen = optim.SGD(model.parameters(), lr=0.1), []
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    step = graphc.compile_step(model, F.cross_entropy, optimizer, accumulate=3)
    for i in range(7):
        step(*batch(i))
    assert len(seen) == optimizer.step_count == 2


class Overflow(nn.Module):
    """A loss whose gradient is infinite when ``x`` is."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(graphc.ones(3))

    def forward(self, x):
        return (self.weight * x).sum()


def test_a_dynamic_scale_leaves_updates_out_and_follows():
    model = Overflow()
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    rule = graphc.DynamicScale(start=16.0, growth_interval=2)
    step = graphc.compile_step(model, None, optimizer, loss_scale=rule, ema=0.5)
    good, bad = graphc.ones(3), graphc.tensor([1.0, float("inf"), 1.0])
    scales = []
    for x in (good, bad, good, good, good):
        before = model.weight.detach().clone(), dict(optimizer.state_dict()["state"].get(0, {}))
        counts = before[1]["step"].item() if before[1] else 0
        step(x)
        scales.append(step.loss_scale)
        moved = not model.weight.equal(before[0])
        assert moved is (x is good)
        assert optimizer.state_dict()["state"][0]["step"].item() == counts + moved
    assert scales == [16.0, 8.0, 8.0, 16.0, 16.0]
    assert step.ema.n_averaged.item() == 5 and bool(graphc.isfinite(step.ema.module.weight).all())


def test_a_scale_keeps_gradients_that_f32_would_lose():
    moved = []
    for scale in (None, 2.0**60):
        model = Overflow()
        optimizer = optim.SGD(model.parameters(), lr=1.0)
        step = graphc.compile_step(model, lambda o: (o * 1e-30) * 1e-20, optimizer, loss_scale=scale, grads=True)
        step(graphc.full((3,), 1e15))
        moved.append(model.weight.grad[0].item())
    assert moved[0] == 0.0 and moved[1] == pytest.approx(1e-35, rel=1e-5)


def test_numbers_of_a_group_of_two_element_types_are_those_of_eager_mode():
    def make() -> list[nn.Parameter]:
        return [nn.Parameter(graphc.ones(3)), nn.Parameter(graphc.ones(3, dtype=graphc.float64))]

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = make()

        def forward(self, x):
            return (self.a.double() * self.b * x).sum()

    models = Two(), Two()
    optimizers = [optim.AdamW(m.parameters(), lr=0.0123) for m in models]
    x = graphc.tensor([1.0, 0.5, 0.25], dtype=graphc.float64)
    step = graphc.compile_step(models[0], None, optimizers[0])
    for _ in range(5):
        step(x)
        optimizers[1].zero_grad()
        models[1](x).backward()
        optimizers[1].step()
    np.testing.assert_allclose(models[0].b.detach().numpy(), models[1].b.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(models[0].a.detach().numpy(), models[1].a.detach().numpy(), rtol=1e-6)


def test_a_rate_that_begins_at_0_makes_no_second_program():
    model = classifier()
    optimizer = optim.AdamW(model.parameters(), lr=0.1)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(i / 3, 1.0))
    step = graphc.compile_step(model, F.cross_entropy, optimizer)
    before = model[0].weight.detach().clone()
    step(*batch(0))
    assert model[0].weight.equal(before)
    schedule.step()
    step(*batch(1))
    assert len(step.graphs) == 1 and not model[0].weight.equal(before)


def test_an_update_that_would_forget_a_gradient_is_refused():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 1), nn.Linear(2, 1)

        def forward(self, x, both):
            return self.a(x).sum() + (self.b(x).sum() if both else 0.0)

    model = Two()
    step = graphc.compile_step(model, None, optim.SGD(model.parameters(), lr=0.1), accumulate=2)
    x = graphc.ones(1, 2)
    step(x, False)
    step(x, True)
    step(x, True)
    before = model.a.weight.detach().clone()
    with pytest.raises(ArgumentError, match="2 parameters on which the loss of this one"):
        step(x, False)
    assert model.a.weight.equal(before)
    step(x, True)
    assert not model.a.weight.equal(before)
