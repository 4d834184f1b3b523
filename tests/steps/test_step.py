"""Compiled training steps against eager training."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc import nn, optim
from graphc.errors import ArgumentError, GradientError, HookError, ShapeError
from graphc.guards.facts import Account
from graphc.guards.watch_words import layout
from tests.native import target_or_skip


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 16)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.25)
        self.fc2 = nn.Linear(16, 3)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.norm(self.fc1(x)))))


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-2),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "adamw": lambda p: optim.AdamW(p, lr=0.01, weight_decay=0.1),
}


def batch(seed: int = 0, rows: int = 8) -> tuple[graphc.Tensor, graphc.Tensor]:
    rng = np.random.default_rng(seed)
    return (
        graphc.from_numpy(rng.standard_normal((rows, 6)).astype(np.float32)),
        graphc.from_numpy(rng.integers(0, 3, rows)),
    )


@pytest.fixture
def net() -> Net:
    graphc.manual_seed(0)
    return Net()


def eager_step(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def assert_same_state(a: nn.Module, b: nn.Module, tolerance: float) -> None:
    for (name, p), q in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        # Before a batch norm a bias has gradient 0 but for rounding, which Adam scales up.
        if name not in ("fc1.bias", "norm.running_mean"):
            np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_training_agrees_with_eager_mode(net, name):
    twin = copy.deepcopy(net)
    first, second = OPTIMIZERS[name](net.parameters()), OPTIMIZERS[name](twin.parameters())
    schedules = [optim.lr_scheduler.ExponentialLR(o, 0.9) for o in (first, second)]
    step = graphc.compile_step(twin, F.cross_entropy, second)
    for i in range(4):
        graphc.manual_seed(i)
        expected = eager_step(net, first, *batch(i))
        graphc.manual_seed(i)
        loss = step(*batch(i))
        assert loss.item() == pytest.approx(expected, rel=1e-4) and not loss.requires_grad
        for schedule in schedules:
            schedule.step()
    assert len(step.graphs) == 1 and second.step_count == 4
    assert_same_state(net, twin, 1e-4)
    assert step.last_output.shape == (8, 3)
    assert twin.fc1.weight.grad is None


def test_step_and_eager_training_can_alternate(net):
    twin = copy.deepcopy(net)
    first, second = optim.Adam(net.parameters(), lr=0.01), optim.Adam(twin.parameters(), lr=0.01)
    step = graphc.compile_step(twin, F.cross_entropy, second)
    for i in range(4):
        graphc.manual_seed(i)
        eager_step(net, first, *batch(i))
        graphc.manual_seed(i)
        if i % 2:
            eager_step(twin, second, *batch(i))
        else:
            step(*batch(i))
    assert_same_state(net, twin, 1e-4)
    saved = copy.deepcopy(second.state_dict())
    second.load_state_dict(saved)
    step(*batch(5))
    assert second.state_dict()["state"][0]["step"].item() == 5


def test_static_numbers_and_the_set_of_parameters_make_variants(net):
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    step = graphc.compile_step(net, F.cross_entropy, optimizer)
    step(*batch())
    optimizer.param_groups[0]["lr"] = 0.01
    step(*batch())
    assert len(step.graphs) == 1
    optimizer.param_groups[0]["nesterov"] = True
    step(*batch())
    assert len(step.graphs) == 2
    optimizer.param_groups[0]["weight_decay"] = 0.1
    step(*batch())
    assert len(step.graphs) == 3
    net.fc1.requires_grad_(False)
    before = net.fc1.weight.clone()
    step(*batch())
    assert len(step.graphs) == 4 and net.fc1.weight.equal(before)
    net.eval()
    step(*batch())
    step(*batch(rows=4))
    assert len(step.graphs) == 6
    net.drop = nn.Tanh().eval()
    step(*batch())
    assert len(step.graphs) == 1 and "tanh" in str(step.graphs[0])


def test_parameter_groups_have_their_own_numbers(net):
    groups = [{"params": net.fc1.parameters(), "lr": 0.0}, {"params": net.fc2.parameters()}]
    groups = [{**g, "params": list(g["params"])} for g in groups]
    before = [p.detach().clone() for p in (net.fc1.weight, net.fc2.weight)]
    step = graphc.compile_step(net, F.cross_entropy, optim.SGD(groups, lr=0.1))
    step(*batch())
    assert net.fc1.weight.equal(before[0]) and not net.fc2.weight.equal(before[1])


def test_several_inputs_and_targets_and_a_loss_with_parameters():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 1)

        def forward(self, x, y, sign):
            return {"out": self.a(x) * sign + y}

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(graphc.ones(()))

        def forward(self, output, target, weight):
            return (((output["out"] - target) ** 2).mean() * weight) * self.scale

    model, loss = Two(), Loss()
    optimizer = optim.SGD([*model.parameters(), *loss.parameters()], lr=0.1)
    step = graphc.compile_step(model, loss, optimizer)
    value = step((graphc.ones(3, 2), graphc.ones(3, 1), -1.0), graphc.zeros(3, 1), 0.5)
    assert loss.scale.item() == pytest.approx(1 - 0.1 * value.item())
    assert step.last_output["out"].shape == (3, 1)
    paths = {v.node.attrs["path"] for v in step.graphs[0].inputs}
    assert {"a.weight", "loss.scale"} <= paths


def test_hooks_of_the_optimizer_run(net):
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    seen = []
    optimizer.register_step_pre_hook(lambda o, a, k: seen.append("pre"))
    optimizer.register_step_post_hook(lambda o, a, k: seen.append("post"))
    graphc.compile_step(net, F.cross_entropy, optimizer)(*batch())
    assert seen == ["pre", "post"]


def test_versions_count_the_writes(net):
    step = graphc.compile_step(net, F.cross_entropy, optim.SGD(net.parameters(), lr=0.1))
    before = net.fc1.weight._version, net.unused.weight._version
    step(*batch())
    assert (net.fc1.weight._version, net.unused.weight._version) == (before[0] + 1, before[1])


def test_wrong_uses(net):
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    with pytest.raises(ShapeError, match=r"the loss must be one number, got f32\[\d+\]\n"):
        graphc.compile_step(net, lambda o, y: o.sum(1), optimizer)(*batch())
    with pytest.raises(GradientError, match="only for a real output, this one is c64"):
        graphc.compile_step(net, lambda o, y: graphc.complex(o.sum(), o.sum()), optimizer)(*batch())
    with pytest.raises(GradientError, match="does not depend on any parameter"):
        graphc.compile_step(net, lambda o, y: o.detach().sum(), optimizer)(*batch())
    with pytest.raises(ArgumentError, match="the optimizer holds no parameter that the loss depends on"):
        graphc.compile_step(net, F.cross_entropy, optim.SGD(Net().parameters(), lr=0.1))(*batch())
    with pytest.raises(
        ArgumentError, match=r"SGD: Net is not an iterable of parameters\n  try    pass model\.parameters"
    ):
        optim.SGD(net, lr=0.1)
    with pytest.raises(ArgumentError, match="no update rule"):
        graphc.compile_step(net, F.cross_entropy, object())
    with pytest.raises(ArgumentError, match="a callable loss"):
        graphc.compile_step(net, "loss", optimizer)


@pytest.mark.parametrize("kind", ["dictionary", "list", "model with several outputs"])
def test_what_a_loss_returns_beside_the_loss_is_returned_too(kind):
    model = nn.Linear(6, 3)

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return {"scores": self.inner(x), "mean": x.mean()}

    def loss(output, y):
        scores = output["scores"] if isinstance(output, dict) else output
        hits = (scores.argmax(1) == y).float().mean()
        result = F.cross_entropy(scores, y)
        return [result, hits] if kind == "list" else (result, {"hits": hits, "name": "train"})

    whole = Pair() if kind.startswith("model") else model
    x, y = batch()
    expected = loss(whole(x), y)
    step = graphc.compile_step(whole, loss, optim.SGD(whole.parameters(), lr=0.1))
    found = step(x, y)
    assert type(found) is type(expected) and len(found) == 2
    assert found[0].item() == pytest.approx(expected[0].item())
    if kind == "list":
        assert found[1].item() == expected[1].item()
    else:
        assert found[1]["hits"].item() == expected[1]["hits"].item() and found[1]["name"] == "train"
    assert step(x, y)[0].item() < found[0].item()
    assert (step.last_output["scores"] if kind.startswith("model") else step.last_output).shape == (8, 3)


def test_a_loss_that_returns_no_loss_first_is_refused():
    model = nn.Linear(6, 3)
    for wrong in (lambda o, y: {"loss": F.cross_entropy(o, y)}, lambda o, y: ("loss", o.sum()), lambda o, y: ()):
        with pytest.raises(ArgumentError, match="where the loss should be"):
            graphc.compile_step(model, wrong, optim.SGD(model.parameters(), lr=0.1))(*batch())


@pytest.mark.skipif(layout().ma_version_tag is None, reason="dictionaries have no version here")
def test_an_unchanged_step_looks_at_no_fact(monkeypatch: pytest.MonkeyPatch):
    net = Net()
    step = graphc.compile_step(net, F.mse_loss, optim.Adam(net.parameters()))
    x, y = graphc.randn(4, 6), graphc.randn(4, 3)
    step(x, y)
    looks: list[Account] = []
    look = Account._look
    monkeypatch.setattr(Account, "_look", lambda account: looks.append(account) or look(account))
    step(x, y)
    looks.clear()
    for _ in range(3):
        step(x, y)
    assert looks == []
    net.fc1.__dict__["other"] = 1
    step(x, y)
    assert len(looks) == (layout().ma_version_tag is not None)


def test_a_group_that_was_replaced_as_a_whole_is_the_one_whose_rate_counts(net):
    x, y = batch()
    other = copy.deepcopy(net)
    optimizers = [optim.SGD(n.parameters(), lr=0.1) for n in (net, other)]
    step = graphc.compile_step(net, F.cross_entropy, optimizers[0])
    for rate in (0.1, 0.5):
        for optimizer in optimizers:
            optimizer.param_groups[0] = {**optimizer.param_groups[0], "lr": rate}
        graphc.manual_seed(1)
        step(x, y)
        graphc.manual_seed(1)
        eager_step(other, optimizers[1], x, y)
        assert_same_state(net, other, 1e-5)


def test_a_parameter_that_the_optimizer_does_not_hold_is_not_updated(net):
    x, y = batch()
    step = graphc.compile_step(net, F.cross_entropy, optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
    step(x, y)
    net.fc2.weight = nn.Parameter(graphc.full((3, 16), 0.25))
    step(x, y)
    assert net.fc2.weight.tolist() == [[0.25] * 16] * 3


def test_hooks_before_the_step_may_look_but_not_write(net):
    x, y = batch()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    step = graphc.compile_step(net, F.cross_entropy, optimizer)
    seen = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(1))
    step(x, y)
    before = net.fc1.weight.detach().clone()

    def write(optimizer, args, kwargs):
        net.fc2.weight.data.mul_(0.5)

    optimizer.register_step_pre_hook(write)
    with pytest.raises(HookError, match="wrote to a tensor of the model"):
        step(x, y)
    assert len(seen) == 2 and graphc.equal(before, net.fc1.weight)


def test_inputs_with_a_history_are_refused_because_gradients_would_not_reach_it(net):
    x, y = batch()
    step = graphc.compile_step(net, F.cross_entropy, optim.SGD(net.parameters(), lr=0.1))
    scale = graphc.ones(1, requires_grad=True)
    with pytest.raises(GradientError, match="an input is the result of an operation with gradients"):
        step(x * scale, y)
    step((x * scale).detach(), y)


@pytest.mark.parametrize("mode", [graphc.no_grad, graphc.inference_mode])
@pytest.mark.parametrize("compiled_before", [False, True])
def test_a_step_where_gradients_are_switched_off_raises_as_backward_does(net, mode, compiled_before):
    x, y = batch()
    step = graphc.compile_step(net, F.cross_entropy, optim.SGD(net.parameters(), lr=0.1))
    if compiled_before:
        step(x, y)
    before = [p.tolist() for p in net.parameters()]
    with mode():
        with pytest.raises(GradientError):
            F.cross_entropy(net(x), y).backward()
        with pytest.raises(GradientError, match=f"inside {mode.__name__}"):
            step(x, y)
    assert [p.tolist() for p in net.parameters()] == before
    step(x, y)
    assert [p.tolist() for p in net.parameters()] != before


def test_an_input_made_in_inference_mode_is_refused_as_in_eager_mode(net):
    with graphc.inference_mode():
        x, y = batch()
        x = x * 2
    step = graphc.compile_step(net, F.cross_entropy, optim.SGD(net.parameters(), lr=0.1))
    with pytest.raises(GradientError, match="made in inference mode"):
        F.cross_entropy(net(x), y).backward()
    with pytest.raises(GradientError, match="made in inference mode"):
        step(x, y)
    step(x.clone(), y.clone())


def test_a_step_inside_of_enable_grad_inside_of_no_grad_trains(net):
    x, y = batch()
    step = graphc.compile_step(net, F.cross_entropy, optim.SGD(net.parameters(), lr=0.1))
    before = [p.tolist() for p in net.parameters()]
    with graphc.no_grad(), graphc.enable_grad():
        step(x, y)
    assert [p.tolist() for p in net.parameters()] != before


def test_a_step_for_a_machine_with_fewer_instructions():
    target_or_skip("avx2")
    model = nn.Linear(6, 3)
    step = graphc.compile_step(model, F.cross_entropy, optim.SGD(model.parameters(), lr=0.1), target="avx2")
    first = float(step(graphc.rand(4, 6), graphc.tensor([0, 1, 2, 0])))
    assert np.isfinite(first)
    (program,) = step._compiled.variants
    assert program.program.manifest.target.cpu == "x86-64-v3"
    assert pickle.loads(pickle.dumps(step)).target == "avx2"


def test_a_step_says_what_it_trains():
    net = nn.Linear(2, 1)
    step = graphc.compile_step(net, F.mse_loss, optim.SGD(net.parameters(), lr=0.1))
    assert repr(step) == "compile_step(Linear_step, SGD; 0 programs)"
    step(graphc.ones(1, 2), graphc.ones(1, 1))
    assert repr(step) == "compile_step(Linear_step, SGD; 1 programs)"
