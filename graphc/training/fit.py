"""``fit``: train a model over epochs of a loader, with validation, early stops, checkpoints and a history."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.progress import Progress as Bar
from graphc.base.records import dataclass
from graphc.distributed.group import group
from graphc.metrics.metric import Metric
from graphc.nn.module import Module
from graphc.optim.lr_scheduler import ReduceLROnPlateau
from graphc.optim.schedule import LRScheduler
from graphc.steps.step import CompiledStep, compile_step
from graphc.training.batches import LoaderBatches
from graphc.training.checkpoint import Checkpoints
from graphc.training.history import VALID, Goal, History
from graphc.training.interrupt import in_any_process, stop_on_interrupt
from graphc.training.loop import Rules, Training, TrainingProgress, Watcher
from graphc.training.stateful_step import StatefulStep, StepWeights
from graphc.training.validation import Validation, column_value

KEEP = 2
"""Checkpoints in a folder."""


def fit(
    step: Any,
    loader: Any,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    valid: Any = None,
    epochs: int = 1,
    patience: int = 0,
    keep_best: bool | str = False,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 0,
    metrics: Mapping[str, Metric] | None = None,
    callbacks: Sequence[Any] = (),
    bar: bool = True,
) -> History:
    """Train over epochs of a loader, and return the measures of each epoch. docs/training.md explains the arguments.

    Args:
        step: a step of ``compile_step``; a Module, with ``optimizer`` and ``loss``; or a function that trains on a
            batch and returns its loss. A batch ``(x, y)`` is a call ``step(x, y)``.
        loader: a DataLoader, or a list of batches.
        valid: a loader for the loss and ``metrics`` after each epoch, or a function that returns numbers by name.
        patience: end after so many epochs without a better value of the goal: the loss on ``valid``, or else the loss.
        keep_best: True ends with the state after the best epoch; a name such as ``"valid.accuracy"``, or
            ``"max:valid.reward"``, also chooses the goal.
        checkpoint, every: folder from which the same call continues after an interruption, and the number of steps
            between checkpoints (0: one after each epoch).
        metrics: metrics of ``graphc.metrics`` by name, measured on ``valid``.
        callbacks: functions of the history after each epoch, which end the training by returning True, and schedules.
        bar: show progress on a terminal, and print the history at the end.

    Returns:
        The history: ``history["valid.loss"]`` is a column, ``str(history)`` a table, ``history.plot(path)`` a picture.

    Raises:
        ArgumentError: arguments that do not fit each other, or a folder with checkpoints of another training.
        NonFiniteError: a loss is NaN or infinite.
        KeyboardInterrupt: after Ctrl-C, with the current step finished and a checkpoint written.

    Example:
        >>> import graphc as gc
        >>> x = gc.rand(64, 3)
        >>> batches = [(part, part.sum(1, keepdim=True)) for part in x.split(16)]
        >>> net = gc.nn.Linear(3, 1)
        >>> sgd = gc.optim.SGD(net.parameters(), lr=0.1)
        >>> history = gc.fit(net, batches, loss=gc.nn.MSELoss(), optimizer=sgd, epochs=20, bar=False)
        >>> len(history), history["loss"][-1] < history["loss"][0]
        (20, True)
    """
    step = _step(step, loss, optimizer)
    metrics = _checked(metrics, valid, epochs, patience, every)
    goal = _goal(keep_best, metrics)
    rules = Rules(epochs, every, patience=patience, keeps_best=bool(keep_best), goal=goal)
    return _fit(step, LoaderBatches(loader), rules, valid, checkpoint, metrics, _Callbacks(list(callbacks)), bar)


def _fit(
    step: Any,
    batches: LoaderBatches,
    rules: Rules,
    valid: Any,
    checkpoint: str | os.PathLike[str] | None,
    metrics: Mapping[str, Metric],
    calls: _Callbacks,
    bar: bool,
) -> History:
    stateful = StatefulStep(step, _parts(step, batches, calls, bool(checkpoint or rules.keeps_best)))
    with ExitStack() as stack:
        watcher = stack.enter_context(closing(_Bar(rules.epochs, batches.length))) if bar else Watcher()
        training = Training(
            stateful,
            batches,
            rules,
            settings={"batches": batches.length},
            checkpoints=stack.enter_context(closing(_folder(checkpoint))) if checkpoint else None,
            evaluate=_evaluate(step, valid, metrics, stateful),
            watcher=watcher,
            after_epoch=calls,
        )
        if checkpoint and training.resume() and bar:
            print(f"fit continues after step {training.progress.step}", file=sys.stderr)
        with stop_on_interrupt() as stopped:
            is_done = training.run(stopped)
    if not is_done:
        effect = f"the same call continues from {os.fspath(checkpoint)}" if checkpoint else "the model has its weights"
        raise KeyboardInterrupt(f"fit was interrupted after step {training.progress.step}; {effect}")
    if bar and group().rank == 0:
        print(training.history)
    return training.history


def _step(step: Any, loss: Any, optimizer: Any) -> Any:
    if isinstance(step, Module):
        if optimizer is None:
            raise ArgumentError(
                "fit: a Module needs an optimizer", remedy="pass loss= and optimizer=, or a step of gc.compile_step"
            )
        return compile_step(step, loss, optimizer)
    if loss is not None or optimizer is not None or not callable(step):
        raise ArgumentError(
            f"fit: {type(step).__name__} is not a Module to be trained with loss= and optimizer=",
            remedy="pass a Module with both, or a step of gc.compile_step without them",
        )
    return step


def _checked(
    metrics: Mapping[str, Metric] | None, valid: Any, epochs: int, patience: int, every: int
) -> Mapping[str, Metric]:
    """Return the metrics. Raise ArgumentError for arguments that do not fit each other."""
    for name, number, least in (("epochs", epochs, 1), ("patience", patience, 0), ("every", every, 0)):
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise ArgumentError(f"fit: {name} is a whole number of at least {least}, got {number!r}")
    if metrics and (valid is None or callable(valid)):
        raise ArgumentError(
            "fit: metrics are measured on the batches of valid=, which is no loader",
            remedy="pass a loader as valid=; on training data, return numbers beside the loss: "
            "return loss, {'accuracy': accuracy}",
        )
    wrong = [name for name, metric in (metrics or {}).items() if not isinstance(metric, Metric)]
    if wrong:
        raise ArgumentError(f"fit: the metric {wrong[0]!r} is not a graphc.metrics.Metric", remedy="pass an instance")
    return metrics or {}


def _parts(step: Any, batches: LoaderBatches, calls: _Callbacks, is_required: bool) -> dict[str, Any]:
    """Return the parts of a training that have a state, in the order in which it is restored."""
    if isinstance(step, CompiledStep):
        parts = {"weights": StepWeights(step), "step": step}
    elif hasattr(step, "state_dict") and hasattr(step, "load_state_dict"):
        parts = {"step": step}
    elif is_required:
        raise ArgumentError(
            f"fit: checkpoint and keep_best need the state of the training, which a {type(step).__name__} has not",
            remedy="pass a step of gc.compile_step, or an object with __call__, state_dict and load_state_dict",
        )
    else:
        parts = {}
    return {**parts, "callbacks": calls, "batches": batches}


def _goal(keep_best: bool | str, metrics: Mapping[str, Metric]) -> Goal:
    goal = Goal.parse(keep_best) if isinstance(keep_best, str) else Goal()
    metric = metrics.get((goal.column or "").removeprefix(VALID))
    if metric is not None and goal.is_higher_better is None:
        return Goal(goal.column, metric.is_higher_better)
    return goal


def _folder(path: str | os.PathLike[str]) -> Checkpoints:
    here = group()
    return Checkpoints(Path(path, f"process-{here.rank}") if here.size > 1 else path, KEEP)


def _evaluate(
    step: Any, valid: Any, metrics: Mapping[str, Metric], stateful: StatefulStep
) -> Callable[[], Mapping[str, float]] | None:
    if valid is None:
        return None
    if callable(valid):
        measure: Any = valid
        return lambda: {f"{VALID}{name}": column_value(name, value) for name, value in measure().items()}
    if not isinstance(step, CompiledStep):
        raise ArgumentError(
            f"fit: a {type(step).__name__} has no model to measure on the batches of valid=",
            remedy="pass a step of gc.compile_step, or as valid= a function that returns numbers by name",
        )
    validation = Validation(step, valid, metrics)
    return lambda: validation.measure(stateful.names)


@dataclass(frozen=True)
class _Callbacks:
    """Calls after each epoch."""

    calls: list[Any]

    def __post_init__(self) -> None:
        wrong = [call for call in self.calls if not (callable(call) or isinstance(call, LRScheduler))]
        if wrong:
            raise ArgumentError(
                f"fit: a {type(wrong[0]).__name__} is no callback",
                remedy="pass functions of the history, or schedules of graphc.optim.lr_scheduler",
            )

    def __call__(self, history: History) -> bool:
        """Call all, and return whether one of them ends the training, in any process."""
        return in_any_process(any([self._ends(call, history) for call in self.calls]))

    def _ends(self, call: Any, history: History) -> bool:
        if isinstance(call, ReduceLROnPlateau):
            column = history.goal_column
            assert column is not None
            call.step(history[column][-1])
        elif isinstance(call, LRScheduler):
            call.step()
        else:
            return call(history) is True
        return False

    def state_dict(self) -> dict[str, Any]:
        return {str(i): call.state_dict() for i, call in enumerate(self.calls) if hasattr(call, "state_dict")}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for i, call in enumerate(self.calls):
            if hasattr(call, "load_state_dict"):
                call.load_state_dict(state[str(i)])


class _Bar(Watcher):
    """Progress on a terminal, in steps, or in epochs where the number of batches is not known."""

    def __init__(self, epochs: int, length: int):
        self._length = length
        self._bar = Bar("training", epochs * (length or 1), "steps" if length else "epochs")

    def step(self, progress: TrainingProgress, loss: float) -> None:
        done = progress.step if self._length else progress.epoch
        self._bar.tell(done, f"epoch {progress.epoch + 1}, loss {loss:.4g}")

    def close(self) -> None:
        """Clear the line."""
        self._bar.__exit__(None, None, None)
