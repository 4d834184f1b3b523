"""Entries as steps: names of inputs and numbers, states that come back, settings, and what cannot be trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.sizes.named_dims import Dim
from graphc.cli.trainer.entry_step import EntryStep, batch_of, batch_size, entry_to_train, with_short_names
from graphc.errors import ArgumentError, ArtifactError
from graphc.files.manifest import TensorSpec
from tests.cli.trained import make_trainable


@pytest.fixture
def step(tmp_path: Path) -> EntryStep:
    make_trainable(tmp_path / "net.gcm")
    model = gc.load(tmp_path / "net.gcm")
    return EntryStep(model, entry_to_train(model, None))


def batch(count: int = 4) -> dict[str, np.ndarray]:
    return {"x": np.ones((count, 6), np.float32), "y": np.zeros(count, np.int64)}


def test_names_are_short(step: EntryStep):
    assert [spec.name for spec in step.inputs] == ["x", "y"]
    assert step.names == ("loss", "accuracy")
    loss, accuracy = step(batch())
    assert loss > 0 and 0 <= accuracy <= 1


def test_a_state_comes_back(step: EntryStep):
    state = step.state()
    assert "graphc.random" in state
    first = [step(batch()) for _ in range(3)]
    step.restore(state)
    assert [step(batch()) for _ in range(3)] == first
    with pytest.raises(ArtifactError, match="other parameters or states"):
        step.restore({**state, "more": np.zeros(3)})
    with pytest.raises(ArtifactError):
        step.restore({name: array.astype(np.float64) for name, array in state.items()})


def test_seeds_decide_the_random_numbers(step: EntryStep):
    state, losses = step.state(), []
    for seed in (1, 1, 2):
        step.restore(state)
        step.seed(seed)
        losses.append(step(batch())[0])
    assert losses[0] == losses[1] != losses[2]


def test_numbers_are_set_by_their_last_name(step: EntryStep):
    assert step.put("lr", 0.5) == ["optimizer.group0.lr"]
    assert step.state()["optimizer.group0.lr"] == np.float32(0.5)
    with pytest.raises(ArgumentError, match="no number 'rate'"):
        step.put("rate", 1.0)


def test_entries_that_do_not_train(tmp_path: Path, step: EntryStep):
    with pytest.raises(ArgumentError, match="the entry infer writes no parameters"):
        EntryStep(step.model, step.model.entry("infer"))
    gc.export(nn.Linear(3, 2), gc.zeros(4, 3), path=tmp_path / "plain.gcm")
    with pytest.raises(ArgumentError, match="no entries that train"):
        entry_to_train(gc.load(tmp_path / "plain.gcm"), None)


def test_sizes_of_batches():
    open_batch = Dim("batch", 2, 16)
    specs = [TensorSpec("x", "f32", (open_batch, 3)), TensorSpec("y", "i64", (open_batch,))]
    assert batch_of(specs, "e") is open_batch
    assert batch_size(open_batch, 8) == 8 and 2 <= batch_size(open_batch, None) <= 16
    for wanted in (1, 17):
        with pytest.raises(ArgumentError, match="batches of 2 to 16"):
            batch_size(open_batch, wanted)
    assert batch_size(5, None) == batch_size(5, 5) == 5
    for wrong in ([TensorSpec("x", "f32", ())], [TensorSpec("x", "f32", (2,)), TensorSpec("y", "f32", (3,))], []):
        with pytest.raises(ArgumentError, match="no common batch"):
            batch_of(wrong, "e")


def test_names_that_would_be_the_same_stay_long():
    specs = [TensorSpec(name, "f32", (2,)) for name in ("x.0", "x.1", "y.0", "z")]
    assert [s.name for s in with_short_names(specs)] == ["x.0", "x.1", "y", "z"]
