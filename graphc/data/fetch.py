"""Reading of batches in a loader's worker: take samples out of a dataset and collate them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from graphc.base.records import dataclass

__all__ = ["WorkerInfo", "get_worker_info"]

END = object()
"""Marker instead of a batch at the end of a stream."""


@dataclass(frozen=True)
class WorkerInfo:
    """Description of the current worker, a process or a thread."""

    id: int
    """From 0 to ``num_workers`` - 1."""
    num_workers: int
    dataset: Any
    """The dataset: a copy in each process, shared by threads."""
    seed: int = 0
    """In a process: the seed of ``random``, ``numpy.random`` and the default generator."""


class _Here(threading.local):
    """Worker of the current thread; a process sets it for all of its threads."""

    info: WorkerInfo | None = None


_here = _Here()


def enter_worker(info: WorkerInfo, process: bool = False) -> None:
    """Register this thread, or this process, as a worker."""
    if process:
        _Here.info = info
    else:
        _here.info = info


def get_worker_info() -> WorkerInfo | None:
    """Return the worker that runs this code, or None outside of workers."""
    return _here.info


@dataclass(frozen=True)
class Fetcher:
    """Settings for reading batches of a dataset."""

    dataset: Any
    collate: Callable[[Any], Any]
    take: Callable[[Any], Any] | None
    """Return a batch for a list of indices, if the dataset supports that."""
    batch_size: int | None
    drop_last: bool

    def by_numbers(self, number: int, order: Any) -> Any:
        """Return the batch of the samples at the indices ``order``, or a single sample for an int."""
        try:
            if not isinstance(order, list | tuple):
                return self.collate(self.dataset[order])
            if self.take is not None:
                return self.take(order)
            return self.collate([self.dataset[i] for i in order])
        # NOTE: any exception of the user's code gets a note about the batch.
        except Exception as error:
            _add_note(error, f"batch {number} (samples {_short(order)})")
            raise

    def of_stream(self, number: int, samples: Iterator[Any]) -> Any:
        """Return the next batch of a stream, or END after the last one."""
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
