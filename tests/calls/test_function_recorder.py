"""Repeated calls of compiled functions with gradients: the short way is taken, and never where it could be wrong."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.autograd import forward_ad
from graphc.autograd.graph import saved_tensors_hooks
from graphc.calls.function import Compiled
from graphc.errors import GradientError
from graphc.tensors.journal import Journal
from tests.base.test_mutation_epoch import CHANGES
from tests.calls.test_function_shortcut import BREAKS

LIMIT = 15
"""Python functions that a call with gradients may run."""


def perceptron() -> nn.Sequential:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def warm(compiled: Compiled, *inputs: Any) -> None:
    for _ in range(2):
        compiled(*inputs)
    assert compiled._recorder is not None


def refuse(*_: Any) -> None:
    raise AssertionError("the call did not take the short way")


def python_calls(function: Callable[[], Any]) -> int:
    """Return how many Python functions a call of ``function`` runs, besides ``function`` itself.

    It is the least of five calls: garbage that other tests left may be collected in one of them.
    """
    return min(_python_calls(function) for _ in range(5))


def _python_calls(function: Callable[[], Any]) -> int:
    names: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            names.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return len(names) - 1


def gradients(net: nn.Module, run: Callable[..., Any], *inputs: Any) -> list[np.ndarray]:
    """Return the result of a call, the gradients of the parameters, and those of inputs that need one."""
    net.zero_grad()
    for x in inputs:
        x.grad = None
    result = run(*inputs)
    (result**2).sum().backward()
    tensors = [*net.parameters(), *inputs]
    return [result.detach().numpy(), *(t.grad.numpy() for t in tensors if t.grad is not None)]


def assert_like_eager(net: nn.Module, compiled: Any, *inputs: Any) -> None:
    pairs = zip(gradients(net, compiled, *inputs), gradients(net, net, *inputs), strict=True)
    for actual, expected in pairs:
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_a_call_runs_few_python_functions(monkeypatch: pytest.MonkeyPatch):
    net = nn.Sequential(*[nn.Linear(3, 3) for _ in range(10)])
    compiled, x = gc.compile(net), gc.randn(5, 3)
    warm(compiled, x)
    monkeypatch.setattr(compiled, "_find_and_run", refuse)
    result = compiled(x)
    assert result.requires_grad and type(result) is gc.Tensor
    assert python_calls(lambda: compiled(x)) <= LIMIT
    assert_like_eager(net, compiled, x)


def test_calls_stay_short_after_a_journal():
    with Journal().opened():
        pass
    net = nn.Sequential(*[nn.Linear(3, 3) for _ in range(10)])
    compiled, x = gc.compile(net), gc.randn(5, 3)
    warm(compiled, x)
    assert python_calls(lambda: compiled(x)) <= LIMIT < len(list(net.parameters()))


def test_the_loop_runs_few_python_functions():
    net = perceptron()
    compiled, optimizer = gc.compile(net), gc.optim.Adam(net.parameters())
    x, y, params = gc.randn(5, 3), gc.randn(5, 2), list(net.parameters())

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.mse_loss(compiled(x), y).backward()
        nn.utils.clip_grad_norm_(params, 1e-3)
        optimizer.step()

    for _ in range(3):
        step()
    assert python_calls(step) <= 175


def test_arguments_that_do_not_fit_take_the_long_way(monkeypatch: pytest.MonkeyPatch):
    net = perceptron()
    compiled, x = gc.compile(net), gc.randn(5, 3)
    with gc.inference_mode():
        inference = gc.randn(5, 3)
    others = [
        x[:4],
        x.double(),
        x.tolist(),
        x.clone().requires_grad_(),
        inference,
        nn.Parameter(x, requires_grad=False),
    ]
    warm(compiled, x)
    monkeypatch.setattr(compiled, "_find_and_run", refuse)
    compiled(x[:])
    for other in others:
        with pytest.raises(AssertionError, match="short way"):
            compiled(other)
    for args, kwargs in (((x, x), {}), ((), {}), ((), {"input": x})):
        with pytest.raises(AssertionError, match="short way"):
            compiled(*args, **kwargs)
    for mode in (gc.no_grad(), gc.inference_mode(), saved_tensors_hooks(id, id)):
        with mode, pytest.raises(AssertionError, match="short way"):
            compiled(x)
    with forward_ad.dual_level(), pytest.raises(AssertionError, match="short way"):
        compiled(x)
    compiled(x)
    with gc.autocast("cpu", gc.bfloat16), pytest.raises(AssertionError, match="short way"):
        compiled(x)


@pytest.mark.parametrize("name", sorted(set(CHANGES) - BREAKS - {"requires_grad_"}))
def test_nothing_is_stale_after_a_change(name: str):
    gc.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()
    compiled, x = gc.compile(net), gc.randn(5, 3)
    warm(compiled, x)
    CHANGES[name](net)
    x = x.to(next(net.parameters()).dtype)
    for _ in range(3):
        assert_like_eager(net, compiled, x)


def test_flags_of_parameters():
    net = perceptron()
    compiled, x = gc.compile(net), gc.randn(5, 3)
    warm(compiled, x)
    net[0].weight.requires_grad_(False)
    for _ in range(3):
        assert_like_eager(net, compiled, x)
    assert net[0].weight.grad is None and net[0].bias.grad is not None
    net[0].weight.requires_grad_()
    for _ in range(3):
        assert_like_eager(net, compiled, x)
    assert net[0].weight.grad is not None


def test_hooks_of_modules_and_tensors():
    net = perceptron()
    compiled, x = gc.compile(net), gc.randn(5, 3)
    warm(compiled, x)
    handles = [
        net[1].register_forward_hook(lambda m, args, result: result * 2),
        net[2].weight.register_hook(lambda g: g * 3),
        net[0].bias.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(5)),
    ]
    for _ in range(3):
        assert_like_eager(net, compiled, x)
    for handle in handles:
        handle.remove()
    for _ in range(3):
        assert_like_eager(net, compiled, x)
    seen: list[Any] = []
    result = compiled(x)
    result.retain_grad()
    result.register_hook(seen.append)
    result.grad_fn.register_prehook(lambda grads: tuple(g * 2 for g in grads))
    result.sum().backward()
    assert len(seen) == 1 and float(result.grad.sum()) in (10.0, 20.0)


def test_writes_between_the_passes():
    net = perceptron()
    compiled, x = gc.compile(net), gc.randn(5, 3)
    warm(compiled, x)
    for tensor in (net[2].weight, x):
        result = compiled(x)
        with gc.no_grad():
            tensor.add_(1.0)
        with pytest.raises(GradientError, match=r"compiled Sequential, f32\[\d, \d\], is at version \d, not \d"):
            result.sum().backward()
    assert_like_eager(net, compiled, x)


def test_a_graph_runs_again_only_where_it_is_kept():
    net = perceptron()
    compiled, x = gc.compile(net), gc.randn(5, 3)
    warm(compiled, x)
    loss = compiled(x).sum()
    loss.backward(retain_graph=True)
    once = net[0].weight.grad.numpy().copy()
    loss.backward()
    np.testing.assert_allclose(net[0].weight.grad.numpy(), 2 * once, rtol=1e-6)
    with pytest.raises(GradientError, match="already run backward"):
        loss.backward()


def test_second_derivatives():
    net = perceptron()
    compiled, x = gc.compile(net), gc.randn(5, 3).requires_grad_()
    warm(compiled, x)
    results = []
    for run in (compiled, net):
        (slope,) = gc.autograd.grad(run(x).pow(3).sum(), x, create_graph=True)
        net.zero_grad()
        slope.pow(2).sum().backward()
        results.append([p.grad.numpy() for p in net.parameters() if p.grad is not None])
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    result = compiled(x).sum()
    (slope,) = gc.autograd.grad(result, x, create_graph=True)
    with gc.no_grad():
        net[0].weight.add_(1.0)
    with pytest.raises(GradientError, match="in-place"):
        slope.sum().backward()


def test_tangents():
    net = perceptron()
    compiled, x = gc.compile(net), gc.randn(5, 3)
    warm(compiled, x)
    with forward_ad.dual_level():
        along = [forward_ad.unpack_dual(f(forward_ad.make_dual(x, gc.ones(5, 3)))).tangent for f in (compiled, net)]
        np.testing.assert_allclose(along[0].detach().numpy(), along[1].detach().numpy(), rtol=1e-5)
    assert_like_eager(net, compiled, x)


def test_anomaly_mode_names_the_function():
    compiled = gc.compile(lambda x: (x * 0).sqrt())
    x = gc.ones(3, requires_grad=True)
    warm(compiled, x)
    with gc.autograd.detect_anomaly(), pytest.raises(GradientError, match="made a NaN"):
        compiled(x).sum().backward()


def test_saved_tensors_are_packed():
    net = perceptron()
    compiled, x = gc.compile(net), gc.randn(5, 3)
    warm(compiled, x)
    packed: list[Any] = []
    with saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        result = compiled(x)
    assert packed
    result.sum().backward()
    assert_like_eager(net, compiled, x)


def test_views_of_tensors_with_a_history():
    net = perceptron()
    compiled = gc.compile(net)
    base: Any = gc.randn(6, 3).requires_grad_()
    for _ in range(3):
        compiled(base[1:]).sum().backward()
    assert_like_eager(net, lambda t: compiled(t[:]), base)
    written = [gc.zeros(6, 3), gc.zeros(6, 3)]
    results: list[Any] = []
    for memory, run in zip(written, (compiled, net), strict=True):
        view = memory[1:]
        run(view)
        memory.add_(base)  # from now on the view has a history
        results.append(gc.autograd.grad(run(view).sum(), base)[0].numpy())
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_one_tensor_as_two_arguments():
    compiled = gc.compile(lambda a, b: a * b)
    x, y = gc.tensor([2.0], requires_grad=True), gc.tensor([5.0], requires_grad=True)
    warm(compiled, x, y)
    for _ in range(2):
        assert gc.autograd.grad(compiled(x, x), x)[0].item() == 4.0
        assert gc.autograd.grad(compiled(x, y), x)[0].item() == 5.0


def test_batch_statistics_are_written():
    gc.manual_seed(0)
    net: Any = nn.BatchNorm1d(3)
    other: Any = nn.BatchNorm1d(3)
    compiled, x = gc.compile(net), gc.randn(8, 3)
    versions = []
    for run, module in ((compiled, net), (other, other)):
        before = module.running_mean._version
        for _ in range(4):
            run(x).sum().backward()
        assert module.num_batches_tracked.item() == 4
        versions.append(module.running_mean._version - before)
    assert compiled._recorder is not None and versions[0] == 4
    np.testing.assert_allclose(net.running_mean.numpy(), other.running_mean.numpy(), rtol=1e-6)


def test_several_results_and_random_numbers():
    compiled = gc.compile(lambda x: {"a": x * 2, "b": (x > 0, nn.functional.dropout(x))})
    x = gc.ones(1000, requires_grad=True)
    warm(compiled, x)
    first = compiled(x)
    assert first["a"].requires_grad and not first["b"][0].requires_grad
    assert not np.array_equal(first["b"][1].detach().numpy(), compiled(x)["b"][1].detach().numpy())
    (first["a"].sum() + first["b"][1].sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 + first["b"][1].detach().numpy())


def test_random_numbers_inside_of_another_module():
    class Twice(nn.Module):
        def forward(self, run: Callable[[Any], Any], x: Any) -> Any:
            return run(x) + run(x)

    compiled, x = gc.compile(lambda x: nn.functional.dropout(x)), gc.ones(50, requires_grad=True)
    results = []
    for run in (compiled, nn.functional.dropout):
        gc.manual_seed(0)
        results.append([Twice()(run, x).detach().numpy() for _ in range(3)] + [run(x).detach().numpy()])
    np.testing.assert_array_equal(*results)


def test_sizes_and_modes_in_turns():
    net = perceptron()
    compiled = gc.compile(net)
    xs = [gc.randn(n, 3) for n in (5, 2, 5, 5, 2, 2)]
    for x in xs:
        assert_like_eager(net, compiled, x)
        with gc.no_grad():
            np.testing.assert_allclose(compiled(x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)
    sized, eager = gc.compile(net, dims=((gc.Dim("batch"), None),)), net
    for x in xs:
        assert_like_eager(eager, sized, x)


def test_dropped_programs_are_not_called(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_PROGRAMS", "1")
    net = perceptron()
    compiled = gc.compile(net)
    for n in (5, 4, 5):
        assert_like_eager(net, compiled, gc.randn(n, 3))


def test_threads_record_their_own_calls():
    net = perceptron()
    compiled = gc.compile(net)
    xs = [gc.randn(5, 3).requires_grad_() for _ in range(4)]
    warm(compiled, xs[0])
    expected = [gc.autograd.grad(net(x).sum(), x)[0].numpy() for x in xs]
    failures: list[int] = []

    def work(number: int) -> None:
        for _ in range(200):
            (actual,) = gc.autograd.grad(compiled(xs[number]).sum(), xs[number])
            if not np.allclose(actual.numpy(), expected[number], atol=1e-6):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


class _Drops(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("order", ["fn", "fffn", "nf", "fnfn", "fmnmf"])
def test_a_function_that_draws_follows_the_module_that_calls_it(order, grad):
    """First compiled outside of modules, inside of one, or in turn: the numbers are those of eager mode."""

    def drawn(function):
        inner = _Drops(function)
        callers = {"f": function, "m": inner, "n": nn.Sequential(inner, _Drops(function), _Drops(function))}
        gc.manual_seed(0)
        x = gc.ones(40, requires_grad=grad)
        return [callers[name](x).tolist() for name in order]

    def drop(x):
        return nn.functional.dropout(x, 0.3) + 1

    assert drawn(gc.compile(drop)) == drawn(drop)
