"""Eager mode on a device: values, gradients, hooks and optimizers are those of the CPU."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import DeviceError, GradientError
from graphc.nn import functional as F

DEVICE = "cuda-emu"


def same(a: gc.Tensor, b: gc.Tensor, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(a.cpu().detach().numpy(), b.cpu().detach().numpy(), rtol=tolerance, atol=tolerance)


def train(device: str, optimizer: Callable[[Any], Any]) -> tuple[list[float], nn.Module, list[Any]]:
    gc.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Dropout(0.3), nn.Linear(16, 4)).to(device)
    update, placements = optimizer(model.parameters()), []
    model[0].register_forward_pre_hook(lambda m, i: placements.append(("before", i[0].device == device)))
    model[0].register_forward_hook(lambda m, i, o: placements.append(("forward", o.shape)))
    model[2].register_full_backward_hook(lambda m, gi, go: placements.append(("backward", go[0].shape)))
    x, y = gc.randn(32, 8).to(device), gc.randint(0, 4, (32,)).to(device)
    losses = []
    for _ in range(5):
        update.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update.step()
        losses.append(loss.item())
    return losses, model, placements


@pytest.mark.parametrize(
    "optimizer",
    [lambda p: gc.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: gc.optim.AdamW(p, lr=1e-2)],
    ids=["sgd", "adamw"],
)
def test_training_gives_what_it_gives_on_the_cpu(optimizer: Callable[[Any], Any]):
    expected, ours, order = train("cpu", optimizer)
    losses, theirs, placements = train(DEVICE, optimizer)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert placements == order
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert b.device == DEVICE and b.grad is not None and b.grad.device == DEVICE
        same(a, b, 1e-5)


def test_views_share_memory_and_writes_reach_them():
    x = gc.arange(12.0).reshape(3, 4).to(DEVICE)
    view = x.T[1:3]
    view.mul_(2)
    x[0] = 7.0
    expected = gc.arange(12.0).reshape(3, 4)
    expected.T[1:3].mul_(2)
    expected[0] = 7.0
    same(x, expected)
    same(view, expected.T[1:3])
    assert view.stride() == (1, 4) and not view.is_contiguous()


def test_gradients_flow_between_devices():
    x = gc.randn(3, 4, requires_grad=True)
    (x.to(DEVICE).exp() * 2).sum().cpu().backward()
    same(x.grad, 2 * x.detach().exp())
    assert x.grad.device == "cpu"


def test_random_numbers_are_those_of_the_cpu():
    results = []
    for device in ("cpu", DEVICE):
        gc.manual_seed(3)
        results.append((gc.randn(5, device=device), F.dropout(gc.ones(100, device=device), 0.5)))
    for a, b in zip(*results, strict=True):
        assert b.device == DEVICE
        same(a, b, 0)


def test_values_come_to_the_host():
    x = gc.tensor([1.5, -2.0], device=DEVICE)
    assert x.tolist() == [1.5, -2.0] and x[0].item() == 1.5 and bool(x[0] > 1)
    assert repr(x) == "tensor([ 1.5000, -2.0000], device='cuda-emu')"
    assert (x.sum() == gc.tensor(-0.5)).item()
    with pytest.raises(DeviceError, match=r"no numpy array[\s\S]*tensor.cpu\(\)"):
        x.numpy()


def test_new_tensors_lie_where_the_old_ones_do():
    x = gc.zeros(2, 3, device=DEVICE)
    for created in (gc.ones_like(x), x.new_zeros(4), gc.rand_like(x), x.clone(), x.new_tensor([1.0])):
        assert created.device == DEVICE
    assert gc.zeros_like(x, device="cpu").is_cpu


def test_states_go_from_one_device_to_another():
    model, other = nn.Linear(3, 2), nn.Linear(3, 2).to(DEVICE)
    other.load_state_dict(model.state_dict())
    same(other.weight, model.weight, 0)
    assert other.weight.device == DEVICE
    back = other.cpu()
    assert back is other and other.weight.is_cpu


def test_a_gpu_that_is_not_there_is_an_error_that_names_what_is_missing():
    if gc.cuda.is_available():
        pytest.skip("there is one")
    for use in (lambda: gc.zeros(1, device="cuda"), lambda: gc.ones(1).cuda(), lambda: nn.Linear(1, 1).cuda()):
        with pytest.raises(DeviceError):
            use()


def test_operands_on_two_devices_are_refused_but_for_numbers_indices_and_masks():
    x, host = gc.ones(2, device=DEVICE), gc.tensor([1.0, 2.0])
    many = gc.ones(2, 2, device=DEVICE)
    for use in (lambda: x + host, lambda: gc.cat([x, host]), lambda: F.linear(host[None], many)):
        with pytest.raises(DeviceError, match=r"one operand is on cuda-emu, another one on cpu[\s\S]*\.to\("):
            use()
    same(x * gc.tensor(2.0), gc.full((2,), 2.0), 0)
    same(x[gc.tensor([0])], gc.ones(1), 0)
    same(x.masked_fill(gc.tensor([True, False]), 3.0), gc.tensor([3.0, 1.0]), 0)


def test_gradients_on_another_device_are_refused():
    x = gc.ones(2, device=DEVICE, requires_grad=True)
    with pytest.raises(DeviceError, match="grad is on cpu"):
        x.grad = gc.ones(2)
    with pytest.raises(DeviceError, match="gradient 0 is on cpu"):
        (x * 2).backward(gc.tensor([1.0, 2.0]))


def test_gradients_add_up_in_their_memory():
    x = gc.ones(2, device=DEVICE, requires_grad=True)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    same(x.grad, gc.full((2,), 4.0), 0)


def test_hooks_see_gradients_where_their_tensors_are():
    x, gradients = gc.ones(2, requires_grad=True), []
    y = x * 2
    z = y.to(DEVICE)
    for t in (y, z):
        t.register_hook(lambda g: gradients.append(str(g.device)))
    z.sum().backward()
    assert gradients == [DEVICE, "cpu"]


def test_states_of_optimizers_lie_with_their_parameters():
    for make in (gc.optim.Adam, gc.optim.Adagrad, gc.optim.Adafactor, gc.optim.ASGD):
        p = nn.Parameter(gc.ones(2, 2, device=DEVICE))
        optimizer = make([p])
        (p * p).sum().backward()
        optimizer.step()
        devices = {str(t.device) for t in optimizer.state[p].values() if isinstance(t, gc.Tensor) and t.ndim}
        assert devices == {DEVICE}


def test_transforms_stay_on_the_device():
    def f(x: gc.Tensor) -> gc.Tensor:
        return (x.sin() * x).sum()

    x = gc.tensor([0.5, -1.0, 2.0])
    for transform in (gc.func.grad, gc.func.hessian, gc.func.jacfwd):
        result = transform(f)(x.to(DEVICE))
        assert result.device == DEVICE
        same(result, transform(f)(x), 1e-5)


def test_pickles_say_the_device():
    x = gc.tensor([1.0, 2.0], device=DEVICE, requires_grad=True)
    copy = pickle.loads(pickle.dumps(x))
    assert copy.device == DEVICE and copy.requires_grad
    same(copy, x, 0)


def test_anomaly_mode_finds_what_a_device_made():
    x = gc.tensor([0.0], device=DEVICE, requires_grad=True)
    with gc.autograd.set_detect_anomaly(True), pytest.raises(GradientError, match="made a NaN"):
        (x.sqrt() * 0.0).sum().backward()


def test_forced_values_are_copies_on_the_host():
    assert gc.ones(2, device=DEVICE, requires_grad=True).numpy(force=True).tolist() == [1.0, 1.0]


def test_loaded_states_of_optimizers_lie_with_their_parameters():
    model = nn.Linear(2, 2)
    first = gc.optim.Adam(model.parameters())
    model(gc.ones(1, 2)).sum().backward()
    first.step()
    model.to(DEVICE)
    second = gc.optim.Adam(model.parameters())
    second.load_state_dict(first.state_dict())
    model(gc.ones(1, 2, device=DEVICE)).sum().backward()
    second.step()
    assert second.state[model.weight]["exp_avg"].device == DEVICE
