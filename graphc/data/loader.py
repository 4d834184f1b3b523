"""DataLoader: batches of a dataset in order, prefetched by worker processes or threads."""

from __future__ import annotations

import itertools
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextvars import copy_context
from functools import partial
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.data.collate import default_collate, default_convert
from graphc.data.dataset import IterableDataset
from graphc.data.fetch import END, Fetcher, WorkerInfo, enter_worker
from graphc.data.processes import Task, Workers
from graphc.data.sampler import BatchSampler, RandomSampler, SequentialSampler, generator_of
from graphc.tensors.random.generator import Generator

__all__ = ["DataLoader"]

THREAD = "thread"
"""Value of ``multiprocessing_context`` for worker threads."""


class DataLoader:
    """Iterator over batches of a dataset.

    docs/data.md shows readers in processes and threads. Exceptions while reading a batch are raised unchanged, with a
    note that names the samples and, from a process, its traceback.

    Args:
        dataset: a Dataset or IterableDataset.
        batch_size: samples per batch; None yields single samples.
        shuffle: read in random order, a new one in each epoch.
        sampler: order of the samples.
        batch_sampler: lists of sample indices.
        num_workers: processes that read; batches arrive in the order of the sampler. Each has a copy of the dataset; of
            an IterableDataset it reads all samples unless the dataset uses ``get_worker_info`` to select its part.
        collate_fn: function from a list of samples to a batch (default: stack tensors, keep the nesting).
        pin_memory: accepted without effect; tensors are in host memory.
        drop_last: skip a last batch that is smaller than ``batch_size``.
        timeout: seconds to wait for a batch (0: without a limit).
        worker_init_fn: called as ``worker_init_fn(i)`` in worker i after ``random``, ``numpy.random`` and the default
            generator are seeded from ``generator``, the epoch and i.
        multiprocessing_context: ``fork``, ``spawn``, ``forkserver``, or a context of ``multiprocessing`` (None: its
            default). ``thread`` uses threads of this process, a single one for an IterableDataset.
        generator: a Generator or a seed for ``shuffle``.
        prefetch_factor: batches that each worker reads ahead (default: 2).
        persistent_workers: keep the processes for further epochs.

    Returns:
        The loader; ``len(loader)`` is the number of batches.

    Raises:
        ArgumentError: options that exclude each other.
        TimeoutError: in an epoch, ``timeout`` seconds pass without a batch.
        WorkerError: in an epoch, a process was killed.

    Example:
        >>> import graphc as gc
        >>> from graphc.utils.data import DataLoader, TensorDataset
        >>> loader = DataLoader(TensorDataset(gc.arange(5)), batch_size=2)
        >>> [batch for (batch,) in loader]
        [tensor([0, 1]), tensor([2, 3]), tensor([4])]
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
        multiprocessing_context: Any = None,
        generator: Generator | int | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
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
        self.multiprocessing_context = _context(multiprocessing_context)
        self.generator = generator
        self._workers: Workers | None = None
        self._epoch = 0
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
            raise ArgumentError("an IterableDataset has its own order: do not pass shuffle, sampler or batch_sampler")
        if sampler is not None and shuffle:
            raise ArgumentError("sampler and shuffle exclude each other", remedy="pass one of them")
        if batch_sampler is not None and (batch_size not in (1, None) or shuffle or sampler is not None):
            raise ArgumentError("batch_sampler excludes batch_size, shuffle, sampler and drop_last")
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

    def set_epoch(self, epoch: int) -> None:
        """Number the next epoch, from 0. Readers in processes are seeded by it, unless they persist."""
        self._epoch = epoch

    def _orders(self) -> Iterable[Any]:
        """Return lists of sample indices, or single indices without batches."""
        orders = self.sampler if self.batch_sampler is None else self.batch_sampler
        assert orders is not None
        return orders

    def __iter__(self) -> Iterator[Any]:
        self._epoch += 1
        if self.num_workers and self.multiprocessing_context != THREAD:
            return self._by_processes()
        fetcher = self._fetcher()
        jobs = self._stream_jobs(fetcher) if self._iterable else self._indexed_jobs(fetcher)
        return self._with_threads(jobs) if self.num_workers else self._inline(jobs)

    def _fetcher(self) -> Fetcher:
        return Fetcher(self.dataset, self.collate_fn, self._take, self.batch_size, self.drop_last)

    # ---- jobs: functions that return one batch each

    def _indexed_jobs(self, fetcher: Fetcher) -> Iterator[Callable[[], Any]]:
        for number, order in enumerate(self._orders()):
            yield partial(fetcher.by_numbers, number, order)

    def _stream_jobs(self, fetcher: Fetcher) -> Iterator[Callable[[], Any]]:
        samples = iter(self.dataset)
        for number in itertools.count():
            yield partial(fetcher.of_stream, number, samples)

    # ---- running them

    def _inline(self, jobs: Iterator[Callable[[], Any]]) -> Iterator[Any]:
        for job in jobs:
            batch = job()
            if batch is END:
                return
            yield batch

    def _with_threads(self, jobs: Iterator[Callable[[], Any]]) -> Iterator[Any]:
        # NOTE: two threads must not advance one iterator at the same time, so streams have one worker.
        count = 1 if self._iterable else self.num_workers
        pool = ThreadPoolExecutor(count, "graphc-data", self._start_thread, (itertools.count(), count))
        waiting: deque[Future[Any]] = deque()
        try:
            for job in itertools.islice(jobs, count * self.prefetch_factor):
                waiting.append(pool.submit(copy_context().run, job))
            while waiting:
                batch = self._wait(waiting.popleft())
                if batch is END:
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

    def _start_thread(self, numbers: Iterator[int], count: int) -> None:
        info = WorkerInfo(next(numbers), count, self.dataset)
        enter_worker(info)
        if self.worker_init_fn is not None:
            self.worker_init_fn(info.id)

    # ---- processes

    def _by_processes(self) -> Iterator[Any]:
        workers, self._workers = self._workers or self._start_processes(), None
        orders = itertools.repeat(None) if self._iterable else iter(self._orders())
        keep = False
        try:
            yield from workers.batches(orders, self.prefetch_factor, self.timeout)
            keep = self.persistent_workers
        except GeneratorExit:
            keep = self.persistent_workers
            raise
        finally:
            if keep and self._workers is None:
                self._workers = workers
            else:
                workers.stop()

    def _start_processes(self) -> Workers:
        seed, step = np.asarray(generator_of(self.generator).get_state().numpy()).view(np.uint64).tolist()
        first = int(np.random.SeedSequence([seed, step, self._epoch]).generate_state(1)[0])
        task = Task(self._fetcher(), self._iterable, self.worker_init_fn, first, self.num_workers)
        return Workers(task, multiprocessing.get_context(self.multiprocessing_context))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_workers": None}

    def __del__(self) -> None:
        workers = getattr(self, "_workers", None)
        if workers is not None:
            workers.stop()


def _context(context: Any) -> Any:
    """Return the name of a start method; raises ArgumentError for an unknown one."""
    name = context.get_start_method() if hasattr(context, "get_start_method") else context
    allowed = (None, THREAD, *multiprocessing.get_all_start_methods())
    if name not in allowed:
        raise ArgumentError(
            f"multiprocessing_context is {context!r}", remedy=f"use one of {', '.join(str(a) for a in allowed)}"
        )
    return name
