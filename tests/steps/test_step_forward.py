"""Passing of batches to model and loss of a compiled step, and the position of the loss."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest

import graphc
from graphc import nn, optim
from graphc.errors import ArgumentError
from graphc.nn import functional as F


class Language(nn.Module):
    """A model that computes its loss, as nanoGPT does."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, x, y=None, scale=1.0):
        logits = self.inner(x) * scale
        return logits, None if y is None else F.cross_entropy(logits, y)


@dataclass
class Output:
    loss: graphc.Tensor
    logits: graphc.Tensor


FORMS = {
    "tuple": lambda logits, loss: (logits, loss),
    "dictionary": lambda logits, loss: {"logits": logits, "loss": loss},
    "record": lambda logits, loss: Output(loss, logits),
    "loss": lambda logits, loss: loss,
}


def data():
    graphc.manual_seed(0)
    return graphc.randn(5, 4), graphc.randint(0, 3, (5,))


def rate(model):
    return optim.SGD(model.parameters(), lr=0.1)


def after(step, model, *args, **kwargs):
    """The loss, and the weights after one step from the first ones."""
    first = copy.deepcopy(model.state_dict())
    loss = step(*args, **kwargs).item()
    results = [p.detach().numpy().copy() for p in model.parameters()]
    model.load_state_dict(first)
    return loss, results


def assert_same(a, b):
    assert a[0] == pytest.approx(b[0])
    for p, q in zip(a[1], b[1], strict=True):
        np.testing.assert_allclose(p, q, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_the_model_gives_the_loss(form):
    class Model(Language):
        def forward(self, x, y):
            return FORMS[form](*super().forward(x, y))

    graphc.manual_seed(0)
    model, (x, y) = Model(), data()
    plain = graphc.compile_step(model.inner, F.cross_entropy, rate(model))
    step = graphc.compile_step(model, None, rate(model))
    assert_same(after(step, model, x, y), after(plain, model, x, y))
    assert type(step.last_output) is type(model(x, y))


def test_arguments_by_name_and_dictionaries_are_the_same_call():
    graphc.manual_seed(0)
    model, (x, y) = Language(), data()
    step = graphc.compile_step(model, None, rate(model))
    expected = after(step, model, x, y)
    assert_same(after(step, model, x, y=y), expected)
    assert_same(after(step, model, x=x, y=y), expected)
    assert_same(after(step, model, {"x": x, "y": y}), expected)
    assert_same(after(step, model, {"y": y, "x": x, "scale": 1.0}), expected)
    other = graphc.compile_step(model, lambda output, y: F.cross_entropy(output[0], y), rate(model))
    assert_same(after(other, model, {"x": x}, y), expected)
    assert_same(after(other, model, x, y, scale=1.0), expected)
    assert after(step, model, x, y, scale=2.0)[0] != pytest.approx(expected[0])


def test_a_dictionary_that_names_no_parameters_is_one_argument():
    class Model(Language):
        def forward(self, batch):
            return super().forward(batch["ids"], batch["labels"])[1]

    model, (x, y) = Model(), data()
    step = graphc.compile_step(model, None, rate(model))
    before = step({"ids": x, "labels": y}).item()
    assert step({"ids": x, "labels": y}).item() < before and len(step.graphs) == 1


def test_calls_by_position_and_by_name_with_the_same_tensors_are_not_confused():
    class Model(Language):
        def forward(self, first, second=None, more=None):
            second = {} if second is None else second
            return (self.inner(first) * (2.0 if "more" in second else 1.0)).mean() + (0.0 if more is None else 1.0)

    model, (x, _) = Model(), data()
    step = graphc.compile_step(model, None, rate(model))
    values = [step(x, {"more": x}).item() - 0.0, step(x, more=x).item()]
    assert values[1] > values[0] + 0.5 and len(step.graphs) == 2


def test_where_the_loss_is_must_be_clear():
    model, (x, y) = Language(), data()
    with pytest.raises(ArgumentError, match=r"no candidates for the loss\n(.*\n)*  try .*output\[1\]"):
        graphc.compile_step(model, None, rate(model))(x)

    class Two(Language):
        def forward(self, x, y):
            loss = super().forward(x, y)[1]
            return loss, loss * 2

    with pytest.raises(ArgumentError, match="2 candidates for the loss"):
        graphc.compile_step(Two(), None, rate(model))(x, y)


class ActorCritic(nn.Module):
    """A policy and a value of one state, with a body that both share."""

    def __init__(self):
        super().__init__()
        self.body, self.policy, self.value = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x):
        result = self.body(x).tanh()
        return self.policy(result), self.value(result).squeeze(1)

    def own(self):
        return [*self.body.parameters(), *self.policy.parameters()]


def losses(output, action, reward):
    logits, value = output
    chosen = F.log_softmax(logits, 1).gather(1, action.unsqueeze(1)).squeeze(1)
    return {"actor": -(chosen * (reward - value).detach()).mean(), "critic": F.mse_loss(value, reward)}


def test_optimizers_follow_the_losses_of_their_names():
    graphc.manual_seed(0)
    model = ActorCritic().double()
    twin = copy.deepcopy(model)
    eager = {"actor": optim.Adam(model.own(), lr=0.01), "critic": optim.AdamW(model.value.parameters(), lr=0.02)}
    given = {"actor": optim.Adam(twin.own(), lr=0.01), "critic": optim.AdamW(twin.value.parameters(), lr=0.02)}
    step = graphc.compile_step(twin, losses, given, clip_norm=0.5)
    x, action = graphc.randn(9, 4, dtype=graphc.float64), graphc.randint(0, 2, (9,))
    reward = graphc.randn(9, dtype=graphc.float64)
    for _ in range(6):
        expected = losses(model(x), action, reward)
        for name, optimizer in eager.items():
            own = optimizer.param_groups[0]["params"]
            for p, g in zip(own, graphc.autograd.grad(expected[name], own, retain_graph=True), strict=True):
                p.grad = g
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        for optimizer in eager.values():
            optimizer.step()
        result = step(x, action, reward)
        assert result["critic"].item() == pytest.approx(expected["critic"].item(), rel=1e-12)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=1e-10, atol=1e-14)
    assert all(o.step_count == 6 for o in given.values()) and len(step.graphs) == 1


def test_a_parameter_that_only_another_loss_reaches_is_left_alone():
    graphc.manual_seed(0)
    model = ActorCritic()
    held = [*model.own(), *model.value.parameters()]
    before = model.value.weight.detach().clone()
    only = {"actor": optim.SGD(held, lr=0.1, weight_decay=0.5)}
    x, action, reward = graphc.randn(9, 4), graphc.randint(0, 2, (9,)), graphc.randn(9)
    graphc.compile_step(model, losses, only)(x, action, reward)
    assert model.value.weight.equal(before)
    with pytest.raises(ArgumentError, match="the losses 'actor', but the loss returned a dictionary of 'critic'"):
        graphc.compile_step(model, lambda o, a, r: {"critic": r.sum()}, only)(x, action, reward)


def test_optimizers_in_a_list_share_the_loss():
    graphc.manual_seed(0)
    model = ActorCritic()
    twin = copy.deepcopy(model)
    x, action, reward = graphc.randn(9, 4), graphc.randint(0, 2, (9,)), graphc.randn(9)
    total = lambda *given: sum(losses(*given).values())  # noqa: E731
    eager = [optim.SGD(model.own(), lr=0.1), optim.Adam(model.value.parameters(), lr=0.01)]
    given = [optim.SGD(twin.own(), lr=0.1), optim.Adam(twin.value.parameters(), lr=0.01)]
    step = graphc.compile_step(twin, total, given)
    for _ in range(3):
        total(model(x), action, reward).backward()
        for optimizer in eager:
            optimizer.step()
            optimizer.zero_grad()
        step(x, action, reward)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=1e-5, atol=1e-6)
