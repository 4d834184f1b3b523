"""fit: measures, early ends, best weights, resumed trainings with the same bits, and arguments that it refuses."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, NonFiniteError
from graphc.nn import functional as F
from graphc.utils.data import DataLoader, TensorDataset

COUNT = 60


def loss_and_accuracy(scores: Any, target: Any) -> Any:
    """Return the loss, and a number beside it."""
    return F.cross_entropy(scores, target), {"accuracy": (scores.argmax(1) == target).float().mean()}


class Task:
    """A small classifier with dropout and batch normalization, and shuffled data for it."""

    def __init__(self, loss: Callable[..., Any] = F.cross_entropy, lr: float = 0.02):
        gc.manual_seed(1)
        rng = np.random.default_rng(0)
        x = rng.standard_normal((2 * COUNT, 4)).astype(np.float32)
        data = TensorDataset(gc.tensor(x), gc.tensor((x.sum(1) > 0).astype(np.int64)))
        self.net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 2))
        self.optimizer = gc.optim.Adam(self.net.parameters(), lr=lr)
        self.step = gc.compile_step(self.net, loss, self.optimizer)
        train, valid = (gc.utils.data.Subset(data, range(i * COUNT, (i + 1) * COUNT)) for i in (0, 1))
        self.loader, self.valid = DataLoader(train, 16, shuffle=True), DataLoader(valid, 32)

    def fit(self, **more: Any) -> Any:
        return gc.fit(self.step, self.loader, bar=False, **{"valid": self.valid, "epochs": 3, **more})

    def weights(self) -> list[np.ndarray]:
        return [tensor.numpy().copy() for tensor in self.net.state_dict().values()]


class Interrupted(DataLoader):
    """A loader that sends Ctrl-C when it reads a batch, counted from 1."""

    stop = 0
    count = 0

    def __iter__(self) -> Any:
        for batch in super().__iter__():
            self.count += 1
            if self.count == self.stop:
                os.kill(os.getpid(), signal.SIGINT)
            yield batch


def equal(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_the_history_has_the_means_of_training_and_validation():
    task = Task(loss_and_accuracy)
    metrics = {"right": gc.metrics.Accuracy(), "f1": gc.metrics.F1()}
    history = task.fit(epochs=30, metrics=metrics)
    assert history.columns == ["loss", "accuracy", "valid.loss", "valid.accuracy", "valid.right", "valid.f1"]
    assert history["epoch"] == list(range(1, 31)) and history["loss"][-1] < history["loss"][0] / 2
    task.net.eval()
    x, y = (gc.stack(list(part)) for part in zip(*task.valid.dataset, strict=True))
    loss, numbers = loss_and_accuracy(task.net(x), y)
    assert history["valid.loss"][-1] == pytest.approx(float(loss), rel=1e-5)
    assert history["valid.right"][-1] == pytest.approx(float(numbers["accuracy"]))
    assert history["valid.accuracy"][-1] == pytest.approx(history["valid.right"][-1])


def test_a_module_is_compiled_with_its_loss():
    task = Task()
    gc.fit(task.net, task.loader, loss=F.cross_entropy, optimizer=task.optimizer, epochs=2, bar=False)
    other = Task()
    other.fit(epochs=2, valid=None)
    assert equal(task.weights(), other.weights())


def test_modes_of_modules_stay():
    task = Task()
    task.net[1].eval()
    task.fit()
    assert task.net.training and not task.net[1].training


def test_patience_ends_and_the_best_weights_stay():
    task = Task(lr=1.0)
    measured: list[tuple[float, list[np.ndarray]]] = []

    def valid() -> dict[str, float]:
        measured.append(((len(measured) - 3) ** 2 / 10, task.weights()))
        return {"loss": measured[-1][0]}

    history = task.fit(valid=valid, epochs=20, patience=2, keep_best=True)
    assert len(history) == 6 and history.best_epoch == 4
    assert equal(task.weights(), measured[3][1]) and not equal(task.weights(), measured[5][1])


def test_goals():
    numbers = iter([0.1, 0.5, 0.3, 0.2, 0.6])

    def valid() -> dict[str, float]:
        return {"reward": next(numbers)}

    assert Task().fit(valid=valid, epochs=9, patience=2, keep_best="max:valid.reward").best_epoch == 2
    with pytest.raises(ArgumentError, match=r"nothing says whether a higher valid\.reward is better"):
        Task().fit(valid=valid, patience=1)
    with pytest.raises(ArgumentError, match=r"there is no column 'valid\.reward'"):
        Task().fit(keep_best="min:valid.reward")
    history = Task().fit(metrics={"right": gc.metrics.Accuracy()}, keep_best="valid.right")
    assert history["valid.right"][history.best_epoch - 1] == max(history["valid.right"])


@pytest.mark.parametrize("stop", [1, 4, 6, 12])
def test_ctrl_c_loses_nothing(stop: int, tmp_path: Path):
    def run(folder: Path | None, stop: int = 0) -> tuple[Task, Any]:
        task = Task()
        task.loader = Interrupted(task.loader.dataset, 16, shuffle=True)
        task.loader.stop = stop
        schedule = gc.optim.lr_scheduler.StepLR(task.optimizer, 1, gamma=0.5)
        return task, task.fit(checkpoint=folder, callbacks=[schedule], keep_best=True)

    whole, history = run(None)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match=f"after step {stop}; the same call continues"):
        run(tmp_path, stop)
    assert signal.getsignal(signal.SIGINT) is before
    task, resumed = run(tmp_path)
    assert equal(task.weights(), whole.weights())
    assert [{**row, "seconds": 0} for row in resumed] == [{**row, "seconds": 0} for row in history]
    assert task.optimizer.param_groups[0]["lr"] == whole.optimizer.param_groups[0]["lr"]
    assert len(run(tmp_path)[1]) == 3


def test_more_epochs_continue_from_a_folder(tmp_path: Path):
    Task().fit(epochs=2, checkpoint=tmp_path)
    assert len(Task().fit(epochs=4, checkpoint=tmp_path)) == 4
    other = Task()
    other.fit(epochs=4)
    again = Task()
    again.fit(epochs=4, checkpoint=tmp_path)
    assert equal(again.weights(), other.weights())


def test_callbacks_end_the_training_also_after_a_restart(tmp_path: Path):
    seen: list[int] = []

    def callback(history: Any) -> bool:
        seen.append(len(history))
        return len(history) == 2

    assert len(Task().fit(epochs=5, callbacks=[callback], checkpoint=tmp_path)) == 2
    assert len(Task().fit(epochs=5, callbacks=[callback], checkpoint=tmp_path)) == 2 and seen == [1, 2]


def test_a_plateau_follows_the_goal():
    task = Task()
    plateau = gc.optim.lr_scheduler.ReduceLROnPlateau(task.optimizer, factor=0.5, patience=0)
    task.fit(valid=lambda: {"loss": 1.0}, callbacks=[plateau])
    assert task.optimizer.param_groups[0]["lr"] == 0.02 / 4


def test_functions_train_without_a_state():
    task = Task()

    @gc.compile
    def train(x: Any, y: Any) -> Any:
        task.optimizer.zero_grad()
        loss = F.cross_entropy(task.net(x), y)
        loss.backward()
        task.optimizer.step()
        return loss

    history = gc.fit(train, task.loader, epochs=20, bar=False)
    assert history["loss"][-1] < history["loss"][0]
    for more in ({"keep_best": True}, {"valid": task.valid}):
        with pytest.raises(ArgumentError, match=r"a step of gc\.compile_step"):
            gc.fit(train, task.loader, bar=False, **more)


def test_batches_are_arguments_as_of_the_step():
    net = nn.Linear(3, 1)
    x = gc.rand(8, 3)
    batches = [{"input": x}]
    step = gc.compile_step(net, lambda output: (output**2).mean(), gc.optim.SGD(net.parameters(), lr=0.1))
    history = gc.fit(step, batches, valid=batches, epochs=5, bar=False)
    assert history["valid.loss"][-1] < history["valid.loss"][0]


def test_a_table_at_the_end(capsys: pytest.CaptureFixture[str]):
    task = Task()
    history = gc.fit(task.step, task.loader, epochs=2)
    assert capsys.readouterr().out == f"{history}\n"


def test_a_loss_that_is_not_finite_ends():
    task = Task(lambda scores, y: F.cross_entropy(scores, y) / 0.0)
    with pytest.raises(NonFiniteError, match=r"(?s)loss of step 1 .* is inf.*smaller learning rate"):
        task.fit()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"epochs": 0}, "epochs is a whole number of at least 1"),
        ({"patience": -1}, "patience is a whole number of at least 0"),
        ({"loss": F.mse_loss}, "CompiledStep is not a Module"),
        ({"valid": None, "metrics": {"a": gc.metrics.Accuracy()}}, "measured on the batches of valid="),
        ({"metrics": {"a": F.mse_loss}}, "'a' is not a graphc.metrics.Metric"),
        ({"metrics": {"a": gc.metrics.Confusion(2)}}, r"a is an array \[2, 2\]"),
        ({"callbacks": [3]}, "a int is no callback"),
        ({"valid": iter([])}, "cannot be read in each epoch"),
        ({"keep_best": "highest:loss"}, "does not name a column"),
    ],
)
def test_arguments_that_are_refused(more: dict[str, Any], message: str):
    with pytest.raises(ArgumentError, match=message):
        Task().fit(**more)


def test_other_inputs_that_are_refused(tmp_path: Path):
    task = Task()
    with pytest.raises(ArgumentError, match="a Module needs an optimizer"):
        gc.fit(task.net, task.loader)
    with pytest.raises(ArgumentError, match="there are no batches in epoch 1"):
        gc.fit(task.step, [], bar=False)
    with pytest.raises(ArgumentError, match="without a number"):
        gc.fit(lambda x, y: None, task.loader, bar=False)
    task.fit(checkpoint=tmp_path)
    with pytest.raises(ArgumentError, match="belongs to another training: batches 4 and not 1"):
        gc.fit(task.step, task.valid.dataset and DataLoader(task.valid.dataset, 60), checkpoint=tmp_path, bar=False)
