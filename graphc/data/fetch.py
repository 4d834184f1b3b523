"""What a worker of a loader does: it takes samples out of a dataset and joins them to batches."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

END = object()
"""What stands for a batch where a stream has no more samples."""


@dataclass(frozen=True)
class WorkerInfo:
    """The worker, a process or a thread, that is running."""

    id: int
    """From 0 to ``num_workers`` - 1."""
    num_workers: int
    dataset: Any
    """The dataset: of a process its own copy, of threads the one that they share."""
    seed: int = 0
    """Of a process: what ``random``, ``numpy.random`` and the default generator began with."""


class _Here(threading.local):
    """What this thread is; a process sets it for all of its threads."""

    info: WorkerInfo | None = None


_here = _Here()


def enter_worker(info: WorkerInfo, process: bool = False) -> None:
    """Says that this thread, or this process, is a worker."""
    if process:
        _Here.info = info
    else:
        _here.info = info


def get_worker_info() -> WorkerInfo | None:
    """The worker that runs this code, or None outside of any."""
    return _here.info


@dataclass(frozen=True)
class Fetcher:
    """How batches are made of a dataset."""

    dataset: Any
    collate: Callable[[Any], Any]
    take: Callable[[Any], Any] | None
    """Gives a whole batch of sample numbers, where the dataset can."""
    batch_size: int | None
    drop_last: bool

    def by_numbers(self, number: int, order: Any) -> Any:
        """The batch of the samples that ``order`` lists, or the one sample that it is."""
        try:
            if not isinstance(order, list | tuple):
                return self.collate(self.dataset[order])
            if self.take is not None:
                return self.take(order)
            return self.collate([self.dataset[i] for i in order])
        # NOTE: whatever the user's code raises knows its batch and is raised again.
        except Exception as error:
            _add_note(error, f"batch {number} (samples {_short(order)})")
            raise

    def of_stream(self, number: int, samples: Iterator[Any]) -> Any:
        """The next batch of a stream, END behind the last one."""
        try:
            if self.batch_size is None:
                sample = next(samples, END)
                return sample if sample is END else self.collate(sample)
            batch = list(itertools.islice(samples, self.batch_size))
            if not batch or (self.drop_last and len(batch) < self.batch_size):
                return END
            return self.collate(batch)
        # NOTE: as above.
        except Exception as error:
            _add_note(error, f"batch {number} of an iterable dataset")
            raise


def _add_note(error: Exception, what: str) -> None:
    info = get_worker_info()
    error.add_note(f"while loading {what}" + (f" in worker {info.id}" if info else ""))


def _short(order: Any) -> str:
    numbers = list(order) if isinstance(order, list | tuple) else [order]
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
