"""The loop: what it counts and tells, where it stops, and that a resumed training ends with the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc.cli.trainer.order import Order, OrderedBatches
from graphc.errors import ArgumentError, ArtifactError, NonFiniteError
from graphc.training.checkpoint import Checkpoints
from graphc.training.loop import Rules, Training, TrainingProgress, Watcher, samples_in
from tests.training.linear import Linear, data

ORDER = Order(20, 4, seed=1, shuffle=True)


class Log(Watcher):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.paths: list[Path] = []

    def line(self, line: Mapping[str, Any]) -> None:
        self.lines.append({name: value for name, value in line.items() if name != "seconds"})

    def saved(self, path: Path) -> None:
        self.paths.append(path)


def training(step: Linear, rules: Rules, workers: int = 0, **more: Any) -> tuple[Training, Log]:
    log = Log()
    return Training(step, OrderedBatches(data(), ORDER, workers), rules, watcher=log, **more), log


def whole(rules: Rules) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    step = Linear()
    made, log = training(step, rules)
    assert made.run()
    return step.state(), log.lines


def test_each_epoch_ends_with_means_and_the_loss_falls():
    _, lines = whole(Rules(epochs=20))
    assert [(line["event"], line["step"], line["epoch"]) for line in lines] == [
        ("epoch", 5 * (n + 1), n + 1) for n in range(20)
    ]
    assert lines[-1]["loss"] < lines[0]["loss"] / 20 and "error" in lines[0]


@pytest.mark.parametrize(
    ("batch", "count"),
    [
        (np.ones((5, 2)), 5),
        ((np.ones(3), np.ones(7)), 3),
        ([{"x": (np.ones((4, 1)),)}, 1], 4),
        ((2.0, np.ones(3)), 1),
        (np.ones(()), 1),
        ("text", 1),
    ],
)
def test_samples_of_a_batch(batch: Any, count: int):
    assert samples_in(batch) == count


def test_means_count_samples():
    seen: list[tuple[float, int]] = []

    class Counted(Linear):
        def __call__(self, batch: Mapping[str, np.ndarray]) -> tuple[float, ...]:
            result = super().__call__(batch)
            seen.append((result[0], len(batch["y"])))
            return result

    log = Log()
    Training(Counted(), OrderedBatches(data(10), Order(10, 4)), Rules(epochs=1), watcher=log).run()
    assert [count for _, count in seen] == [4, 4, 2]
    assert log.lines[0]["loss"] == pytest.approx(sum(v * n for v, n in seen) / 10)


def test_lines_between_and_measures_of_other_data():
    log = Log()
    rules = Rules(epochs=1, log=2)
    Training(
        Linear(), OrderedBatches(data(), ORDER), rules, watcher=log, evaluate=lambda: {"valid.accuracy": 0.5}
    ).run()
    assert [(line["event"], line["step"]) for line in log.lines] == [("step", 2), ("step", 4), ("epoch", 5)]
    assert log.lines[-1]["valid.accuracy"] == 0.5


@pytest.mark.parametrize("stop", [1, 3, 5, 7, 10, 12])
@pytest.mark.parametrize("every", [0, 1, 3])
def test_a_stopped_training_that_goes_on_gives_the_same_bits(stop: int, every: int, tmp_path: Path):
    rules = Rules(epochs=3, every=every, log=2)
    state, lines = whole(rules)
    first, before = training(Linear(), rules, checkpoints=Checkpoints(tmp_path, 2))
    assert not first.run(lambda: first.progress.step == stop)
    assert first.checkpoints is not None
    first.checkpoints.close()
    step = Linear()
    second, after = training(step, rules, checkpoints=Checkpoints(tmp_path, 2))
    assert second.resume() and second.progress.step == stop
    assert second.run()
    assert all(np.array_equal(step.state()[name], state[name]) for name in state)
    assert before.lines + after.lines == lines


def test_what_was_not_saved_is_done_again(tmp_path: Path):
    """As after a kill: the process is gone, and the checkpoint is of some steps before."""
    rules = Rules(epochs=3, every=4)
    state, lines = whole(rules)
    first, before = training(Linear(), rules, checkpoints=Checkpoints(tmp_path, 2))

    def die() -> bool:
        if first.progress.step == 11:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        first.run(die)
    assert first.checkpoints is not None
    first.checkpoints.close()
    step = Linear()
    second, after = training(step, rules, checkpoints=Checkpoints(tmp_path, 2))
    assert second.resume() and second.progress.step == 8
    second.run()
    assert all(np.array_equal(step.state()[name], state[name]) for name in state)
    kept = [line for line in before.lines if line["step"] <= 8]
    assert kept + after.lines == lines


def test_a_training_that_is_done_has_nothing_to_do(tmp_path: Path):
    rules = Rules(epochs=1)
    first, _ = training(Linear(), rules, checkpoints=Checkpoints(tmp_path, 2))
    first.run()
    assert first.checkpoints is not None
    first.checkpoints.close()
    second, log = training(Linear(), rules, checkpoints=Checkpoints(tmp_path, 2))
    assert second.resume() and second.run() and not log.lines and not log.paths


def test_nothing_to_resume_is_told(tmp_path: Path):
    assert not training(Linear(), Rules(1), checkpoints=Checkpoints(tmp_path, 1))[0].resume()
    assert not training(Linear(), Rules(1))[0].resume()


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path):
    first, _ = training(Linear(), Rules(1), checkpoints=Checkpoints(tmp_path, 1), settings={"seed": 1, "batch": 4})
    first.run()
    assert first.checkpoints is not None
    first.checkpoints.close()
    second, _ = training(Linear(), Rules(1), checkpoints=Checkpoints(tmp_path, 1), settings={"seed": 2, "batch": 4})
    with pytest.raises(ArgumentError, match="belongs to another training: seed 1 and not 2"):
        second.resume()
    assert second.progress == TrainingProgress()


def test_a_checkpoint_without_the_numbers_is_refused(tmp_path: Path):
    first, _ = training(Linear(), Rules(1), checkpoints=Checkpoints(tmp_path, 1))
    first.run()
    assert first.checkpoints is not None
    checkpoint = first.checkpoints.newest()
    assert checkpoint is not None
    object.__setattr__(checkpoint[1], "progress", {"epochs": 3})
    first.checkpoints.write(99, checkpoint[1])
    with pytest.raises(ArtifactError, match="not the checkpoint of a training"):
        first.resume()


class Breaking(Linear):
    """Gives NaN at the third step."""

    def __call__(self, batch: Mapping[str, np.ndarray]) -> tuple[float, ...]:
        loss, error = super().__call__(batch)
        return (float("nan") if self.random[1] == 3 else loss), error


def test_a_loss_that_is_no_number_stops_the_training(tmp_path: Path):
    made, log = training(Breaking(), Rules(2, every=2), checkpoints=Checkpoints(tmp_path, 5))
    with pytest.raises(NonFiniteError, match=r"loss of step 3 \(epoch 1, batch 3\) is nan; .* step 2 is from before"):
        made.run()
    assert [p.name for p in log.paths] == ["step-000000002.npz"]


def test_keep_going_goes_on():
    made, log = training(Breaking(), Rules(2, log=1, keep_going=True))
    assert made.run()
    assert [line["loss"] is None for line in log.lines[:6]] == [False, False, True, False, False, True]
    assert log.lines[-1]["loss"] is not None


def test_workers_change_nothing():
    alone, together = Linear(), Linear()
    training(alone, Rules(2))[0].run()
    training(together, Rules(2), workers=3)[0].run()
    assert np.array_equal(alone.weight, together.weight)
