"""``first_nan`` of compiled functions: the errors of training functions, and calls that are like those without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
import graphc.distributed as dist
from graphc import nn
from graphc.distributed.threads import run
from graphc.errors import ArgumentError, NonFiniteError
from graphc.nn import functional as F
from graphc.nn.parallel import DistributedDataParallel


class Root(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.abs().sqrt()


def make_net() -> tuple[nn.Module, gc.optim.AdamW]:
    gc.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), Root(), nn.Linear(8, 1))
    return net, gc.optim.AdamW(net.parameters(), lr=1e-2)


def training(net: nn.Module, optimizer: Any, clip: float | None = None) -> Callable[..., Any]:
    def train(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        return loss

    return train


def batch(rows: int = 4) -> tuple[gc.Tensor, gc.Tensor]:
    random = np.random.default_rng(rows)
    return gc.tensor(random.normal(size=(rows, 6)).astype("f4")), gc.tensor(random.normal(size=(rows, 1)).astype("f4"))


def contents(net: nn.Module, *optimizers: Any) -> list[np.ndarray]:
    states = [t for o in optimizers for state in o.state.values() for t in state.values()]
    return [t.detach().numpy().copy() for t in [*net.state_dict().values(), *states]]


def stops(call: Callable[[], Any], match: str, net: nn.Module, *optimizers: Any) -> None:
    """The call raises NonFiniteError with this message, and writes nothing."""
    before = contents(net, *optimizers)
    with pytest.raises(NonFiniteError, match=match):
        call()
    for old, new in zip(before, contents(net, *optimizers), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("level", [True, "all"])
def test_a_training_function_gives_the_bits_of_a_step_and_stops_where_it_does(level: Any, clip: float | None):
    net, optimizer = make_net()
    train = gc.compile(training(net, optimizer, clip), first_nan=level)
    twin, twin_optimizer = make_net()
    step = gc.compile_step(twin, F.mse_loss, twin_optimizer, clip_norm=clip, first_nan=level)
    x, y = batch()
    assert [train(x, y).item() for _ in range(5)] == [step(x, y).item() for _ in range(5)]
    for one, two in zip(contents(net, optimizer), contents(twin, twin_optimizer), strict=True):
        np.testing.assert_array_equal(one, two)
    bad = x.numpy().copy()
    bad[2, 1] = np.nan
    stops(lambda: train(gc.tensor(bad), y), r"train: step 6: input x is not finite: .* 1 NaN", net, optimizer)
    assert train(x, y).item() == step(x, y).item()


def test_the_message_names_module_line_and_phase():
    net, optimizer = make_net()
    train = gc.compile(training(net, optimizer, 0.5), first_nan=True)
    x, y = batch()
    train(x, y)
    with gc.no_grad():
        net[3].weight.fill_(1e38)
    stops(lambda: train(x, y), r"(?s)forward: .*from .*loss = F\.mse_loss\(net\(x\), y\)", net, optimizer)
    with gc.no_grad():
        net[3].weight.fill_(1.0)
        net[1].weight.fill_(0.0)
        net[1].bias.fill_(0.0)
    stops(lambda: train(x, y), r"made by div in 2 \(Root\), backward", net, optimizer)


def test_clipping_prepares_the_update():
    net, optimizer = nn.Linear(1, 1, bias=False), None
    optimizer = gc.optim.SGD(net.parameters(), lr=0.1)

    @gc.compile(first_nan=True)
    def train(x: Any) -> Any:
        optimizer.zero_grad()
        net(x).sum().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    train(gc.ones(1, 1))
    stops(lambda: train(gc.full((1, 1), 1e30)), r"for weight .*, update: f32\[\] 1 inf|update: .* 1 inf", net)


def test_an_update_that_overflows_is_not_written():
    net, optimizer = make_net()
    train = gc.compile(training(net, optimizer), first_nan="all")
    x, y = batch()
    train(x, y)
    optimizer.param_groups[0]["lr"] = 1e38
    stops(lambda: train(x, y), r"for [03]\.\w+ \(Linear\), update", net, optimizer)


def test_a_forward_pass_after_an_update_is_forward():
    """Two networks: the second loss reads what the first update writes."""
    maker, critic = nn.Linear(4, 6), nn.Linear(6, 1)
    first, second = gc.optim.SGD(maker.parameters(), lr=0.1), gc.optim.SGD(critic.parameters(), lr=0.1)

    @gc.compile(first_nan=True)
    def play(real: Any, noise: Any, factor: Any) -> Any:
        second.zero_grad()
        fake = maker(noise)
        loss = critic(real).mean() - critic(fake.detach()).mean()
        loss.backward()
        second.step()
        first.zero_grad()
        other = (critic(fake).abs() * factor).exp().mean()
        other.backward()
        first.step()
        return loss, other

    real, noise = gc.ones(3, 6), gc.ones(3, 4)
    play(real, noise, gc.tensor(0.1))
    before = [p.detach().numpy().copy() for p in (*maker.parameters(), *critic.parameters())]
    with pytest.raises(NonFiniteError, match=r"play: step 2: .* made by exp, forward"):
        play(real, noise, gc.tensor(1e6))
    for old, new in zip(before, (*maker.parameters(), *critic.parameters()), strict=True):
        np.testing.assert_array_equal(old, new.detach().numpy())


def test_gradients_that_a_function_leaves_are_checked():
    net = nn.Linear(2, 1)
    with gc.no_grad():
        net.weight.fill_(1.0)
        net.bias.fill_(0.0)

    @gc.compile(first_nan=True)
    def gradients(x: Any) -> Any:
        loss = net(x).sqrt().sum()
        loss.backward()
        return loss

    gradients(gc.ones(1, 2))
    left = net.weight.grad.numpy().copy()
    with pytest.raises(NonFiniteError, match=r"gradients: the call: .* made by div, backward"):
        gradients(gc.zeros(1, 2))
    np.testing.assert_array_equal(net.weight.grad.numpy(), left)


def test_updates_that_a_loss_scale_discards_are_no_fault():
    net, optimizer = make_net()
    scaler = gc.amp.GradScaler(init_scale=2.0**80)

    @gc.compile(first_nan=True)
    def train(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    x, y = batch()
    train(x, y)
    with gc.no_grad():
        net[3].bias.fill_(1e18)
    train(x, y)
    assert scaler.get_scale() == 2.0**79
    with gc.no_grad():
        net[3].bias.fill_(1e20)
    stops(lambda: train(x, y), r"forward: .* inf", net, optimizer)


def test_named_sizes_are_evaluated_again():
    net, optimizer = make_net()
    rows = gc.Dim("rows", 2, 64)
    train = gc.compile(training(net, optimizer), first_nan=True, dims={"x": (rows, None), "y": (rows, None)})
    for count in (4, 8):
        train(*batch(count))
    x, y = batch(16)
    bad = y.numpy().copy()
    bad[0] = np.nan
    stops(lambda: train(x, gc.tensor(bad)), "step 3: input y is not finite", net, optimizer)


def test_functions_without_gradients_are_checked_too():
    logarithm = gc.compile(lambda x: x.log(), first_nan=True)
    assert logarithm(gc.ones(2)).tolist() == [0, 0]
    with pytest.raises(NonFiniteError, match=r"the call: .* made by log, forward: .* 2 NaN"):
        logarithm(-gc.ones(2))
    net = gc.compile(nn.Linear(2, 2), first_nan=True)
    with gc.no_grad():
        net(gc.ones(1, 2))
    with pytest.raises(ArgumentError, match=r"(?s)calls backward\(\) itself.*inside no_grad\(\)"):
        net(gc.ones(1, 2))


def test_levels_are_checked():
    with pytest.raises(ArgumentError, match=r'compile: first_nan is 3\n  try    pass True, False or "all"'):
        gc.compile(nn.Linear(1, 1), first_nan=3)


def test_several_processes_are_refused():
    def one(rank: int) -> str:
        net = DistributedDataParallel(nn.Linear(6, 1))
        train = gc.compile(training(net, gc.optim.SGD(net.parameters(), lr=0.1)), first_nan=True)
        with pytest.raises(ArgumentError, match="stops the call of one process") as caught:
            train(*batch())
        dist.barrier()
        return str(caught.value)

    assert len(set(run(2, one))) == 1
