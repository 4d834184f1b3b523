"""Weights and states of loaded models by name, read and restored together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import StateDictError
from graphc.models.model_file import LoadedModel

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


class Counting(nn.Module):
    """Counts its calls, and adds a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(gc.ones(3))
        self.register_buffer("calls", gc.zeros(3))

    def forward(self, x: Any) -> Any:
        self.calls.copy_(self.calls + 1)
        return x + self.bias + self.calls

    def look(self) -> Any:
        return self.calls * 10


@pytest.fixture
def model(tmp_path: Path) -> LoadedModel:
    net = Counting()
    gc.export({"add": gc.Entry(net, X), "look": gc.Entry(net.look)}, path=tmp_path / "c.gcm")
    return gc.load(tmp_path / "c.gcm")


def test_states_are_shared_by_entries_and_go_back(model: LoadedModel):
    assert set(model.states) == {"calls"} and set(model.state_dict()) == {"bias", "calls"}
    model(X)
    np.testing.assert_array_equal(model(X), X + 3)
    assert model.entry("look")().tolist() == [20, 20, 20]
    model.reset_state()
    np.testing.assert_array_equal(model(X), X + 2)


def test_a_state_dictionary_is_a_copy(model: LoadedModel):
    saved = model.state_dict()
    model(X)
    assert saved["calls"].tolist() == [0, 0, 0] and model.state_dict()["calls"].tolist() == [1, 1, 1]
    saved["bias"].fill_(7)
    np.testing.assert_array_equal(model(X), X + 3)


def test_states_are_written_in_place_and_constants_make_new_programs(model: LoadedModel):
    call, program = model.entry("look"), model.program
    call()
    model.load_state_dict({"calls": np.array([1, 2, 3])}, strict=False)
    assert model.program is program and call().tolist() == [10, 20, 30]
    model.load_state_dict({"bias": gc.tensor([0.0, 5.0, 0.0]), "calls": gc.zeros(3)})
    np.testing.assert_allclose(model(X), X + np.array([1, 6, 1]), rtol=1e-6)
    assert model.program is not program and model.entry("add").program is model.program
    same = model.program
    model.load_state_dict(model.state_dict())
    assert model.program is same


def test_what_was_saved_is_loaded(model: LoadedModel, tmp_path: Path):
    pytest.importorskip("safetensors")
    model(X)
    gc.save(model.state_dict(), tmp_path / "s.safetensors")
    model(X)
    model.load_state_dict(gc.load(tmp_path / "s.safetensors"))
    np.testing.assert_array_equal(model(X), X + 3)


@pytest.mark.parametrize(
    ("state", "strict", "message"),
    [
        ({"calls": np.zeros(3)}, True, "missing 'bias'"),
        ({"calls": np.zeros(3), "bias": np.zeros(3), "other": np.zeros(3)}, True, "unknown 'other'"),
        ({"calls": np.ones(3), "bias": np.zeros(4)}, True, r"'bias' has shape \[4\] instead of \[3\]"),
        ({"calls": np.ones(3), "bias": np.zeros(4)}, False, r"'bias' has shape \[4\]"),
    ],
)
def test_states_that_do_not_fit_change_nothing(model: LoadedModel, state: dict, strict: bool, message: str):
    with pytest.raises(StateDictError, match=message):
        model.load_state_dict(state, strict=strict)
    np.testing.assert_array_equal(model(X), X + 2)


def test_a_file_is_not_changed_by_what_is_loaded_from_it(model: LoadedModel, tmp_path: Path):
    before = (tmp_path / "c.gcm").read_bytes()
    model.load_state_dict({"bias": np.zeros(3)}, strict=False)
    model(X)
    assert (tmp_path / "c.gcm").read_bytes() == before
    np.testing.assert_array_equal(gc.load(tmp_path / "c.gcm")(X), X + 2)


def test_types_are_those_of_the_model(model: LoadedModel):
    model.load_state_dict({"calls": [3, 4, 5], "bias": np.ones(3, np.float64)})
    assert model.states["calls"].dtype == np.float32
    np.testing.assert_allclose(model(X), X + np.array([5, 6, 7]), rtol=1e-6)
