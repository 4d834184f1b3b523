"""Training functions as a user writes them, compiled: gradients of parameters, clipping, several optimizers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import HookError, TraceError
from graphc.nn import functional as F


def network(*sizes):
    layers = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers[:-1]).double()


def largest_difference(first, second):
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return max(float((p.detach() - q.detach()).abs().max().item()) for p, q in pairs)


def batches(count, *shapes):
    gc.manual_seed(7)
    return [[gc.randn(*shape, dtype=gc.float64) for shape in shapes] for _ in range(count)]


def test_a_whole_step_with_dropout_batch_norm_clipping_and_a_schedule():
    def make():
        gc.manual_seed(0)
        layers = nn.Linear(20, 16), nn.ReLU(), nn.Dropout(0.3), nn.BatchNorm1d(16), nn.Linear(16, 5)
        net = nn.Sequential(*layers).double()
        optimizer = gc.optim.AdamW(net.parameters(), lr=1e-2)
        schedule = gc.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

        def train(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            return loss, norm

        return net, optimizer, schedule, train

    eager, compiled = make(), make()
    run = gc.compile(compiled[3])
    labels = gc.tensor([0, 1, 2, 3, 4, 0, 1, 2])
    for number, (x,) in enumerate(batches(8, (8, 20))):
        results = []
        for step, parts in ((eager[3], eager), (run, compiled)):
            gc.manual_seed(number)
            results.append([t.item() for t in step(x, labels)])
            parts[2].step()
        np.testing.assert_allclose(results[1], results[0], rtol=1e-12)
    assert largest_difference(eager[0], compiled[0]) < 1e-12
    np.testing.assert_allclose(compiled[0][3].running_mean.numpy(), eager[0][3].running_mean.numpy(), rtol=1e-12)
    assert len(run.programs) == 1 and compiled[1].step_count == 8
    assert all(p.grad is None for p in compiled[0].parameters())


def test_two_models_with_two_optimizers_in_one_call():
    def make():
        gc.manual_seed(0)
        generator, critic = network(4, 8, 6), network(6, 8, 1)
        first = gc.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.5, 0.999))
        second = gc.optim.RMSprop(critic.parameters(), lr=1e-2)
        ones, zeros = gc.ones(8, 1, dtype=gc.float64), gc.zeros(8, 1, dtype=gc.float64)

        def train(real, noise):
            second.zero_grad()
            fake = generator(noise)
            loss = F.binary_cross_entropy_with_logits
            critic_loss = loss(critic(real), ones) + loss(critic(fake.detach()), zeros)
            critic_loss.backward()
            second.step()
            first.zero_grad()
            generator_loss = loss(critic(fake), ones)
            generator_loss.backward()
            first.step()
            return {"critic": critic_loss, "generator": generator_loss}

        return generator, critic, train

    eager, compiled = make(), make()
    run = gc.compile(compiled[2])
    for real, noise in batches(5, (8, 6), (8, 4)):
        expected, result = eager[2](real, noise), run(real, noise)
        for name, value in expected.items():
            assert abs(result[name].item() - value.item()) < 1e-13
    assert largest_difference(eager[0], compiled[0]) < 1e-13
    assert largest_difference(eager[1], compiled[1]) < 1e-13


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_accumulate_over_calls(set_to_none):
    def make():
        gc.manual_seed(0)
        net = network(6, 8, 1)
        optimizer = gc.optim.AdamW(net.parameters(), lr=1e-2)

        def train(x, y, update):
            loss = F.mse_loss(net(x), y) / 4
            loss.backward()
            if update:
                nn.utils.clip_grad_value_(net.parameters(), 0.01)
                optimizer.step()
                optimizer.zero_grad(set_to_none)
            return loss

        return net, train

    (eager, expected), (net, function) = make(), make()
    run = gc.compile(function)
    for number, (x, y) in enumerate(batches(12, (8, 6), (8, 1))):
        update = number % 4 == 3
        np.testing.assert_allclose(run(x, y, update).item(), expected(x, y, update).item(), rtol=1e-12)
        for p, q in zip(net.parameters(), eager.parameters(), strict=True):
            assert (p.grad is None) is (q.grad is None)
            if p.grad is not None:
                np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-10, atol=1e-15)
    assert largest_difference(eager, net) < 1e-13
    assert len(run.programs) <= 4


def test_gradients_that_nobody_clears_are_kept_as_in_eager_mode():
    def make():
        gc.manual_seed(0)
        net = network(6, 8, 1)
        optimizer = gc.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)

        def train(x, y):
            loss = F.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return net, train

    (eager, expected), (net, function) = make(), make()
    run = gc.compile(function)
    for x, y in batches(4, (8, 6), (8, 1)):
        np.testing.assert_allclose(run(x, y).item(), expected(x, y).item(), rtol=1e-12)
    assert largest_difference(eager, net) < 1e-13
    first, second = net[0].weight.grad, eager[0].weight.grad
    np.testing.assert_allclose(first.numpy(), second.numpy(), rtol=1e-10)


def test_a_backward_pass_alone_sets_gradients():
    net = network(3, 2)
    x = gc.randn(4, 3, dtype=gc.float64)

    @gc.compile
    def gradients(x):
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    for _ in range(3):
        gradients(x)
        results = [p.grad.numpy().copy() for p in net.parameters()]
    net.zero_grad()
    net(x).square().mean().backward()
    for p, array in zip(net.parameters(), results, strict=True):
        np.testing.assert_allclose(array, p.grad.numpy(), rtol=1e-12)


def test_moving_averages_of_weights_are_part_of_the_call():
    def make():
        gc.manual_seed(0)
        net = network(6, 8, 1)
        optimizer = gc.optim.SGD(net.parameters(), lr=0.1)
        averages = gc.optim.swa_utils.get_ema_multi_avg_fn(0.9)
        mean = gc.optim.swa_utils.AveragedModel(net, multi_avg_fn=averages)

        def train(x):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            mean.update_parameters(net)
            return loss

        return mean, train

    (eager, expected), (mean, function) = make(), make()
    run = gc.compile(function)
    for _ in range(4):
        expected(gc.ones(2, 6, dtype=gc.float64))
        run(gc.ones(2, 6, dtype=gc.float64))
    assert largest_difference(eager, mean) < 1e-14
    assert mean.n_averaged.item() == 4 and len(run.programs) == 1


def test_a_trace_that_fails_leaves_everything_as_it_was():
    net = network(3, 2)
    optimizer = gc.optim.Adam(net.parameters(), lr=0.1)
    before = [p.detach().numpy().copy() for p in net.parameters()]

    def train(x):
        net(x).sum().backward()
        optimizer.step()
        return x.sum().item()

    with pytest.raises(TraceError, match="item"):
        gc.compile(train)(gc.ones(1, 3, dtype=gc.float64))
    assert optimizer.step_count == 0 and all(p.grad is None for p in net.parameters())
    for p, array in zip(net.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), array)


def trainer(net, optimizer):
    def train(x):
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return train


def test_a_parameter_that_takes_the_place_of_another_is_not_trained_by_its_optimizer():
    results = []
    for is_compiled in (False, True):
        gc.manual_seed(0)
        net = network(3, 4)
        optimizer = gc.optim.SGD(net.parameters(), lr=0.1)
        train = trainer(net, optimizer)
        run = gc.compile(train) if is_compiled else train
        for number, (x,) in enumerate(batches(4, (5, 3))):
            if number == 2:
                net.load_state_dict({k: v.clone() for k, v in net.state_dict().items()}, assign=True)
            run(x)
        results.append([net[0].weight.detach().numpy(), net[0].weight.grad.numpy()])
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-12)
    np.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-12)


def test_gradients_that_share_memory_are_refused_and_those_that_lie_apart_again_are_not():
    net = network(3, 3)
    scale = nn.Parameter(gc.ones(3, dtype=gc.float64))
    net.register_parameter("scale", scale)
    optimizer = gc.optim.SGD(net.parameters(), lr=0.1)

    def train(x):
        loss = ((net(x) * scale) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    run = gc.compile(train)
    x = gc.rand(4, 3, dtype=gc.float64)
    run(x)
    run(x)
    net[0].bias.grad = scale.grad
    before = scale.detach().numpy().copy()
    with pytest.raises(TraceError, match="share memory"):
        run(x)
    np.testing.assert_array_equal(scale.detach().numpy(), before)
    net[0].bias.grad = scale.grad.clone()
    run(x)
    assert (scale.detach().numpy() != before).all()
    net[0].bias.grad = scale.grad
    net.zero_grad()
    run(x)


def test_a_rate_may_be_a_tensor_and_a_number_again():
    net = network(3, 3)
    optimizer = gc.optim.SGD(net.parameters(), lr=0.1)
    run = gc.compile(trainer(net, optimizer))
    x = gc.rand(4, 3, dtype=gc.float64)
    for rate in (0.1, gc.tensor(0.2, dtype=gc.float64), 0.0, gc.tensor(0.0, dtype=gc.float64), 0.3):
        net.zero_grad()
        optimizer.param_groups[0]["lr"] = rate
        before = net[0].bias.detach().numpy().copy()
        run(x)
        gradient: gc.Tensor = net[0].bias.grad
        np.testing.assert_allclose(net[0].bias.detach().numpy(), before - float(rate) * gradient.numpy(), rtol=1e-12)


def penalised(hook):
    p, q = (nn.Parameter(gc.full((3,), value, dtype=gc.float64)) for value in (2.0, 1.5))
    p.register_hook(hook)

    def train(x):
        loss = (p * p * q * x).sum()
        (gradient,) = gc.autograd.grad(loss, [p], create_graph=True)
        loss = loss + (gradient * gradient).sum()
        loss.backward()
        return loss

    return train, p, q


def test_hooks_of_parameters_take_part_in_second_derivatives_or_are_refused():
    x = gc.ones(3, dtype=gc.float64)
    with pytest.raises(TraceError, match="differentiated again"):
        gc.compile(penalised(lambda g: g * 0.5)[0])(x)
    results = []
    for make in (gc.compile, lambda f: f):
        train, p, q = penalised(gc.hooks.traced(lambda g: g * 0.5))
        results.append([make(train)(x).item(), *p.grad.tolist(), *q.grad.tolist()])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)
    assert results[0] == [45.0] + [7.5] * 3 + [16.0] * 3


def hooked(mark, rule):
    """A network whose hooks after accumulation step an optimizer for each parameter, and the body of its loop."""
    gc.manual_seed(0)
    net = network(6, 8, 1)
    optimizers = {p: rule([p]) for p in net.parameters()}

    def step(param):
        optimizers[param].step()
        optimizers[param].zero_grad()

    for param in net.parameters():
        param.register_post_accumulate_grad_hook(mark(step))

    def train(x, y):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        return loss

    return net, optimizers, train


@pytest.mark.parametrize("rule", [lambda p: gc.optim.SGD(p, lr=0.1, momentum=0.9), gc.optim.Adam])
def test_a_traced_hook_after_accumulation_steps_an_optimizer(rule):
    eager, _, loop = hooked(lambda hook: hook, rule)
    compiled, optimizers, train = hooked(gc.hooks.traced, rule)
    run = gc.compile(train)
    for x, y in batches(4, (4, 6), (4, 1)):
        assert run(x, y).item() == pytest.approx(loop(x, y).item(), rel=1e-12)
    assert largest_difference(eager, compiled) < 1e-12
    assert all(p.grad is None for p in compiled.parameters())
    assert [o.step_count for o in optimizers.values()] == [4] * 4


@pytest.mark.parametrize("native", [False, True])
def test_a_hook_after_accumulation_in_python_writes_nothing_to_its_parameter(native):
    net, optimizers, train = hooked(lambda hook: hook, lambda p: gc.optim.SGD(p, lr=0.1, momentum=0.9))
    for optimizer in optimizers.values():
        optimizer.native = native
    before = [p.detach().numpy().copy() for p in net.parameters()]
    (batch,) = batches(1, (4, 6), (4, 1))
    with pytest.raises(HookError, match=r"(?s)cannot be written to.*register graphc\.hooks\.traced\(hook\)"):
        gc.compile(train)(*batch)
    for old, param in zip(before, net.parameters(), strict=True):
        np.testing.assert_array_equal(old, param.detach().numpy())
    train(*batch)  # parameters can be written to again
