"""Training steps under a memory budget."""

import pickle

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError, MemoryLimitError

F = nn.functional


class _Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow, self.drop = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(0.2)

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.qkv(self.first(x)).reshape(batch, time, 3, 2, width // 2).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, time, width)
        x = x + self.drop(self.out(y))
        return x + self.drop(self.narrow(F.gelu(self.wide(self.second(x)))))


class _Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(6, 12, num_layers=3, batch_first=True), nn.Linear(12, 5)

    def forward(self, x):
        return self.head(self.lstm(F.gelu(x))[0].tanh()).mean(1)


def _perceptron():
    layers = [layer for _ in range(5) for layer in (nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.3))]
    return nn.Sequential(*layers, nn.Linear(32, 5)), (16, 32)


def _convolutions():
    blocks = [
        layer
        for i in (3, 8, 8)
        for layer in (nn.Conv2d(i, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2))
    ]
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(8 * 64, 5)), (3, 3, 8, 8)


def _transformer():
    return nn.Sequential(_Attention(16), _Attention(16), nn.Flatten(), nn.Linear(16 * 10, 5)), (4, 10, 16)


def _recurrent():
    return _Recurrent(), (4, 12, 6)


MODELS = {"mlp": (_perceptron, 70), "cnn": (_convolutions, 60), "gpt": (_transformer, 50), "lstm": (_recurrent, 85)}


def _trained(make, memory, steps=4):
    graphc.manual_seed(7)
    model, shape = make()
    model = model.to(graphc.float64)
    optimizer = graphc.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = graphc.compile_step(model, nn.CrossEntropyLoss(), optimizer, memory=memory)
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        x = graphc.tensor(rng.standard_normal(shape))
        losses.append(step(x, graphc.tensor(rng.integers(0, 5, shape[0]))).item())
    return step, losses, {name: np.array(value) for name, value in model.state_dict().items()}


@pytest.mark.sampled(50)
@pytest.mark.parametrize("name", MODELS)
def test_training_is_the_same_within_the_budget(name):
    make, share = MODELS[name]
    step, losses, state = _trained(make, None)
    (plan,) = step.plan()
    small, others, other = _trained(make, f"{share}%")
    assert small.plan()[0].arena <= share / 100 * plan.arena
    (report,) = small.memory_report()
    assert report.before == plan.arena and report.after == small.plan()[0].arena and report.again
    assert np.allclose(losses, others, rtol=1e-12)
    for key, value in state.items():
        assert np.allclose(value, other[key], rtol=1e-10, atol=1e-13), key


def test_the_report_names_modules():
    step, *_ = _trained(_transformer, "60%", steps=1)
    (report,) = step.memory_report()
    assert any(part.module.startswith("0") for part in report.again) and any(p.module for p in report.kept)
    assert "computed again" in str(report)


def test_a_budget_that_is_large_enough_changes_nothing():
    step, *_ = _trained(_perceptron, None, steps=1)
    large, *_ = _trained(_perceptron, "1GB", steps=1)
    assert step.plan() == large.plan() and not large.memory_report()[0].again
    assert step.memory_report() == []


def test_a_budget_that_cannot_be_met():
    with pytest.raises(MemoryLimitError, match="the smallest plan found"):
        _trained(_perceptron, 100)


def test_a_budget_is_checked_where_it_is_given_and_survives_pickling():
    with pytest.raises(ArgumentError, match="not a memory budget"):
        _trained(_perceptron, "much")
    model = nn.Linear(2, 2)
    step = graphc.compile_step(model, nn.MSELoss(), graphc.optim.SGD(model.parameters(), lr=0.1), memory="50 %")
    assert pickle.loads(pickle.dumps(step)).options.memory == step.options.memory


def _loops(make, memory, steps=3):
    """A loop over the compiled model, and what forward hands to backward."""
    graphc.manual_seed(7)
    model, shape = make()
    model = model.to(graphc.float64)
    compiled = graphc.compile(model, memory=memory)
    optimizer = graphc.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        x = graphc.tensor(rng.standard_normal(shape))
        optimizer.zero_grad()
        F.cross_entropy(compiled(x), graphc.tensor(rng.integers(0, 5, shape[0]))).backward()
        optimizer.step()
    (variant,) = compiled.variants
    handed = sum(spec.nbytes for spec in variant.program.outputs[len(variant.output_types) :])
    return compiled, handed, {name: np.array(value) for name, value in model.state_dict().items()}


@pytest.mark.sampled(50)
@pytest.mark.parametrize(("name", "share"), [("mlp", 50), ("cnn", 30), ("gpt", 30), ("lstm", 50)])
def test_what_a_compiled_model_keeps_for_backward_is_within_the_budget(name, share):
    make, _ = MODELS[name]
    _, before, state = _loops(make, None)
    compiled, after, other = _loops(make, f"{share}%")
    assert after <= share / 100 * before
    (report,) = compiled.memory_report()
    assert (report.before, report.after) == (before, after) and report.again
    for key, value in state.items():
        assert np.allclose(value, other[key], rtol=1e-10, atol=1e-13), key


def test_residuals_that_cannot_be_met():
    with pytest.raises(MemoryLimitError, match="of values that forward keeps for backward"):
        _loops(_convolutions, 8)


def test_a_training_function_is_within_the_budget():
    def trained(memory):
        graphc.manual_seed(7)
        model = _perceptron()[0].to(graphc.float64)
        optimizer = graphc.optim.SGD(model.parameters(), lr=0.05)

        @graphc.compile(memory=memory)
        def train(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        rng = np.random.default_rng(0)
        batches = [(rng.standard_normal((16, 32)), rng.integers(0, 5, 16)) for _ in range(3)]
        return train, [train(graphc.tensor(x), graphc.tensor(y)).item() for x, y in batches]

    train, losses = trained(None)
    small, others = trained("70%")
    assert np.allclose(losses, others, rtol=1e-12)
    assert small.programs[0].arena <= 0.7 * train.programs[0].arena and small.memory_report()[0].again


def test_a_training_function_that_returns_nothing():
    def trained(memory):
        graphc.manual_seed(7)
        model = _perceptron()[0].to(graphc.float64)
        optimizer = graphc.optim.SGD(model.parameters(), lr=0.05)

        @graphc.compile(memory=memory)
        def train(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

        rng = np.random.default_rng(0)
        for _ in range(3):
            train(graphc.tensor(rng.standard_normal((16, 32))), graphc.tensor(rng.integers(0, 5, 16)))
        return [np.array(p.detach()) for p in model.parameters()]

    assert all(np.allclose(a, b, rtol=1e-10) for a, b in zip(trained(None), trained("75%"), strict=True))


def test_without_gradients_a_budget_changes_nothing():
    model = nn.Linear(3, 3)
    compiled = graphc.compile(model, memory="50%")
    with graphc.no_grad():
        compiled(graphc.ones(2, 3))
    assert compiled.memory_report() == [] and pickle.loads(pickle.dumps(compiled))._memory == "50%"
