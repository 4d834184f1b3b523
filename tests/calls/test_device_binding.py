"""Params and states of programs on devices: copies of those of the host are what the tensors are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls.device_binding import DeviceBinding
from graphc.errors import ArgumentError
from graphc.nn import functional as F

DEVICE = "cuda-emu"


def binding(compiled: Any) -> DeviceBinding:
    found = compiled.variants[-1].binding
    assert isinstance(found, DeviceBinding)
    return found


def test_a_copy_is_made_again_at_its_address_after_a_write_and_not_before():
    model = nn.Linear(3, 2)
    compiled, x = gc.compile(model, device=DEVICE), gc.randn(4, 3)
    with gc.no_grad():
        compiled(x)
        first = binding(compiled).arrays()
        copies = [a.get() for a in first]
        compiled(x)
        assert binding(compiled).arrays() is first
        model.weight.mul_(2)
        np.testing.assert_allclose(compiled(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)
        assert binding(compiled).arrays() is first and len(compiled.variants) == 1
    names = [slot.title for slot in binding(compiled).slots]
    changed = [not np.array_equal(a, b.get()) for a, b in zip(copies, first, strict=True)]
    assert changed == ["weight" in name for name in names]


def test_memory_that_was_given_out_is_read_by_each_call():
    model = nn.Linear(3, 2)
    compiled, x = gc.compile(model, device=DEVICE), gc.randn(4, 3)
    with gc.no_grad():
        compiled(x)
        model.bias.detach().numpy()[:] = 7
        np.testing.assert_allclose(compiled(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)
        model.bias.detach().numpy()[:] = 8
        np.testing.assert_allclose(compiled(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)


def test_a_parameter_that_is_replaced_is_copied():
    model = nn.Linear(3, 2)
    compiled, x = gc.compile(model, device=DEVICE), gc.randn(4, 3)
    with gc.no_grad():
        compiled(x)
        model.bias = nn.Parameter(gc.ones(2))
        np.testing.assert_allclose(compiled(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)


def test_what_the_program_writes_is_brought_back_and_counted():
    model = nn.BatchNorm1d(3)
    compiled, x = gc.compile(model, device=DEVICE), gc.randn(8, 3)
    expected = nn.BatchNorm1d(3)
    for _ in range(4):
        before = model.running_mean._version
        compiled(x)
        expected(x)
        assert model.running_mean._version == before + 1
    np.testing.assert_allclose(model.running_var.numpy(), expected.running_var.numpy(), rtol=1e-5, atol=1e-6)
    assert model.num_batches_tracked.item() == 4
    model.reset_running_stats()
    compiled(x)
    assert model.num_batches_tracked.item() == 1


def test_gradients_lie_where_the_tensors_do():
    model, x = nn.Linear(3, 2), gc.randn(4, 3).to(DEVICE).requires_grad_()
    result = gc.compile(model, device=DEVICE)(x)
    result.sum().backward()
    assert result.device == DEVICE and x.grad.device == DEVICE and model.weight.grad.is_cpu
    np.testing.assert_allclose(
        x.grad.cpu().numpy(), np.tile(model.weight.detach().numpy().sum(0), (4, 1)), rtol=1e-5, atol=1e-6
    )


def test_a_parameter_that_is_replaced_between_forward_and_backward_does_not_change_the_gradient():
    model, x = nn.Linear(3, 2), gc.randn(4, 3).requires_grad_()
    old = model.weight
    result = gc.compile(model, device=DEVICE)(x)
    model.weight = nn.Parameter(gc.zeros(2, 3))
    result.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.tile(old.detach().numpy().sum(0), (4, 1)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{"precision": "bf16"}, {"precision": "int8"}, {"freeze": True}])
@pytest.mark.parametrize("place", ["cpu", DEVICE])
def test_weights_that_are_stored_otherwise(options: dict[str, Any], place: str):
    gc.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)), gc.randn(4, 64)
    with gc.no_grad():
        expected = gc.compile(model, **options)(x)
        found = gc.compile(model.to(place), device=DEVICE, **options)(x.to(place))
        np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
        model[0].weight.mul_(0.5)


def test_a_dropout_draws_the_numbers_of_the_cpu():
    x = gc.ones(64)
    gc.manual_seed(3)
    expected = [F.dropout(x, 0.5, True).tolist() for _ in range(4)]
    gc.manual_seed(3)
    compiled = gc.compile(lambda x: F.dropout(x, 0.5, True), device=DEVICE)
    assert [compiled(x).tolist() for _ in range(4)] == expected


def test_a_tensor_hook_inside_is_refused():
    def hooked(x: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
        y = x * w
        y.register_hook(lambda g: g)
        return y.sum()

    x, w = gc.ones(2), gc.ones(2, requires_grad=True)
    with pytest.raises(gc.errors.CompileError, match="calls Python"):
        gc.compile(hooked, device=DEVICE)(x, w)


def test_states_that_share_memory_are_refused():
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            whole = np.zeros(6, np.float32)
            self.register_buffer("a", gc.from_numpy(whole[:4]))
            self.register_buffer("b", gc.from_numpy(whole[2:]))

        def forward(self, x: gc.Tensor) -> gc.Tensor:
            self.a += x
            return self.b + x

    with pytest.raises(ArgumentError, match="share"):
        gc.compile(Two(), device=DEVICE)(gc.ones(4))


def test_the_state_of_an_optimizer_lies_beside_its_parameter():
    model = nn.Linear(3, 2).to(DEVICE)
    optimizer = gc.optim.Adam(model.parameters())
    step = gc.compile_step(model, F.mse_loss, optimizer)
    loss = step(gc.randn(4, 3), gc.randn(4, 2))
    assert loss.device == DEVICE
    assert all(t.device == DEVICE for state in optimizer.state.values() for t in state.values())


def test_second_derivatives_are_there_as_on_the_cpu():
    x = gc.full((3,), 2.0, requires_grad=True)
    y = gc.compile(lambda x: (x * x * x).sum(), device=DEVICE)(x)
    (first,) = gc.autograd.grad(y, x, create_graph=True)
    (second,) = gc.autograd.grad(first.sum(), x)
    assert second.tolist() == [12, 12, 12]


def test_devices_are_told_apart_in_reasons(monkeypatch: pytest.MonkeyPatch, caplog: Any):
    monkeypatch.setenv("GRAPHC_EXPLAIN_RECOMPILES", "1")
    model = nn.Linear(3, 2)
    compiled = gc.compile(model)
    compiled(gc.ones(1, 3))
    before = compiled.variants[0]
    model.to(DEVICE)
    assert not before.binding.holds()
    assert "device cpu -> cuda-emu" in "; ".join(before.why())
