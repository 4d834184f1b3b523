"""``torch.compile(model, backend="graphc")``: models of PyTorch give what they give eagerly."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import pytest

from graphc.errors import UnsupportedError

torch = pytest.importorskip("torch")
FakeTensorMode: Any = pytest.importorskip("torch._subclasses.fake_tensor").FakeTensorMode
backend: Any = pytest.importorskip("graphc.interop.torch.backend")
nn: Any = torch.nn if torch else None


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 4)
        self.words = nn.Embedding(10, 4)

    def forward(self, x: Any, i: Any) -> dict[str, Any]:
        y = torch.relu(self.norm(self.first(x))).mean((2, 3))
        y = self.last(y) + self.words(i)
        return {"found": y.view(-1), "wide": y.to(torch.float64), "none": None}


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def compare(model: Any, *args: Any, **options: Any) -> Any:
    compiled = torch.compile(model, backend="graphc", **options)
    with torch.no_grad():
        expected, result = model(*args), compiled(*args)
    torch.testing.assert_close(result, expected)
    return compiled


def test_a_model_computes_what_it_computes_eagerly():
    compare(Net().eval(), torch.randn(2, 3, 8, 8), torch.tensor([1, 2]))


def test_sizes_that_change_are_named_dimensions_of_one_program():
    compiled = torch.compile(Net().eval(), backend="graphc", dynamic=True)
    model = compiled._orig_mod
    with torch.no_grad():
        for count in (2, 5, 9, 3):
            args = torch.randn(count, 3, 8, 8), torch.randint(0, 10, (count,))
            torch.testing.assert_close(compiled(*args), model(*args))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_results_lie_in_memory_as_those_of_pytorch_do():
    x = torch.randn(2, 3, 4, 5)
    result = torch.compile(lambda x: x.permute(0, 2, 3, 1) * 2, backend="graphc")(x)
    assert result.stride() == (x.permute(0, 2, 3, 1) * 2).stride()


def test_what_is_written_to_arguments_is_seen_outside():
    def step(x: Any, y: Any) -> Any:
        x[1:].add_(y)
        return x.sum()

    x, other = torch.ones(3), torch.ones(3)
    result = torch.compile(step, backend="graphc")(x, 2)
    assert result == step(other, 2) and x.tolist() == other.tolist()


@pytest.mark.parametrize("write", ["add_", "data", "numpy"])
def test_every_write_to_a_weight_is_found(write: str):
    model = nn.Linear(64, 64).eval()
    x = torch.randn(8, 64)
    compiled = compare(model, x)
    with torch.no_grad():
        if write == "add_":
            model.weight.add_(1)
        elif write == "data":
            model.weight.data.mul_(2)
        else:
            model.weight.detach().numpy()[3] = 5
        torch.testing.assert_close(compiled(x), model(x))


def test_options_are_checked():
    with pytest.raises(Exception, match="no option 'wieghts'"):
        compare(nn.Linear(2, 2), torch.ones(1, 2), options={"wieghts": "live"})
    with pytest.raises(Exception, match="'live', 'frozen'"):
        compare(nn.Linear(2, 2), torch.ones(1, 2), options={"weights": "no"})
    with pytest.raises(Exception, match="options must be a dictionary, not list"):
        compare(nn.Linear(2, 2), torch.ones(1, 2), options=["weights"])
    with pytest.raises(Exception, match="mode='fastest'"):
        compare(nn.Linear(2, 2), torch.ones(1, 2), mode="fastest")


def test_fake_tensors_hold_no_data_to_compute_with():
    compiled = torch.compile(nn.Linear(2, 2), backend="graphc")
    x = torch.ones(1, 2)
    with torch.no_grad():
        compiled(x)
        with FakeTensorMode() as mode, pytest.raises(Exception, match="FakeTensor"):
            compiled(mode.from_tensor(x))
        with FakeTensorMode(), pytest.raises(Exception, match="FakeTensor"):
            torch.compile(lambda x: x * 2 + 1, backend="graphc")(torch.ones(3))


def test_numbers_and_devices_are_arguments_and_results():
    def both(x: Any, n: int) -> Any:
        y = x.to(device="cpu", dtype=torch.float64) + torch.ones(3, device=x.device) * n
        return y, y.shape[0] * 2, x.device, None

    compiled = torch.compile(both, backend="graphc", dynamic=True)
    for n in (2, 5):
        x = torch.arange(3.0)
        torch.testing.assert_close(compiled(x, n)[0], both(x, n)[0])
        assert compiled(x, n)[1:] == both(x, n)[1:]


def test_regions_without_gradients_and_inference_mode():
    def parts(x: Any, y: Any) -> Any:
        with torch.no_grad():
            still = x * 2
        with torch.inference_mode():
            more = y * 3
        return still, y * 2, more, x > 0

    x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    compiled = torch.compile(parts, backend="graphc")
    result, expected = compiled(x, y), parts(x, y)
    torch.testing.assert_close(result, expected)
    assert [f.requires_grad for f in result] == [e.requires_grad for e in expected]
    with torch.inference_mode():
        assert all(f.is_inference() for f in compiled(x, y))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int16", "uint16", "complex64"])
def test_narrow_and_complex_element_types_are_compiled(dtype: str):
    x = torch.tensor([1.0, 2.5, 3.0]).to(getattr(torch, dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = torch.compile(lambda x: x * x, backend="graphc")(x)
    assert result.dtype == x.dtype and torch.equal(result, x * x)


def test_regions_of_autocast_give_what_they_give_eagerly():
    first, last = nn.Linear(8, 8), nn.Linear(8, 8)

    def mixed(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = first(x)
        return last(y.float())

    x = torch.randn(4, 8)
    with torch.no_grad():
        result = torch.compile(mixed, backend="graphc")(x)
    torch.testing.assert_close(result, mixed(x), rtol=2e-2, atol=2e-2)  # a step of bf16
    assert not torch.equal(result, last(first(x)))


def test_hooks_methods_and_compiled_functions_within():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    model[0].register_forward_hook(lambda module, argument, result: result * 2)
    model.compile(backend="graphc")
    inner = torch.compile(lambda x: x * 2, backend="graphc")
    outer = torch.compile(lambda x: inner(model.forward(x)) + 1, backend="graphc", fullgraph=True, mode="max-autotune")
    x = torch.randn(2, 3)
    expected = torch.relu(nn.functional.linear(x, model[0].weight, model[0].bias) * 2)
    torch.testing.assert_close(model(x), expected)
    torch.testing.assert_close(outer(x), expected * 2 + 1)


def test_an_argument_given_twice_is_one_tensor():
    def step(a: Any, b: Any) -> Any:
        a.add_(1)
        return a * b

    compiled = torch.compile(step, backend="graphc")
    one, two, same = torch.ones(3), torch.ones(3), torch.ones(3)
    assert compiled(one, two).tolist() == [2, 2, 2] and compiled(same, same).tolist() == [4, 4, 4]


def test_the_backend_is_found_in_a_fresh_process():
    code = (
        "import torch; assert 'graphc' in torch._dynamo.list_backends(); import sys; assert 'graphc' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("dynamic", [False, True])
def test_tensors_that_do_not_hold_their_elements_are_taken_for_what_they_are(dynamic: bool):
    x = torch.randn(3, 4)
    last = torch.randn(1, dtype=torch.complex64).conj().imag
    compiled = torch.compile(lambda x: (x * 2 + 1).relu(), backend="graphc", dynamic=dynamic)
    for argument in (x, torch._neg_view(x), torch._efficientzerotensor((3, 4)), last, x):
        torch.testing.assert_close(compiled(argument), (argument * 2 + 1).relu())
    layer = nn.Linear(4, 3).eval()
    layer.weight = nn.Parameter(torch._neg_view(layer.weight.detach()), requires_grad=False)
    compare(layer, x)


def test_conjugated_tensors_are_taken_for_what_they_are():
    x = torch.randn(2, 3, dtype=torch.complex64)
    layer = nn.Linear(3, 2, dtype=torch.complex64).eval()
    for function in (lambda x: x * 2 + 1j, lambda x: x.conj() * x, lambda x: x.mH @ x, layer):
        compiled = torch.compile(function, backend="graphc")
        for argument in (x, x, x, x.conj(), x.conj(), x):
            torch.testing.assert_close(compiled(argument), function(argument))
    layer.weight = nn.Parameter(layer.weight.detach().conj(), requires_grad=False)
    compare(layer, x)


def test_gradients_that_do_not_hold_their_elements_are_taken_for_what_they_are():
    w = torch.randn(3, 4, requires_grad=True)
    compiled = torch.compile(lambda x: (x * 2 + 1).sin() * x, backend="graphc")
    for argument in (torch.ones(3, 4), torch._neg_view(torch.ones(3, 4)), torch._efficientzerotensor((3, 4))):
        (expected,) = torch.autograd.grad((w * 2 + 1).sin() * w, w, argument)
        torch.testing.assert_close(torch.autograd.grad(compiled(w), w, argument), (expected,))


def test_forward_mode_derivatives_of_arguments_are_an_error():
    forward_ad: Any = torch.autograd.forward_ad
    x = torch.ones(3)
    compiled = torch.compile(lambda x: (x * 2).sin(), backend="graphc")
    compiled(x)
    with forward_ad.dual_level():
        torch.testing.assert_close(compiled(x), (x * 2).sin())
        with pytest.raises(UnsupportedError, match="forward-mode derivatives"):
            compiled(forward_ad.make_dual(x, x))


def test_forward_mode_derivatives_within_a_function_are_those_of_pytorch():
    def slope(x: Any) -> Any:
        return torch.func.jvp(lambda x: (x * 2).sin(), (x,), (torch.ones_like(x),))

    compare(slope, torch.randn(3))


def _halves(x: Any) -> Any:
    return x[:2], x[2:] * 2


def _written(x: Any) -> Any:
    x.add_(1)
    return x * 2


def _mode(x: Any) -> Any:
    torch.set_grad_enabled(False)
    return x * 2


DIRECT = [
    (lambda x: x * 2 + 1, True),
    (lambda x: (x * 2, (x * 2).relu().sum(), 3), True),
    (lambda x: (x * 2, x), True),
    (lambda x: (y := x * 2, y[1:])[1], True),
    (_halves, False),
    (_written, False),
    (_mode, False),
]


@pytest.mark.parametrize(("function", "direct"), DIRECT)
def test_dynamo_calls_programs_themselves_where_they_do_all_there_is(function: Any, direct: bool, monkeypatch: Any):
    results: list[Any] = []
    usual = backend._unboxed
    monkeypatch.setattr(backend, "_unboxed", lambda run: results.append(run) or usual(run))
    run, before = torch.compile(function, backend="graphc"), torch.is_grad_enabled()
    try:
        for _ in range(4):
            x = torch.randn(4, 3)
            expected_x, given_x = x.clone(), x.clone()
            torch.set_grad_enabled(True)
            expected, mode = function(expected_x), torch.is_grad_enabled()
            torch.set_grad_enabled(True)
            given = run(given_x)
            assert torch.is_grad_enabled() == mode
            torch.testing.assert_close(given, expected)
            assert torch.equal(given_x, expected_x)
    finally:
        torch.set_grad_enabled(before)
    assert bool(results) == direct


def test_a_tensor_of_several_tensors_is_taken_apart():
    pair: Any = pytest.importorskip("torch.testing._internal.two_tensor").TwoTensor
    x, run = pair(torch.ones(3), torch.zeros(3)), torch.compile(lambda x: x * 2 + 1, backend="graphc")
    for _ in range(4):
        result = run(x)
        assert isinstance(result, pair) and result.a.tolist() == [3.0] * 3 and result.b.tolist() == [1.0] * 3


def test_the_same_argument_twice_and_modes_of_gradients_and_autocast_are_as_before():
    run, x = torch.compile(lambda x, y: x @ y, backend="graphc"), torch.randn(3, 3)
    w = torch.randn(3, 3, requires_grad=True)
    for _ in range(4):
        torch.testing.assert_close(run(x, x), x @ x)
        with torch.no_grad():
            result = run(x, w)
        assert not result.requires_grad
        torch.testing.assert_close(result, x @ w.detach())
        assert run(x, w).requires_grad
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
            assert run(x, x).dtype == torch.float32


def test_sizes_that_are_marked_dynamic_are_those_of_one_program():
    x = torch.randn(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    compiled = torch.compile(lambda x: torch.softmax(x, 0) * x.shape[0], backend="graphc")
    for argument in (x, torch.randn(7, 3), torch.randn(9, 3)):
        torch.testing.assert_close(compiled(argument), torch.softmax(argument, 0) * len(argument))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
