"""Training loop: batches in order, steps, measures, checkpoints, and early stops."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, field
from typing import Any, Protocol

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, NonFiniteError
from graphc.base.records import dataclass
from graphc.cli.trainer.checkpoint import Checkpoint, Checkpoints
from graphc.cli.trainer.order import Order
from graphc.data.loader import THREAD, DataLoader

Batch = Mapping[str, np.ndarray]


class TrainingStep(Protocol):
    """Training step of a model."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the step's results; the loss first."""
        ...

    def __call__(self, batch: Batch) -> tuple[float, ...]:
        """Train on a batch and return a number for each of ``names``."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Return copies of everything that steps write, by name."""
        ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Continue from a state. Raises ArtifactError for the state of another model."""
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
        data: Any,
        order: Order,
        rules: Rules,
        *,
        settings: Mapping[str, Any] | None = None,
        checkpoints: Checkpoints | None = None,
        evaluate: Callable[[], Mapping[str, float]] | None = None,
        watcher: Watcher | None = None,
        workers: int = 0,
    ):
        """``data.take`` returns batches as dictionaries. ``settings`` identify the training in checkpoints.
        ``evaluate`` measures at the end of each epoch."""
        self.step = step
        self.data = data
        self.order = order
        self.rules = rules
        self.settings = dict(settings or {})
        self.checkpoints = checkpoints
        self.evaluate = evaluate
        self.watcher = watcher or Watcher()
        self.workers = workers
        self.progress = TrainingProgress()
        self._saved = -1

    @property
    def steps(self) -> int:
        """Number of steps of the whole training."""
        return self.rules.epochs * len(self.order)

    def resume(self) -> bool:
        """Continue from the newest checkpoint; return False without one.

        Raises ArgumentError for the checkpoint of another training, ArtifactError if all are damaged.
        """
        newest = self.checkpoints.newest() if self.checkpoints is not None else None
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
            self.progress = TrainingProgress(**checkpoint.progress)
        except TypeError as error:
            raise ArtifactError(f"{path}: not the checkpoint of a training: {error}") from None
        self.step.restore(checkpoint.state)
        self._saved = self.progress.step
        return True

    def run(self, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Train to the end, or until ``stopped`` returns True after a step; return whether the end was reached.

        A checkpoint is written in both cases. Raises NonFiniteError, without a checkpoint of that step.
        """
        start, before = time.perf_counter(), self.progress.seconds
        while self.progress.epoch < self.rules.epochs:
            batches = self.order.epoch(self.progress.epoch, self.progress.batch)
            loader = DataLoader(
                self.data, batch_sampler=batches, num_workers=self.workers, multiprocessing_context=THREAD
            )
            for batch in loader:
                values = self.step(batch)
                self.progress.seconds = before + time.perf_counter() - start
                self._count(values, len(next(iter(batch.values()))))
                self._after_step(values)
                if stopped():
                    self._save()
                    return False
        self._save()
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
                remedy="pass a smaller --lr, or --keep-going",
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
        is_last = progress.batch == len(self.order)
        if is_last:
            self._end_epoch()
        if progress.step % rules.every == 0 if rules.every else is_last:
            self._save()

    def _end_epoch(self) -> None:
        progress = self.progress
        means = {name: total / progress.samples for name, total in progress.sums.items()}
        measured = self.evaluate() if self.evaluate is not None else {}
        self._report("epoch", {**means, **{f"valid.{name}": value for name, value in measured.items()}})
        progress.epoch += 1
        progress.batch = progress.samples = 0
        progress.sums = {}

    def _report(self, event: str, values: Mapping[str, float]) -> None:
        progress = self.progress
        numbers = {name: value if math.isfinite(value) else None for name, value in values.items()}
        seconds = round(progress.seconds, 3)
        line = {"event": event, "step": progress.step, "epoch": progress.epoch + 1, **numbers, "seconds": seconds}
        self.watcher.line(line)

    def _save(self) -> None:
        if self.checkpoints is None or self._saved == self.progress.step:
            return
        checkpoint = Checkpoint(self.step.state(), asdict(self.progress), self.settings)
        self.watcher.saved(self.checkpoints.write(self.progress.step, checkpoint))
        self._saved = self.progress.step
