"""Compiled functions that read values of a call: segments, paths, gradients, what the world outside changes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.tensors.tensor_base import front
from graphc.tracing.reads import read_flag


def _positive(x: gc.Tensor) -> gc.Tensor:
    """Return the positive elements."""
    count = front().size((x > 0).sum(), x.numel(), "the number of positive elements")
    return x[(x > 0).nonzero_static(size=count)[:, 0]]


def _random(size: int, seed: int) -> gc.Tensor:
    return gc.from_numpy(np.random.default_rng(seed).standard_normal(size).astype(np.float32))


def test_one_path_serves_all_counts() -> None:
    f = gc.compile(lambda x: _positive(x.tanh()) * 2)
    for seed in range(3):
        x = _random(50, seed)
        expected = np.tanh(x.numpy())
        np.testing.assert_allclose(f(x).numpy(), 2 * expected[expected > 0], rtol=1e-5)
    assert f(-gc.ones(50)).shape == (0,)
    assert len(f.programs) == 2
    assert len(f.variants[0].paths) == 1


def test_each_answer_has_a_path_and_shares_the_segment_before_it() -> None:
    f = gc.compile(lambda x: x.sum() if read_flag(x.sum() > 0, "the sign") else x * 2)
    for scale in (1, -1, 2, -2):
        x = gc.full((4,), float(scale))
        np.testing.assert_array_equal(f(x).numpy(), 4 * scale if scale > 0 else np.full(4, 2.0 * scale))
    assert len(f.variants[0].paths) == 2
    assert len(f.variants[0].segments) == 3


def test_a_path_is_traced_again_where_a_size_answers_a_question_otherwise() -> None:
    f = gc.compile(lambda x: _positive(x).sum() if _positive(x).shape[0] > 3 else _positive(x))
    for values in ([1, 2, 3, 4, 5, 6], [1, -2, 3, -4, 5, 6], [1, -2, -3, 4, -5, -6], [-1, 2, 3, 4, 5, -6]):
        x = np.float32(values)
        expected = x[x > 0].sum() if (x > 0).sum() > 3 else x[x > 0]
        np.testing.assert_array_equal(f(gc.from_numpy(x)).numpy(), expected)
    assert len(f.variants[0].paths) == 2


def test_each_try_of_a_trace_asks_about_counts_anew() -> None:
    def two(x: gc.Tensor) -> gc.Tensor:
        found = _positive(x)
        return found * (1 if found.shape[0] > 3 else 10) + gc.ones(2)  # fails for the expected count

    f = gc.compile(two, dims={"x": (gc.Dim("n"),)})
    for values in ([1, 2, -3], [-1, 4, 5, -6]):
        x = np.float32(values)
        np.testing.assert_array_equal(f(gc.from_numpy(x)).numpy(), 10 * x[x > 0] + 1)


def test_gradients_go_through_all_segments() -> None:
    net = gc.nn.Linear(5, 4)
    f = gc.compile(lambda x: _positive(net(x).reshape(-1)).square())
    x = gc.from_numpy(np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)).requires_grad_()
    gradients = []
    for function in (lambda x: net(x).relu().square(), f):
        net.zero_grad()
        x.grad = None
        function(x).sum().backward()
        gradients.append([x.grad.numpy().copy(), net.weight.grad.numpy().copy(), net.bias.grad.numpy().copy()])
    for a, b in zip(*gradients, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_tangents_go_through_python() -> None:
    f, x = gc.compile(lambda x: _positive(x).square()), gc.tensor([3.0, -1.0, 2.0])
    value, tangent = gc.func.jvp(f, (x,), (gc.ones(3),))
    assert (value.tolist(), tangent.tolist()) == ([9, 4], [6, 4])


def test_named_dimensions_and_counts_are_one_path() -> None:
    f = gc.compile(lambda x: _positive(x.exp().log()) + 1, dims={"x": (gc.Dim("n"),)})
    for size in (5, 60, 1):
        x = _random(size, size)
        np.testing.assert_allclose(f(x).numpy(), x.numpy()[x.numpy() > 0] + 1, rtol=1e-4, atol=1e-5)
    assert len(f.programs) == 2


def test_states_are_written_once_and_weights_are_those_of_the_call() -> None:
    norm = gc.nn.BatchNorm1d(3)
    f = gc.compile(lambda x: _positive(norm(x).reshape(-1)))
    x = _random(12, 0).reshape(4, 3)
    with gc.no_grad():
        f(x)
        assert norm.num_batches_tracked.item() == 1
        norm.bias.fill_(100.0)
        assert f(x).shape == (12,)


def test_numbers_among_the_arguments_and_outside_are_those_of_the_call() -> None:
    class Scaled(gc.nn.Module):
        factor = 1.0

        def forward(self, x: gc.Tensor, shift: float) -> gc.Tensor:
            return _positive(x) * self.factor + shift

    module = Scaled()
    f, x = gc.compile(module), gc.tensor([1.0, -1.0])
    for shift, factor in ((1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (3.0, 4.0), (1.0, 2.0)):
        module.factor = factor
        assert f(x, shift).tolist() == [factor + shift]


def test_results_may_be_nested_with_counts_among_them() -> None:
    @gc.compile
    def f(x: gc.Tensor) -> dict[str, object]:
        values = _positive(x)
        return {"values": values, "count": values.shape[0]}

    for values in ([1.0, 2.0, -1.0], [1.0, -2.0, -1.0]):
        result = f(gc.tensor(values))
        assert result["values"].tolist() == [v for v in values if v > 0]
        assert result["count"] == len(result["values"])


def test_a_plan_is_the_sum_of_the_segments() -> None:
    f = gc.compile(lambda x: _positive(x.tanh()))
    x = _random(50, 0)
    assert f.plan(x).nanoseconds == 0
    f(x)
    assert f.plan(x).nanoseconds == sum(p.nanoseconds for p in f.programs) > 0


def test_training_inside_is_refused() -> None:
    net = gc.nn.Linear(2, 2)

    @gc.compile
    def step(x: gc.Tensor) -> gc.Tensor:
        loss = _positive(net(x).reshape(-1)).sum()
        loss.backward()
        return loss

    with pytest.raises(gc.errors.TraceError, match="reads values of a call, and it changes gradients"):
        step(gc.ones(2, 2))


def test_two_uses_of_a_mask_are_one_read() -> None:
    f = gc.compile(lambda x: x[x > 0] * x[x > 0] + (x + 1)[x > 0])
    for values in ([1.0, -2.0, 3.0], [-1.0, -1.0, -1.0], [1.0, 2.0, 3.0]):
        x = np.float32(values)
        np.testing.assert_array_equal(f(gc.from_numpy(x)).numpy(), x[x > 0] ** 2 + x[x > 0] + 1)
    assert len(f.variants[0].traced.reads) == 1 and not f.variants[0].traced.assumptions.found
    assert len(f.variants[0].paths) == 1
    g = gc.compile(lambda x: x[x > 0].sum() * x[x > 1].sum())
    assert g(gc.tensor([1.0, 2.0])).item() == 6 and len(g.variants[0].traced.reads) == 2
