"""Training public models: rows hold distances from f64 and times of steps, and models that go another way are told."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import hub_training
from benchmarks.harness.results import Result

torch = pytest.importorskip("torch")
if torch:
    from benchmarks.models import hub
    from benchmarks.models.hub import Model


def small(library: Any) -> Any:
    layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Dropout(0.5)]
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(144, 3))


@pytest.fixture
def only_small(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(hub.TRAINED, "timm/small", Model("small", "timm", small, side=8))
    monkeypatch.setattr(hub, "load_collection", lambda name: None)
    monkeypatch.setattr(hub_training, "SEEDS", 2)


def measured(key: str, *arguments: Any) -> Result:
    return Result(**hub_training.measure_model(key, *arguments))


def row(**facts: Any) -> Result:
    times = {"graphc": [1.0], "eager": [3.0], "inductor": [2.0]}
    return Result("x", {"f64_losses": 1e-12, "f32_distances": [1.1, 0.9]} | facts, times)


def test_there_are_twelve_models():
    assert len(hub.TRAINED) == 12


def test_a_model_that_is_trained_agrees_and_has_times(only_small: None):
    result = measured("timm/small", ["eager"], 2, 0.001)
    assert not result.problems and hub_training.agrees(result)
    assert len(result.facts["f32_distances"]) == 2 and result.errors["graphc"] < 1e-5
    assert len(result.rounds_ms["graphc"]) == len(result.rounds_ms["eager"]) == 2


def test_gradients_that_are_off_are_found(only_small: None, monkeypatch: pytest.MonkeyPatch):
    def compiled(module: Any, name: str, weights: str) -> Any:
        if name == "graphc":
            module[0].weight.register_hook(lambda gradient: gradient * 1.001)
        return module

    monkeypatch.setattr(hub_training, "compiled", compiled)
    result = measured("timm/small", ["eager"], 0, 0.001)
    assert result.facts["f64_losses"] > 1e-10 and min(result.facts["f32_distances"]) > 3
    assert not hub_training.agrees(result)


def test_losses_that_are_no_numbers_are_found(only_small: None, monkeypatch: pytest.MonkeyPatch):
    losses = iter([1.0] * 19 + [float("nan")] + [1.0] * 20)
    monkeypatch.setattr(hub_training, "step", lambda *_: torch.tensor(next(losses)))
    assert not hub_training.double_losses("timm/small", "live") <= 1e-10


def test_what_graphc_does_not_take_is_no_row_of_it(only_small: None):
    class Waves(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.bessel_y0(x)

    call = hub_training.compiled(Waves(), "graphc", "live")
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
        call(torch.ones(2, 3))


def test_nothing_is_dropped():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Dropout(0.5)
            self.attention_dropout = 0.1
            self.p = 2.0

    layer = hub_training.without_dropout(Layer())
    assert (layer.inner.p, layer.attention_dropout, layer.p) == (0.0, 0.0, 2.0)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (row(), True),
        (row(f64_losses=1e-9), False),
        (row(f64_losses=float("nan")), False),
        (row(f32_distances=[1.0, 1000.0, 1.1]), True),
        (row(f32_distances=[1.0, 3.5, 4.0]), False),
        (row(f32_distances=[1.0, float("nan"), float("nan")]), False),
        (Result("x", {}, problems={"graphc": "no"}), False),
    ],
)
def test_what_agrees(result: Result, expected: bool):
    assert hub_training.agrees(result) is expected


def test_the_table_marks_who_does_not_agree():
    text = hub_training.format_rows([row(), Result("y", {}, problems={"graphc": "died"})])
    assert "| x | 1.0e-12 | 1.10, 0.90 | 1 | 3 | 2 | 3.00 | 2.00 |" in text
    assert "1 of 2 agree" in text and "graphc: died: y" in text
    assert "| x | 1.0e-09! |" in hub_training.format_rows([row(f64_losses=1e-9)])
