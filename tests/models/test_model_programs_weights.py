"""Other weights for a loaded model: by which programs they are taken, and which files of them are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArtifactError, StateDictError
from graphc.models import model_programs


def make() -> nn.Module:
    """Convolution, normalization by statistics, products: weights that are folded and packed."""
    made = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5)).eval()
    for buffer in made.buffers():
        if buffer.shape:
            buffer.copy_(gc.rand(*buffer.shape) + 0.5)
    return made


@pytest.fixture
def models() -> tuple[nn.Module, nn.Module]:
    gc.manual_seed(0)
    return make(), make()


@pytest.fixture
def path(models: tuple[nn.Module, nn.Module], tmp_path: Path) -> Path:
    gc.export(models[0], gc.zeros(2, 3, 8, 8), path=tmp_path / "net.gcm", native=True)
    return tmp_path / "net.gcm"


def check(loaded, model: nn.Module) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(loaded(x), model(gc.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("trust", [False, True])
def test_weights_of_a_file_are_taken_and_compiled_for_once(models, path: Path, trust: bool, monkeypatch):
    gc.save(models[1].state_dict(), path.with_name("other.safetensors"))
    loaded = gc.load(path, trust=trust)
    check(loaded, models[0])
    compiles = []
    compile_stages = model_programs.compile_stages
    monkeypatch.setattr(model_programs, "compile_stages", lambda stages: compiles.append(1) or compile_stages(stages))
    loaded.swap_weights(path.with_name("other.safetensors"))
    check(loaded, models[1])
    for model in (models[0], models[1], models[0]):
        loaded.swap_weights(model.state_dict())
        check(loaded, model)
    assert len(compiles) == 1


def test_a_model_can_begin_with_other_weights(models, path: Path):
    gc.save(models[1].state_dict(), path.with_name("other.safetensors"))
    check(gc.load(path, weights=path.with_name("other.safetensors")), models[1])
    check(gc.load(path, weights=models[1].state_dict(), trust=True), models[1])


def test_code_for_any_weights_is_in_the_cache_whatever_the_weights_are(models, path: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    check(gc.load(path, weights=models[1].state_dict()), models[1])
    monkeypatch.setattr(model_programs, "compile_stages", None)
    again = gc.load(path, weights=make().state_dict())
    again.swap_weights(models[1].state_dict())
    check(again, models[1])
    assert list(again.seconds) == ["cache"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("4.bias"), "'4.bias' is missing"),
        (lambda state: state.update({"4.bias": gc.zeros(6)}), r"'4.bias' has shape \[6\] instead of \[5\]"),
        (
            lambda state: state.update({"4.bias": gc.zeros(5, dtype=gc.float64)}),
            "is float64 instead of float32",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused_and_nothing_changes(models, path: Path, change, message: str):
    state = dict(models[1].state_dict())
    change(state)
    loaded = gc.load(path)
    with pytest.raises(StateDictError, match=message):
        loaded.swap_weights(state)
    check(loaded, models[0])


def test_a_damaged_file_of_weights_changes_nothing(models, path: Path):
    other = path.with_name("other.safetensors")
    gc.save(models[1].state_dict(), other)
    other.write_bytes(other.read_bytes()[:-9])
    loaded = gc.load(path)
    with pytest.raises(ArtifactError):
        loaded.swap_weights(other)
    check(loaded, models[0])


def test_entries_with_named_dimensions_take_other_weights(tmp_path: Path):
    gc.manual_seed(0)
    one, two = nn.Linear(4, 3).eval(), nn.Linear(4, 3).eval()
    gc.export(one, gc.zeros(2, 4), path=tmp_path / "n.gcm", dims=[(gc.Dim("batch", max=9),)])
    loaded, x = gc.load(tmp_path / "n.gcm"), gc.rand(7, 4)
    loaded.swap_weights(two.state_dict())
    np.testing.assert_allclose(loaded(x.numpy()), two(x).detach().numpy(), rtol=1e-5)
