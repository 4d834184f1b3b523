"""The loop of a training: batches in order, steps, measures, checkpoints, and where it stops."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, NonFiniteError
from graphc.cli.trainer.checkpoint import Checkpoint, Checkpoints
from graphc.cli.trainer.order import Order
from graphc.data.loader import THREAD, DataLoader

Batch = Mapping[str, np.ndarray]


class Step(Protocol):
    """What is trained."""

    @property
    def names(self) -> tuple[str, ...]:
        """What a step measures; the loss first."""
        ...

    def __call__(self, batch: Batch) -> tuple[float, ...]:
        """Trains on a batch; gives a number for each of ``names``."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Copies of all that steps write, by name."""
        ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from a state. Raises ArtifactError where it is that of another model."""
        ...


@dataclass
class Progress:
    """How far a training is."""

    epoch: int = 0
    """Epochs that are done."""
    batch: int = 0
    """Batches of the present epoch that are done."""
    step: int = 0
    """Steps in all."""
    samples: int = 0
    """Samples of the present epoch."""
    sums: dict[str, float] = field(default_factory=dict)
    """Of what was measured in the present epoch, times the samples of each batch."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Rules:
    """How long a training goes on and what it leaves on the way."""

    epochs: int
    every: int = 0
    """Steps between two checkpoints; 0: one at the end of each epoch."""
    log: int = 0
    """Steps between two lines of measures; 0: one at the end of each epoch."""
    keep_going: bool = False
    """Whether a loss that is no finite number is no reason to stop."""


class Watcher:
    """What is told of a training; of the methods that do nothing here, subclasses define those that they need."""

    def line(self, line: Mapping[str, Any]) -> None:
        """A line of measures, ``event`` being ``step`` or ``epoch``."""

    def step(self, progress: Progress, loss: float) -> None:
        """A step is done."""

    def saved(self, path: Any) -> None:
        """A checkpoint was written."""


class Training:
    """A step, the data that it is trained on, and how far it is."""

    def __init__(
        self,
        step: Step,
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
        """``data`` gives batches as dictionaries by its ``take``; ``settings`` decide the numbers, as a checkpoint
        keeps them; ``evaluate`` measures at the end of each epoch."""
        self.step = step
        self.data = data
        self.order = order
        self.rules = rules
        self.settings = dict(settings or {})
        self.checkpoints = checkpoints
        self.evaluate = evaluate
        self.watcher = watcher or Watcher()
        self.workers = workers
        self.progress = Progress()
        self._saved = -1

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return self.rules.epochs * len(self.order)

    def resume(self) -> bool:
        """Goes on from the newest checkpoint; False where there is none. Raises ArgumentError where that is of another
        training, ArtifactError where none is whole."""
        found = self.checkpoints.newest() if self.checkpoints is not None else None
        if found is None:
            return False
        path, checkpoint = found
        other = [
            k for k in {*self.settings, *checkpoint.settings} if self.settings.get(k) != checkpoint.settings.get(k)
        ]
        if other:
            told = ", ".join(f"{k} {checkpoint.settings.get(k)} and not {self.settings.get(k)}" for k in sorted(other))
            raise ArgumentError(
                f"{path} belongs to another training: {told}", remedy="the same arguments, or another folder"
            )
        try:
            self.progress = Progress(**checkpoint.progress)
        except TypeError as error:
            raise ArtifactError(f"{path}: it is no checkpoint of a training: {error}") from None
        self.step.restore(checkpoint.state)
        self._saved = self.progress.step
        return True

    def run(self, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Trains to the end, or until ``stopped`` after a step; whether it came to the end. Both leave a checkpoint.
        Raises NonFiniteError, with no checkpoint of that step."""
        begun, before = time.perf_counter(), self.progress.seconds
        while self.progress.epoch < self.rules.epochs:
            batches = self.order.epoch(self.progress.epoch, self.progress.batch)
            loader = DataLoader(
                self.data, batch_sampler=batches, num_workers=self.workers, multiprocessing_context=THREAD
            )
            for batch in loader:
                values = self.step(batch)
                self.progress.seconds = before + time.perf_counter() - begun
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
            left = f"; the checkpoint of step {self._saved} is from before" if self._saved >= 0 else ""
            raise NonFiniteError(
                f"{self.step.names[0]} of step {progress.step} (epoch {progress.epoch + 1}, batch {progress.batch}) "
                f"is {values[0]}{left}",
                remedy="a smaller --lr, or --keep-going",
            )
        progress.samples += samples
        for name, value in zip(self.step.names, values, strict=True):
            progress.sums[name] = progress.sums.get(name, 0.0) + value * samples

    def _after_step(self, values: tuple[float, ...]) -> None:
        """What is told and saved behind a step; the end of an epoch comes before the checkpoint, which is then one of
        the next epoch's begin."""
        progress, rules = self.progress, self.rules
        self.watcher.step(progress, values[0])
        if rules.log and progress.step % rules.log == 0:
            self._tell("step", dict(zip(self.step.names, values, strict=True)))
        is_last = progress.batch == len(self.order)
        if is_last:
            self._end_epoch()
        if progress.step % rules.every == 0 if rules.every else is_last:
            self._save()

    def _end_epoch(self) -> None:
        progress = self.progress
        means = {name: total / progress.samples for name, total in progress.sums.items()}
        measured = self.evaluate() if self.evaluate is not None else {}
        self._tell("epoch", {**means, **{f"valid.{name}": value for name, value in measured.items()}})
        progress.epoch += 1
        progress.batch = progress.samples = 0
        progress.sums = {}

    def _tell(self, event: str, values: Mapping[str, float]) -> None:
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
