"""Calls of loaded entries: which run natively, which part is apart from others, and what is said of wrong ones."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, GradientError, TraceError
from graphc.models.model_file import LoadedModel

X = np.ones((2, 3), np.float32)


def loaded(tmp_path: Path, derivative: bool = False, **more: Any) -> LoadedModel:
    gc.manual_seed(0)
    gc.export(nn.Linear(3, 2), X, path=tmp_path / "m.gcm", derivative=derivative)
    return gc.load(tmp_path / "m.gcm", **more)


def test_without_a_derivative_gradients_are_refused_by_name(tmp_path: Path):
    model = loaded(tmp_path)
    x = gc.ones(2, 3, requires_grad=True)
    with pytest.raises(GradientError, match=r"Linear computes no gradients") as caught:
        model(x)
    assert "derivative=True" in str(caught.value)
    with gc.no_grad():
        assert not model(x).requires_grad
    assert not model(x.detach()).requires_grad
    with pytest.raises(GradientError, match="holds no derivative") as caught:
        gc.load(tmp_path / "m.gcm", trainable=True)
    assert "derivative=True" in str(caught.value)


def test_outputs_with_gradients_are_written_to_no_array(tmp_path: Path):
    model = loaded(tmp_path, derivative=True)
    with pytest.raises(GradientError, match="cannot be written to the arrays of `out`"):
        model(gc.ones(2, 3, requires_grad=True), out=np.zeros((2, 2), np.float32))


def test_a_loaded_model_is_no_part_of_a_compiled_function(tmp_path: Path):
    model = loaded(tmp_path, derivative=True)
    with pytest.raises(TraceError, match="cannot be part of a compiled function"):
        gc.compile(lambda x: model(x) + 1)(gc.ones(2, 3))


def test_arguments_are_named_in_what_is_said_of_them(tmp_path: Path):
    model = loaded(tmp_path)
    with pytest.raises(ArgumentError, match="Linear has no input 'y'"):
        model(y=X)
    with pytest.raises(ArgumentError, match="Linear"):
        model(X, X)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", gc.zeros(3000))

    def add(self, x: Any) -> Any:
        self.total.copy_(self.total + x)
        return self.total.sum()

    def double(self) -> Any:
        self.total.copy_(self.total * 1.0)
        return self.total[0]

    def spread(self) -> Any:
        return self.total.max() - self.total.min()


@pytest.mark.parametrize("native", [False, True])
def test_calls_of_all_entries_that_share_a_state_run_one_at_a_time(tmp_path: Path, native: bool):
    counter = Counter()
    entries = {
        "add": gc.Entry(counter.add, gc.ones(())),
        "double": gc.Entry(counter.double),
        "spread": gc.Entry(counter.spread),
    }
    gc.export(entries, path=tmp_path / "c.gcm", native=native)
    model = gc.load(tmp_path / "c.gcm", trust=native)
    one, spreads = np.ones((), np.float32), []

    def work() -> None:
        for _ in range(200):
            model(one)
            model.entry("double")()
            spreads.append(float(model.entry("spread")()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.states["total"].tolist() == [800] * 3000
    assert set(spreads) == {0}
