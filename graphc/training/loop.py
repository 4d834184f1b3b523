"""Training loop: batches in order, steps, measures, checkpoints, and early stops."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, field
from typing import Any, Protocol

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, NonFiniteError
from graphc.base.records import dataclass
from graphc.distributed.group import group
from graphc.training.checkpoint import Checkpoint, Checkpoints, read_checkpoint
from graphc.training.history import Goal, History


class TrainingStep(Protocol):
    """Training step of a model."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the step's results, known after the first call; the loss first."""
        ...

    def __call__(self, batch: Any) -> tuple[float, ...]:
        """Train on a batch and return a number for each of ``names``."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Return copies of everything that steps write, by name."""
        ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Continue from a state. Raises ArtifactError for the state of another model."""
        ...


class Batches(Protocol):
    """Batches of each epoch, in an order."""

    @property
    def count(self) -> int | None:
        """Number of batches of an epoch; None if only its end tells."""
        ...

    def epoch(self, number: int, start: int) -> Iterable[Any]:
        """Return the batches of an epoch, counted from 0, from index ``start`` on."""
        ...


@dataclass
class TrainingProgress:
    """Position of a training."""

    epoch: int = 0
    """Completed epochs."""
    batch: int = 0
    """Completed batches of the current epoch."""
    step: int = 0
    """Completed steps of all epochs."""
    samples: int = 0
    """Samples of the current epoch."""
    sums: dict[str, float] = field(default_factory=dict)
    """Sums of the results over the current epoch, weighted by the samples of each batch."""
    seconds: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Measures of each epoch, the rows of the History."""
    best_epoch: int = 0
    """Epoch whose state is kept as the best, from 1; 0 for none."""
    is_ended: bool = False
    """Whether ``after_epoch`` ended the training."""


@dataclass(frozen=True)
class Rules:
    """Duration of a training, and intervals of checkpoints and log lines."""

    epochs: int
    every: int = 0
    """Steps between checkpoints; 0: one at the end of each epoch."""
    log: int = 0
    """Steps between lines of measures; 0: one at the end of each epoch."""
    keep_going: bool = False
    """Whether to continue after a loss that is not finite."""
    patience: int = 0
    """Epochs without a better value of the goal after which training ends; 0: all epochs."""
    keeps_best: bool = False
    """Whether the training ends with the state after the best epoch."""
    goal: Goal | None = None
    """Column that says which epoch is the best; None: see ``Goal``."""
    remedy: str = "use a smaller learning rate"
    """Advice for a loss that is not finite."""


class Watcher:
    """Observer of a training. All methods are empty; subclasses override some."""

    def line(self, line: Mapping[str, Any]) -> None:
        """Receive a line of measures; ``event`` is ``step`` or ``epoch``."""

    def step(self, progress: TrainingProgress, loss: float) -> None:
        """Receive the loss of a completed step."""

    def saved(self, path: Any) -> None:
        """Receive the path of a new checkpoint."""


class Training:
    """Training of a step on data, with its progress."""

    def __init__(
        self,
        step: TrainingStep,
        batches: Batches,
        rules: Rules,
        *,
        settings: Mapping[str, Any] | None = None,
        checkpoints: Checkpoints | None = None,
        evaluate: Callable[[], Mapping[str, float]] | None = None,
        watcher: Watcher | None = None,
        after_epoch: Callable[[History], bool] = lambda history: False,
    ):
        """``settings`` identify the training in checkpoints. ``evaluate`` measures at the end of each epoch, by column.
        ``after_epoch`` returns True to end the training."""
        self.step = step
        self.batches = batches
        self.rules = rules
        self.settings = dict(settings or {})
        self.checkpoints = checkpoints
        self.evaluate = evaluate
        self.watcher = watcher or Watcher()
        self.after_epoch = after_epoch
        self.progress = TrainingProgress()
        self._saved = -1
        self._best: dict[str, np.ndarray] = {}
        self._is_over = False

    @property
    def history(self) -> History:
        """Measures of each epoch so far."""
        return History(self.progress.rows, self.rules.goal)

    @property
    def steps(self) -> int:
        """Number of steps of all epochs; 0 if it is not known."""
        return self.rules.epochs * (self.batches.count or 0)

    def resume(self) -> bool:
        """Continue from the newest checkpoint, of all processes; return False without one.

        Raises ArgumentError for the checkpoint of another training, ArtifactError if all are damaged.
        """
        newest = self._newest()
        if newest is None:
            return False
        path, checkpoint = newest
        other = [
            k for k in {*self.settings, *checkpoint.settings} if self.settings.get(k) != checkpoint.settings.get(k)
        ]
        if other:
            listed = ", ".join(
                f"{k} {checkpoint.settings.get(k)} and not {self.settings.get(k)}" for k in sorted(other)
            )
            raise ArgumentError(
                f"{path} belongs to another training: {listed}", remedy="pass the same arguments, or use another folder"
            )
        try:
            progress = TrainingProgress(**checkpoint.progress)
        except TypeError as error:
            raise ArtifactError(f"{path}: not the checkpoint of a training: {error}") from None
        best = History(progress.rows, self.rules.goal).best_epoch or 0
        if self.rules.keeps_best and progress.best_epoch != best:
            raise ArgumentError(
                f"{path} does not hold the state after epoch {best}, the best of its {progress.epoch} epochs",
                remedy="choose the best epoch as before, or use another folder",
            )
        self.step.restore(checkpoint.state)
        self.progress, self._saved = progress, progress.step
        self._best = dict(checkpoint.best) if self.rules.keeps_best else {}
        self._is_over = progress.is_ended or self._has_lost_patience()
        return True

    def _newest(self) -> tuple[Any, Checkpoint] | None:
        """Return the newest checkpoint; of several processes, the one of the last step that all of them have."""
        newest = self.checkpoints.newest() if self.checkpoints is not None else None
        here = group()
        if here.size == 1 or self.checkpoints is None:
            return newest
        last = -1 if newest is None else int(newest[1].progress.get("step", -1))
        step = int(here.all_reduce(np.array([last]), "min")[0])
        if step < 0 or step == last:
            return newest if step >= 0 else None
        return self.checkpoints.path(step), read_checkpoint(self.checkpoints.path(step))

    def run(self, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Train to the end, or until ``stopped`` returns True after a step; return whether the end was reached.

        A checkpoint is written in both cases. Raises NonFiniteError, without a checkpoint of that step.
        """
        start, before = time.perf_counter(), self.progress.seconds
        progress = self.progress
        while progress.epoch < self.rules.epochs and not self._is_over:
            for batch in self.batches.epoch(progress.epoch, progress.batch):
                values = self.step(batch)
                progress.seconds = before + time.perf_counter() - start
                self._count(values, samples_in(batch))
                self._after_step(values)
                if stopped():
                    self._save()
                    return False
            if self.batches.count is None:
                self._end_epoch_of_stream()
        self._save()
        if self._best:
            self.step.restore(self._best)
        return True

    def _count(self, values: tuple[float, ...], samples: int) -> None:
        progress = self.progress
        progress.step += 1
        progress.batch += 1
        if not math.isfinite(values[0]) and not self.rules.keep_going:
            hint = f"; the checkpoint of step {self._saved} is from before" if self._saved >= 0 else ""
            raise NonFiniteError(
                f"{self.step.names[0]} of step {progress.step} (epoch {progress.epoch + 1}, batch {progress.batch}) "
                f"is {values[0]}{hint}",
                remedy=self.rules.remedy,
            )
        progress.samples += samples
        for name, value in zip(self.step.names, values, strict=True):
            progress.sums[name] = progress.sums.get(name, 0.0) + value * samples

    def _after_step(self, values: tuple[float, ...]) -> None:
        """Report and save after a step. The end of an epoch comes first: its checkpoint starts the next epoch."""
        progress, rules = self.progress, self.rules
        self.watcher.step(progress, values[0])
        if rules.log and progress.step % rules.log == 0:
            self._report("step", dict(zip(self.step.names, values, strict=True)))
        is_last = progress.batch == self.batches.count
        if is_last:
            self._end_epoch()
        if progress.step % rules.every == 0 if rules.every else is_last:
            self._save()

    def _end_epoch_of_stream(self) -> None:
        """End an epoch whose number of batches only its end told."""
        if not self.progress.batch:
            raise ArgumentError(
                f"there are no batches in epoch {self.progress.epoch + 1}",
                remedy="pass a DataLoader or a list, which can be read in each epoch, not an iterator",
            )
        self._end_epoch()
        if not self.rules.every:
            self._save()

    def _end_epoch(self) -> None:
        progress = self.progress
        measured = self.evaluate() if self.evaluate is not None else {}
        line = self._report("epoch", {**self._means(), **measured})
        progress.rows.append({name: value for name, value in line.items() if name not in ("event", "step")})
        history = self.history
        if self.rules.patience or self.rules.keeps_best:
            history.check_goal()
        if self.rules.keeps_best and history.best_epoch == progress.epoch + 1:
            self._best, progress.best_epoch = self.step.state(), progress.epoch + 1
        progress.epoch += 1
        progress.batch = progress.samples = 0
        progress.sums = {}
        progress.is_ended = self.after_epoch(history)
        self._is_over = progress.is_ended or self._has_lost_patience()

    def _means(self) -> dict[str, float]:
        """Return the means of the step's results over the samples of the epoch, in all processes."""
        progress, here = self.progress, group()
        sums = np.array([*progress.sums.values(), progress.samples], np.float64)
        sums = here.all_reduce(sums) if here.size > 1 else sums
        return dict(zip(progress.sums, (sums[:-1] / sums[-1]).tolist(), strict=True))

    def _has_lost_patience(self) -> bool:
        """Check whether the goal was last reached too many epochs ago."""
        patience = self.rules.patience
        return patience > 0 and self.progress.epoch - (self.history.best_epoch or 0) >= patience

    def _report(self, event: str, values: Mapping[str, float]) -> dict[str, Any]:
        """Give the watcher a line of measures, and return it."""
        progress = self.progress
        numbers = {name: value if math.isfinite(value) else None for name, value in values.items()}
        seconds = round(progress.seconds, 3)
        line = {"event": event, "step": progress.step, "epoch": progress.epoch + 1, **numbers, "seconds": seconds}
        self.watcher.line(line)
        return line

    def _save(self) -> None:
        if self.checkpoints is None or self._saved == self.progress.step:
            return
        checkpoint = Checkpoint(self.step.state(), asdict(self.progress), self.settings, self._best)
        self.watcher.saved(self.checkpoints.write(self.progress.step, checkpoint))
        self._saved = self.progress.step


def samples_in(batch: Any) -> int:
    """Return the number of samples of a batch: the first size of its first array."""
    sizes = getattr(batch, "shape", None)
    while sizes is None and isinstance(batch, (tuple, list, Mapping)):
        batch = next(iter(batch.values() if isinstance(batch, Mapping) else batch))
        sizes = getattr(batch, "shape", None)
    return sizes[0] if sizes else 1
