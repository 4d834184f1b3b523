"""PyTorch computes the operators that graphc cannot, always with a warning."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest

from graphc.errors import FallbackWarning, UnsupportedError
from graphc.interop.aten import registry

torch = pytest.importorskip("torch")
fallback: Any = pytest.importorskip("graphc.interop.torch.fallback")
nn: Any = torch.nn if torch else None

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def compiled(model: Any, **options: Any) -> Any:
    return torch.compile(model, backend="graphc", **options)


def check(model: Any, *args: Any, count: int = 1, **options: Any) -> list[str]:
    """Compares and returns the texts of the warnings, of which there are so many."""
    result = compiled(model, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            torch.testing.assert_close(result(*args), model(*args))
    said = [str(w.message) for w in caught if issubclass(w.category, FallbackWarning)]
    assert len(said) == count
    return said


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        result = torch.special.erfcx(torch.relu(self.first(x)))
        return torch.tanh(self.last(result * 2))


def line_of(text: str) -> int:
    lines, start = inspect.getsourcelines(Scaled)
    return start + next(i for i, line in enumerate(lines) if text in line)


def test_the_warning_names_operator_line_and_share():
    with torch.no_grad():
        (said,) = check(Scaled(), torch.randn(4, 8))
    assert said.startswith("PyTorch computes 1 of 8 operators (12.5 %) of a graph, graphc 7 in 2 programs")
    assert "aten.special_erfcx.default: not among the operators that graphc computes" in said
    assert f"test_fallback.py:{line_of('erfcx')}: result = torch.special.erfcx" in said
    assert "explain(model, ...)" in said and "'fallback'" not in said


def test_the_place_of_the_warning_is_the_line_of_the_user():
    with pytest.warns(FallbackWarning) as caught, torch.no_grad():
        compiled(Scaled())(torch.randn(4, 8))
    (results,) = [w for w in caught if w.category is FallbackWarning]
    assert results.filename.endswith("test_fallback.py") and results.lineno == line_of("erfcx")


def test_training_with_an_operator_of_pytorch_in_the_middle():
    ours, theirs = Scaled(), Scaled()
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(4, 8)
    with pytest.warns(FallbackWarning):
        compiled(ours)(x).square().sum().backward()
    theirs(x).square().sum().backward()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def test_sizes_that_change_cross_the_border():
    model = Scaled()
    result = compiled(model, dynamic=True)
    with torch.no_grad(), pytest.warns(FallbackWarning) as caught:
        for rows in (2, 5, 3):
            x = torch.randn(rows, 8)
            torch.testing.assert_close(result(x), model(x))
    assert len([w for w in caught if w.category is FallbackWarning]) == 1


@torch.library.custom_op("graphc_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x: Any) -> Any:
    return torch.empty_like(x)


@torch.library.custom_op("graphc_tests::grow", mutates_args=("x",))
def grow(x: torch.Tensor) -> None:
    x.add_(1)


def test_operators_of_users_too_those_that_write_to_their_arguments():
    (said,) = check(lambda x: (twice(x.sin() + 1) * x).cos(), torch.randn(3))
    assert "graphc_tests.twice.default: not among the operators that graphc computes" in said

    def growing(x: Any) -> Any:
        y = x.sin() + 1
        grow(y)
        return y.cos() * 2

    (said,) = check(growing, torch.randn(3))
    assert "auto_functionalized" in said


def test_an_autocast_region():
    layer = nn.Linear(8, 8)

    def model(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = torch.relu(layer(x))
        return torch.softmax(y.float(), -1) * 3

    with torch.no_grad():
        compiled = torch.compile(model, backend="graphc")
        x = torch.randn(4, 8)
        torch.testing.assert_close(compiled(x), model(x), rtol=2e-2, atol=2e-2)


def test_arguments_of_complex_and_narrow_types():
    def model(x: Any, c: Any, unused: Any) -> Any:
        return (c * c).abs().sum() + (x.exp() + 1).sum(), unused

    check(model, torch.randn(3), torch.randn(2, dtype=torch.complex64), torch.ones(2, dtype=torch.float16), count=0)


def test_writes_to_arguments():
    def step(x: Any, y: Any) -> Any:
        z = torch.special.bessel_j0(y * 1.0 + x[:2, :2])
        x[1:].add_(3)
        return z.sum() + x.sum()

    x, other = (torch.arange(9.0).reshape(3, 3) for _ in range(2))
    with pytest.warns(FallbackWarning, match="special_bessel_j0"):
        result = compiled(step)(x, torch.eye(2))
    torch.testing.assert_close(result, step(other, torch.eye(2)))
    torch.testing.assert_close(x, other)


@pytest.mark.parametrize("error", [UnsupportedError("no such form"), TypeError("unexpected argument")])
def test_a_rule_that_raises_in_the_trace(error: Exception, monkeypatch: pytest.MonkeyPatch):
    traces = []

    def refuse(*_: Any, **__: Any) -> Any:
        traces.append(1)
        raise error

    monkeypatch.setitem(registry.TABLE, "aten.atan.default", refuse)
    (said,) = check(lambda x: (((x.sin() + 1).atan().exp() * 2).atan() + 1).cos(), torch.randn(3))
    assert "aten.atan.default (2 times)" in said and str(error.args[0]) in said
    assert len(traces) == 1


def test_an_error_that_is_none_of_one_operator_leaves_the_part_to_pytorch(monkeypatch: pytest.MonkeyPatch):
    backend: Any = pytest.importorskip("graphc.interop.torch.backend")

    class Fails(backend.TorchProgram):
        def __init__(self, *_: Any, **__: Any):
            raise RuntimeError("out of registers")

    monkeypatch.setattr(backend, "TorchProgram", Fails)
    (said,) = check(lambda x: x.sin() + 1, torch.randn(3))
    assert "graphc none" in said and "RuntimeError: out of registers" in said


def test_the_option_error_raises_with_operator_line_and_remedy():
    with pytest.raises(Exception, match="special_erfcx") as caught, torch.no_grad():
        compiled(Scaled(), options={"fallback": "error"})(torch.randn(4, 8))
    error: Any = caught.value
    while not isinstance(error, UnsupportedError):
        error = error.inner_exception if hasattr(error, "inner_exception") else error.__cause__
    assert error.what == "aten.special_erfcx.default: not among the operators that graphc computes"
    assert "erfcx" in error.origin and '{"fallback": "torch"}' in error.remedy and "special_erfcx" in error.where


def test_a_model_that_graphc_takes_is_no_matter_of_a_warning():
    with torch.no_grad():
        check(nn.Linear(3, 3), torch.randn(2, 3), count=0)
        check(nn.Linear(3, 3), torch.randn(2, 3), count=0, options={"fallback": "error"})


def test_a_model_made_of_modules_of_pytorch_is_told_at_the_line_of_its_call():
    result = compiled(nn.Linear(2, 2, device="meta"))
    with pytest.warns(FallbackWarning, match="no tensors on the device meta") as caught:
        result(torch.ones(1, 2, device="meta"))
    assert caught[0].filename == __file__
