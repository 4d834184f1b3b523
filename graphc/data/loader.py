"""DataLoader: the samples of a dataset as batches, in order, read ahead by worker threads."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.data.collate import default_collate, default_convert
from graphc.data.dataset import IterableDataset
from graphc.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from graphc.tensors.generator import Generator

_END = object()


@dataclass(frozen=True)
class WorkerInfo:
    """The worker thread that is running."""

    id: int
    """From 0 to ``num_workers`` - 1."""
    num_workers: int
    dataset: Any
    """The dataset that the workers share."""


_here = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """The worker whose thread this is, or None outside of any."""
    return getattr(_here, "info", None)


class DataLoader:
    """Iterates over batches of a dataset.

    ``shuffle`` reads in random order, a new one each epoch; ``generator`` (a Generator or a seed) decides which.
    ``sampler`` gives the order itself, ``batch_sampler`` whole lists of numbers, ``batch_size=None`` single samples.
    ``num_workers`` threads read up to ``prefetch_factor`` batches each ahead; batches come in the order of the sampler
    whatever the number of workers, and an IterableDataset is read ahead by one thread. Workers share the dataset.
    An error while a batch is read is raised as it is, with a note that names the samples; ``timeout`` seconds without
    a batch raise TimeoutError. ``pin_memory`` and ``persistent_workers`` are accepted and have no effect: tensors live
    in the memory of the host, and threads start at once.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        generator: Generator | int | None = None,
    ):
        if num_workers < 0 or timeout < 0 or (prefetch_factor is not None and prefetch_factor < 1):
            raise ArgumentError("num_workers and timeout are at least 0, prefetch_factor at least 1")
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor or 2
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.pin_memory = pin_memory
        self.persistent_workers = persistent_workers
        self._iterable = isinstance(dataset, IterableDataset)
        self.batch_size = None if batch_sampler is not None else batch_size
        self.drop_last = drop_last
        self._check_order(shuffle, sampler, batch_sampler, batch_size)
        if sampler is None and not self._iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None and sampler is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        single = batch_sampler is None and batch_size is None
        self._take = getattr(dataset, "take", None) if collate_fn is None and not single else None
        self.collate_fn: Callable[[Any], Any] = collate_fn or (default_convert if single else default_collate)

    def _check_order(self, shuffle: Any, sampler: Any, batch_sampler: Any, batch_size: int | None) -> None:
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ArgumentError("an IterableDataset has an order of its own: no shuffle, sampler or batch_sampler")
        if sampler is not None and shuffle:
            raise ArgumentError("sampler and shuffle both say in which order to read", remedy="give one of them")
        if batch_sampler is not None and (batch_size not in (1, None) or shuffle or sampler is not None):
            raise ArgumentError("batch_sampler stands for batch_size, shuffle, sampler and drop_last together")
        if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
            raise ArgumentError(f"a batch size is an int of at least 1 or None, got {batch_size!r}")
        if self.drop_last and (batch_size is None or batch_sampler is not None):
            raise ArgumentError("drop_last needs a batch_size")

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._orders())  # type: ignore[arg-type]
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def _orders(self) -> Iterable[Any]:
        """Lists of sample numbers, or single numbers where there are no batches."""
        orders = self.sampler if self.batch_sampler is None else self.batch_sampler
        assert orders is not None
        return orders

    def __iter__(self) -> Iterator[Any]:
        jobs = self._stream_jobs() if self._iterable else self._indexed_jobs()
        return self._with_workers(jobs) if self.num_workers else self._inline(jobs)

    # ---- jobs: functions that return one batch each

    def _indexed_jobs(self) -> Iterator[Callable[[], Any]]:
        for number, order in enumerate(self._orders()):
            yield lambda number=number, order=order: self._load(number, order)

    def _load(self, number: int, order: Any) -> Any:
        try:
            if not isinstance(order, list | tuple):
                return self.collate_fn(self.dataset[order])
            if self._take is not None:
                return self._take(order)
            return self.collate_fn([self.dataset[i] for i in order])
        except Exception as error:
            _add_note(error, f"batch {number} (samples {_short(order)})")
            raise

    def _stream_jobs(self) -> Iterator[Callable[[], Any]]:
        samples = iter(self.dataset)
        for number in itertools.count():
            yield lambda number=number: self._load_next(number, samples)

    def _load_next(self, number: int, samples: Iterator[Any]) -> Any:
        try:
            if self.batch_size is None:
                sample = next(samples, _END)
                return sample if sample is _END else self.collate_fn(sample)
            batch = list(itertools.islice(samples, self.batch_size))
            if not batch or (self.drop_last and len(batch) < self.batch_size):
                return _END
            return self.collate_fn(batch)
        except Exception as error:
            _add_note(error, f"batch {number} of an iterable dataset")
            raise

    # ---- running them

    def _inline(self, jobs: Iterator[Callable[[], Any]]) -> Iterator[Any]:
        for job in jobs:
            batch = job()
            if batch is _END:
                return
            yield batch

    def _with_workers(self, jobs: Iterator[Callable[[], Any]]) -> Iterator[Any]:
        # NOTE: an iterator is no place for two threads at once, so streams have one worker.
        count = 1 if self._iterable else self.num_workers
        pool = ThreadPoolExecutor(count, "graphc-data", self._start_worker, (itertools.count(), count))
        waiting: deque[Future[Any]] = deque()
        try:
            for job in itertools.islice(jobs, count * self.prefetch_factor):
                waiting.append(pool.submit(copy_context().run, job))
            while waiting:
                batch = self._wait(waiting.popleft())
                if batch is _END:
                    return
                for job in itertools.islice(jobs, 1):
                    waiting.append(pool.submit(copy_context().run, job))
                yield batch
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _wait(self, future: Future[Any]) -> Any:
        if not self.timeout:
            return future.result()
        try:
            return future.result(self.timeout)
        except FutureTimeout:
            if future.done():
                raise
            raise TimeoutError(f"no batch came within {self.timeout} seconds") from None

    def _start_worker(self, numbers: Iterator[int], count: int) -> None:
        _here.info = WorkerInfo(next(numbers), count, self.dataset)
        if self.worker_init_fn is not None:
            self.worker_init_fn(_here.info.id)


def _add_note(error: Exception, what: str) -> None:
    info = get_worker_info()
    error.add_note(f"while loading {what}" + (f" in worker {info.id}" if info else ""))


def _short(order: Any) -> str:
    numbers = list(order) if isinstance(order, list | tuple) else [order]
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
