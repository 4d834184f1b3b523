"""Worker processes of a loader: each reads its batches ahead, and the loader hands them on in order."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import queue
import random
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from graphc.base.errors import WorkerError
from graphc.data.batch_transport import portable, receive, send
from graphc.data.fetch import END, Fetcher, WorkerInfo, enter_worker
from graphc.tensors.generator import manual_seed

_DONE, _ENDED, _FAILED = "done", "ended", "failed"
_PATIENCE = 5.0
"""Seconds that a worker has to end by itself, behind the batch that it is at."""
_ends: weakref.WeakSet[Connection] = weakref.WeakSet()
"""The loaders' ends of all pipes: a child after fork() has them too, and closes them, or others would not end."""


@dataclass(frozen=True)
class Task:
    """What each worker is started with."""

    fetcher: Fetcher
    streams: bool
    """Whether the dataset is one that can only be iterated: then each worker iterates over all of its copy."""
    init: Callable[[int], Any] | None
    seed: int
    """That of worker 0; the others count on."""
    count: int


# ---- in the worker


def _work(connection: Connection, number: int, task: Task) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the loader's process, which ends its workers.
    for end in list(_ends):
        end.close()
    seed = task.seed + number
    enter_worker(WorkerInfo(number, task.count, task.fetcher.dataset, seed), process=True)
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, jobs), daemon=True).start()
    failed = _prepare(number, task, seed)
    epoch, samples = -1, iter(())
    while (job := jobs.get()) is not None:
        if job[0] != epoch:
            epoch, samples = job[0], None
        try:
            if failed is not None:
                raise failed
            if task.streams:
                samples = iter(task.fetcher.dataset) if samples is None else samples
                batch = task.fetcher.of_stream(job[1], samples)
            else:
                batch = task.fetcher.by_numbers(*job[1:])
            answer = (_ENDED, None) if batch is END else (_DONE, batch)
        # NOTE: whatever the user's code raises is raised in the loader's process.
        except Exception as error:
            samples = iter(())
            answer = _FAILED, portable(error)
        if not _answer(connection, job[:2], *answer):
            return


def _answer(connection: Connection, number: tuple[int, int], kind: str, value: Any) -> bool:
    """Sends what has come of a batch, or why that cannot be sent; False where the loader's process is no more."""
    try:
        send(connection, (*number, kind), value)
    except (BrokenPipeError, ConnectionResetError):
        return False
    # NOTE: pickling runs code of the user's classes.
    except Exception as error:
        return _answer(connection, number, _FAILED, portable(error))
    return True


def _prepare(number: int, task: Task, seed: int) -> Exception | None:
    """Seeds, then the user's function; what that raised."""
    random.seed(seed)
    np.random.seed(np.random.SeedSequence(seed).generate_state(4))
    manual_seed(seed)
    try:
        if task.init is not None:
            task.init(number)
    # NOTE: whatever the user's code raises; the first batch reports it.
    except Exception as error:
        error.add_note(f"while worker_init_fn prepared worker {number}")
        return error
    return None


def _listen(connection: Connection, jobs: queue.SimpleQueue[Any]) -> None:
    """Takes jobs as they come, so that no one waits for the pipe; ends the process with the loader's."""
    while True:
        try:
            job = connection.recv()
        except (EOFError, OSError):
            os._exit(1)
        jobs.put(job)
        if job is None:
            return


# ---- in the loader's process


class _Plan:
    """Which worker makes which batch of an epoch, and what has come of them."""

    def __init__(self, orders: Iterator[Any], count: int):
        self._orders = orders
        self._turns = itertools.cycle(range(count))
        self._alive = set(range(count))
        self.owners: list[int] = []
        """The worker of each batch that was given away."""
        self.ready: dict[int, tuple[str, Any]] = {}
        """By number: how a batch ended, and what it is."""
        self.due = 0
        """The batch that the loader hands on next."""

    def next_job(self) -> tuple[int, int, Any] | None:
        """The worker whose turn it is, the number of a batch, and its samples; None where there are no more."""
        order = next(self._orders, END) if self._alive else END
        if order is END:
            return None
        self.owners.append(next(worker for worker in self._turns if worker in self._alive))
        return self.owners[-1], len(self.owners) - 1, order

    def pop(self) -> tuple[int, str, Any]:
        """The worker of the batch that is due, how it ended, and what it is."""
        kind, value = self.ready.pop(self.due)
        worker = self.owners[self.due]
        self.due += 1
        if kind == _ENDED:
            self._alive.discard(worker)
        return worker, kind, value


class Workers:
    """The running workers of a loader."""

    def __init__(self, task: Task, context: Any):
        self._task = task
        self._epoch = 0
        self._patience = _PATIENCE
        self._members: list[tuple[Any, Connection]] = []
        try:
            for number in range(task.count):
                self._members.append(self._start(number, context))
        # NOTE: also Ctrl-C, for nobody else could end the workers that have started; it is raised again.
        except BaseException:
            self.stop()
            raise

    def _start(self, number: int, context: Any) -> tuple[Any, Connection]:
        mine, other = context.Pipe()
        _ends.add(mine)
        process = context.Process(target=_work, args=(other, number, self._task), daemon=True)
        process.name = f"graphc-data-{number}"
        try:
            process.start()
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            mine.close()
            raise WorkerError(
                f"a worker cannot be started, since something cannot be sent to it: {error}",
                remedy="classes and functions at the top of a module, or multiprocessing_context='fork'",
            ) from error
        finally:
            other.close()
        return process, mine

    @property
    def processes(self) -> list[Any]:
        """The processes, by number."""
        return [process for process, _ in self._members]

    def batches(self, orders: Iterator[Any], prefetch: int, timeout: float) -> Iterator[Any]:
        """The batches of lists of sample numbers, or of streams, in order; batch n comes from worker n modulo their
        number, as long as none has ended. Raises what a worker raised, WorkerError for one that is no more, and
        TimeoutError."""
        self._epoch += 1
        plan = _Plan(orders, self._task.count)
        for _ in range(prefetch * self._task.count):
            self._give(plan)
        while plan.due < len(plan.owners):
            while plan.due not in plan.ready:
                for (epoch, number, kind), value in self._receive(timeout):
                    if epoch == self._epoch:
                        plan.ready[number] = kind, value
            worker, kind, value = plan.pop()
            if kind == _FAILED:
                raise self._raised(worker, *value)
            self._give(plan)
            if kind == _DONE:
                yield value

    def _give(self, plan: _Plan) -> None:
        """Sends the next job, where there is one."""
        if (job := plan.next_job()) is not None:
            worker, number, order = job
            self._send(worker, (self._epoch, number, order))

    def _send(self, worker: int, job: Any) -> None:
        try:
            self._members[worker][1].send(job)
        except (BrokenPipeError, ConnectionResetError):
            raise self._lost(worker) from None

    def _receive(self, timeout: float) -> list[tuple[Any, Any]]:
        """At least one result."""
        pipes = {connection: number for number, (_, connection) in enumerate(self._members)}
        ends = {process.sentinel: number for number, (process, _) in enumerate(self._members)}
        there = wait([*pipes, *ends], timeout or None)
        if not there:
            self._patience = 0.0
            raise TimeoutError(f"no batch came within {timeout} seconds")
        found = []
        for connection, number in pipes.items():
            if connection in there:
                try:
                    found.append(receive(connection))
                except (EOFError, OSError):
                    raise self._lost(number) from None
        for end, number in ends.items():
            if end in there and not found:
                raise self._lost(number)
        return found

    def _lost(self, worker: int) -> WorkerError:
        process = self._members[worker][0]
        process.join(_PATIENCE)
        code = process.exitcode
        how = f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return WorkerError(
            f"worker {worker} of a loader (process {process.pid}) {how}",
            remedy="num_workers=0 runs it here; SIGKILL often means that memory was full",
        )

    def _raised(self, worker: int, error: BaseException, text: str) -> BaseException:
        error.add_note(f"in worker {worker} of a loader (process {self._members[worker][0].pid}):\n{text}")
        return error

    def stop(self) -> None:
        """Ends the workers, by force those that do not end by themselves."""
        members, self._members = self._members, []
        for _, connection in members:
            with contextlib.suppress(OSError):
                connection.send(None)
            connection.close()
        until = time.monotonic() + self._patience
        for process, _ in members:
            process.join(max(until - time.monotonic(), 0.01))
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
