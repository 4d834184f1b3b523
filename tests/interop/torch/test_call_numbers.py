"""Numbers that come from sizes: fractions, what is rounded of them, and least and largest ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from graphc.errors import FallbackWarning

torch = pytest.importorskip("torch")
call_numbers: Any = pytest.importorskip("graphc.interop.torch.call_numbers")
program: Any = pytest.importorskip("graphc.interop.torch.program")
F: Any = torch.nn.functional if torch else None

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The native programs that are made from now on."""
    results: list[Any] = []
    make = program.TorchProgram.__init__

    def noted(self: Any, *args: Any) -> None:
        results.append(self)
        make(self, *args)

    monkeypatch.setattr(program.TorchProgram, "__init__", noted)
    return results


SIZES = [(4, 8), (7, 6), (10, 5), (20, 31)]
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a mean by hand": lambda x: x.sum() / x.shape[0],
    "a scale of attention": lambda x: torch.softmax(x @ x.T * (1 / math.sqrt(x.shape[1])), -1) @ x,
    "a quotient of sizes": lambda x: x * (x.shape[0] / x.shape[1]),
    "a fraction that fills a tensor": lambda x: torch.full((3,), 1 / x.shape[0]) + torch.tensor(x.shape[1] / 2),
    "a fraction that limits": lambda x: x.clamp(max=1 - 1 / x.shape[0]) * 2,
    "a float made of a size": lambda x: x * torch.sym_float(x.shape[0]) + torch.sym_float(x.shape[1]) / 3,
    "a fraction that is a result": lambda x: (x * 2, x.shape[0] / x.shape[1]),
    "rounded fractions": lambda x: x.new_zeros(int(x.shape[0] * 0.7), math.ceil(x.shape[1] / 2)) + x.shape[0] * 0.3,
    "a rounded half": lambda x: torch.arange(round(x.shape[1] / 2)) * x.shape[0],
    "nearest resampling": lambda x: F.interpolate(x[None, None], scale_factor=1.7),
    "linear resampling": lambda x: F.interpolate(x[None, None], scale_factor=1.5, mode="bilinear"),
    "resampling by a factor that is computed again": lambda x: F.interpolate(
        x[None, None], scale_factor=0.7, mode="bilinear", recompute_scale_factor=True
    ),
    "cubic resampling": lambda x: F.interpolate(x[None, None], size=(x.shape[0] // 2, 9), mode="bicubic"),
    "least and largest": lambda x: x * torch.sym_min(*x.shape) + torch.arange(torch.sym_max(*x.shape)).sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_graphs_with_numbers_of_sizes_are_one_program_for_all_sizes(name: str, made: list[Any]):
    function = FUNCTIONS[name]
    compiled = torch.compile(function, backend="graphc", dynamic=True, options={"fallback": "error"})
    for sizes in SIZES:
        x = torch.rand(sizes)
        torch.testing.assert_close(compiled(x), function(x))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1 and len(made) == 1


@pytest.mark.parametrize("name", ["a quotient of sizes", "nearest resampling", "linear resampling"])
def test_backward_passes_compute_fractions_of_sizes_themselves(name: str, made: list[Any]):
    function = FUNCTIONS[name]
    compiled = torch.compile(function, backend="graphc", dynamic=True, options={"fallback": "error"})
    for sizes in SIZES:
        x = torch.rand(sizes, requires_grad=True)
        ours, theirs = (torch.autograd.grad((f(x) ** 2).sum(), x) for f in (compiled, function))
        torch.testing.assert_close(ours, theirs)
    assert len(made) == 2, "forward and backward"


def test_rounded_fractions_are_rounded_as_pytorch_does():
    def parts(x: Any) -> Any:
        return x.new_zeros(int(x.shape[0] * 0.7), int(x.shape[0] * 0.1 * 3), round(x.shape[0] * 0.5))

    compiled = torch.compile(parts, backend="graphc", dynamic=True)
    for size in (10, 20, 30, 5, 7):
        assert compiled(torch.rand(size)).shape == parts(torch.rand(size)).shape
    assert compiled(torch.rand(10)).shape[0] == 7, "while 10 times the number next to 0.7 is less"


def test_parts_on_both_sides_of_pytorch_have_such_sizes():
    def function(x: Any) -> Any:
        y = torch.tanh(F.interpolate(x[None, None], scale_factor=1.7)[0, 0] + 1)
        return torch.sin(torch.special.bessel_y0(y)) * 2 + y.shape[0] / y.shape[1]

    compiled = torch.compile(function, backend="graphc", dynamic=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for sizes in SIZES:
            x = torch.rand(sizes)
            torch.testing.assert_close(compiled(x), function(x))
    assert any("in 2 programs" in str(w.message) for w in told)


def test_fractions_that_tensors_hold_are_left_to_pytorch():
    def function(x: Any) -> Any:
        return torch.tanh(x.clamp(max=x.mean().item())) + 1

    with torch._dynamo.config.patch(capture_scalar_outputs=True), pytest.warns(FallbackWarning, match="SymFloat"):
        compiled = torch.compile(function, backend="graphc", dynamic=True)
        for sizes in SIZES:
            x = torch.rand(sizes, dtype=torch.float64)
            torch.testing.assert_close(compiled(x), function(x))
