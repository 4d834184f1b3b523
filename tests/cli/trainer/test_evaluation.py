"""Measures of an entry on other data: accuracy and numbers of its own, batches of any size, and what does not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc.cli.trainer.conversion import Scaling
from graphc.cli.trainer.entry_step import EntryStep, entry_to_train
from graphc.cli.trainer.evaluation import Evaluation, entry_to_evaluate
from graphc.cli.trainer.measures import measures_named
from graphc.cli.trainer.named_arrays import NamedArrays
from graphc.errors import ArgumentError
from tests.cli.trained import make_trainable


def made(folder: Path, batch: object = None) -> tuple[EntryStep, NamedArrays]:
    make_trainable(folder / "net.gcm", batch)
    model = gc.load(folder / "net.gcm")
    step = EntryStep(model, entry_to_train(model, None))
    rng = np.random.default_rng(0)
    data = NamedArrays({"x": rng.standard_normal((21, 6)).astype(np.float32), "y": rng.integers(0, 3, 21)}, "d")
    data.fit(step.inputs, Scaling())
    return step, data


@pytest.mark.parametrize("batch", [None, 8])
def test_the_first_output_is_compared_with_what_is_left(tmp_path: Path, batch: object):
    step, data = made(tmp_path, batch)
    entry = entry_to_evaluate(step.model, step.entry.name, None)
    assert entry.name == "infer"
    found = Evaluation(entry, data, step.inputs)()
    whole = data.take(range(21))
    open_entry = entry if batch is None else None
    if open_entry is not None:
        scores = open_entry.run([whole["x"]])[0]
    else:
        rows = [*range(21), *[20] * 3]
        scores = np.concatenate([entry.run([data.take(rows[i : i + 8])["x"]])[0] for i in (0, 8, 16)])[:21]
    assert found == {"valid.accuracy": pytest.approx((scores.argmax(1) == whole["y"]).mean())}


def test_measures_are_those_that_are_asked_for(tmp_path: Path):
    step, data = made(tmp_path)
    entry = entry_to_evaluate(step.model, step.entry.name, "infer")
    evaluation = Evaluation(entry, data, step.inputs, measures_named("cross_entropy,top5"))
    found = evaluation()
    assert list(found) == evaluation.names == ["valid.cross_entropy", "valid.top5"] and found["valid.top5"] == 1.0


def test_an_entry_that_takes_everything_is_averaged(tmp_path: Path):
    step, data = made(tmp_path)
    evaluation = Evaluation(step.entry, data, step.inputs)
    assert set(evaluation()) == {"valid.output.0", "valid.output.1.accuracy"}
    with pytest.raises(ArgumentError, match="no target to compare"):
        Evaluation(step.entry, data, step.inputs, measures_named("mse"))


def test_files_without_another_entry_are_told(tmp_path: Path):
    step, _ = made(tmp_path)
    with pytest.raises(ArgumentError, match="no entry other than infer"):
        entry_to_evaluate(step.model, "infer", None)
