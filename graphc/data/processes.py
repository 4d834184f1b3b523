"""Worker processes of a loader: each prefetches its batches, and the loader yields all of them in order."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import pickle
import queue
import random
import signal
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

import numpy as np

from graphc.base.errors import WorkerError
from graphc.base.records import dataclass
from graphc.data.fetch import END, Fetcher, WorkerInfo, enter_worker
from graphc.tensors.random.generator import manual_seed

LARGE = 1 << 18
"""Bytes of arrays from which they go through shared memory.

Measured in ms for a batch of one worker, by pipe and by shared memory: 96 KiB 1.6 and 2.9, 384 KiB 6.3 and 4.1, 1.5 MiB
22 and 11, 6 MiB 108 and 32 (two cores under other load).
"""
_ALIGNMENT = 64
"""Alignment in bytes of the arrays in a batch, the same as of all tensors."""


def send(connection: Connection, head: Any, value: Any) -> None:
    """Send a small head and a value, whose arrays are not copied into the pickle.

    Pickling errors are raised before anything is sent.
    """
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, 5, buffer_callback=buffers.append)
    raw = [b.raw() for b in buffers]
    ends, spans = 0, []
    for view in raw:
        spans.append((ends, view.nbytes))
        ends += -(-view.nbytes // _ALIGNMENT) * _ALIGNMENT
    if ends < LARGE:
        connection.send((head, text, [bytes(view) for view in raw], None))
        return
    handle = os.memfd_create("graphc-batch")
    try:
        os.ftruncate(handle, ends)
        with mmap.mmap(handle, ends) as memory:
            for (start, size), view in zip(spans, raw, strict=True):
                memory[start : start + size] = view
        connection.send((head, text, spans, ends))
        send_handle(connection, handle, 0)
    finally:
        os.close(handle)


def receive(connection: Connection) -> tuple[Any, Any]:
    """Return the head and the value. Large arrays share the sender's memory, which is freed with the last of them.

    Raises EOFError or OSError if the sender has died.
    """
    head, text, spans, size = connection.recv()
    if size is None:
        return head, pickle.loads(text, buffers=[bytearray(data) for data in spans])
    handle = recv_handle(connection)
    try:
        memory = memoryview(mmap.mmap(handle, size))
    finally:
        os.close(handle)
    return head, pickle.loads(text, buffers=[memory[start : start + length] for start, length in spans])


def portable(error: BaseException) -> tuple[BaseException, str]:
    """Return an exception that another process can build, the same one if possible, and its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        again = pickle.loads(pickle.dumps(error))
    # NOTE: classes of exceptions may define how they are pickled and built, and fail in any way.
    except Exception:
        again = None
    if type(again) is type(error):
        return error, text
    return WorkerError(f"{type(error).__name__}: {error}"), text


_DONE, _ENDED, _FAILED = "done", "ended", "failed"
_STOP_TIMEOUT = 5.0
"""Seconds for a worker to exit by itself, after its current batch."""
_ends: weakref.WeakSet[Connection] = weakref.WeakSet()
"""Loaders' ends of all pipes. A forked child closes its copies; otherwise other workers would not see the pipe
close."""


@dataclass(frozen=True)
class Task:
    """Arguments of each worker."""

    fetcher: Fetcher
    streams: bool
    """Whether the dataset is iterable; then each worker iterates over its whole copy."""
    init: Callable[[int], Any] | None
    seed: int
    """Seed of worker 0; worker i adds i."""
    count: int


# ---- in the worker


def _work(connection: Connection, number: int, task: Task) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loader's process handles Ctrl-C and ends its workers
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
        # NOTE: any exception of the user's code is raised in the loader's process.
        except Exception as error:
            samples = iter(())
            answer = _FAILED, portable(error)
        if not _answer(connection, job[:2], *answer):
            return


def _answer(connection: Connection, number: tuple[int, int], kind: str, value: Any) -> bool:
    """Send a batch or its error, or else why that cannot be sent; return False if the loader's process has died."""
    try:
        send(connection, (*number, kind), value)
    except (BrokenPipeError, ConnectionResetError):
        return False
    # NOTE: pickling runs code of the user's classes.
    except Exception as error:
        return _answer(connection, number, _FAILED, portable(error))
    return True


def _prepare(number: int, task: Task, seed: int) -> Exception | None:
    """Seed the generators and run the user's function; return its exception, if any."""
    random.seed(seed)
    np.random.seed(np.random.SeedSequence(seed).generate_state(4))
    manual_seed(seed)
    try:
        if task.init is not None:
            task.init(number)
    # NOTE: any exception of the user's code; the first batch reports it.
    except Exception as error:
        error.add_note(f"while worker_init_fn prepared worker {number}")
        return error
    return None


def _listen(connection: Connection, jobs: queue.SimpleQueue[Any]) -> None:
    """Move jobs from the pipe to a queue, which keeps the loader from blocking; exit with the loader's process."""
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
    """Assignment of an epoch's batches to workers, and their results."""

    def __init__(self, orders: Iterator[Any], count: int):
        self._orders = orders
        self._turns = itertools.cycle(range(count))
        self._alive = set(range(count))
        self.owners: list[int] = []
        """Worker of each assigned batch."""
        self.ready: dict[int, tuple[str, Any]] = {}
        """Outcome and value of each received batch, by its number."""
        self.due = 0
        """Number of the batch that the loader yields next."""

    def next_job(self) -> tuple[int, int, Any] | None:
        """Return (worker, number of the batch, its samples) of the next job; None at the end."""
        order = next(self._orders, END) if self._alive else END
        if order is END:
            return None
        self.owners.append(next(worker for worker in self._turns if worker in self._alive))
        return self.owners[-1], len(self.owners) - 1, order

    def pop(self) -> tuple[int, str, Any]:
        """Return worker, outcome and value of the due batch."""
        kind, value = self.ready.pop(self.due)
        worker = self.owners[self.due]
        self.due += 1
        if kind == _ENDED:
            self._alive.discard(worker)
        return worker, kind, value


class Workers:
    """Running workers of a loader."""

    def __init__(self, task: Task, context: Any):
        self._task = task
        self._epoch = 0
        self._stop_timeout = _STOP_TIMEOUT
        self._members: list[tuple[Any, Connection]] = []
        try:
            for number in range(task.count):
                self._members.append(self._start(number, context))
        # NOTE: Ctrl-C too, because no other code could end the workers that have started.
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
                f"a worker cannot be started, because its arguments cannot be pickled: {error}",
                remedy="define classes and functions at the top of a module, or pass multiprocessing_context='fork'",
            ) from error
        finally:
            other.close()
        return process, mine

    @property
    def processes(self) -> list[Any]:
        """Worker processes by number."""
        return [process for process, _ in self._members]

    def batches(self, orders: Iterator[Any], prefetch: int, timeout: float) -> Iterator[Any]:
        """Yield batches of lists of sample indices, or of streams, in order.

        Batch n comes from worker n modulo their number, as long as none has ended. Raises the exception of a worker,
        WorkerError if one has died, and TimeoutError.
        """
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
        """Send the next job, if there is one."""
        if (job := plan.next_job()) is not None:
            worker, number, order = job
            self._send(worker, (self._epoch, number, order))

    def _send(self, worker: int, job: Any) -> None:
        try:
            self._members[worker][1].send(job)
        except (BrokenPipeError, ConnectionResetError):
            raise self._lost(worker) from None

    def _receive(self, timeout: float) -> list[tuple[Any, Any]]:
        """Return at least one result."""
        pipes = {connection: number for number, (_, connection) in enumerate(self._members)}
        ends = {process.sentinel: number for number, (process, _) in enumerate(self._members)}
        signalled = wait([*pipes, *ends], timeout or None)
        if not signalled:
            self._stop_timeout = 0.0
            raise TimeoutError(f"no batch came within {timeout} seconds")
        results = []
        for connection, number in pipes.items():
            if connection in signalled:
                try:
                    results.append(receive(connection))
                except (EOFError, OSError):
                    raise self._lost(number) from None
        for end, number in ends.items():
            if end in signalled and not results:
                raise self._lost(number)
        return results

    def _lost(self, worker: int) -> WorkerError:
        process = self._members[worker][0]
        process.join(_STOP_TIMEOUT)
        code = process.exitcode
        how = f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return WorkerError(
            f"worker {worker} of a loader (process {process.pid}) {how}",
            remedy="pass num_workers=0 to run it in this process; SIGKILL often means out of memory",
        )

    def _raised(self, worker: int, error: BaseException, text: str) -> BaseException:
        error.add_note(f"in worker {worker} of a loader (process {self._members[worker][0].pid}):\n{text}")
        return error

    def stop(self) -> None:
        """Stop the workers, and kill the ones still running after a timeout."""
        members, self._members = self._members, []
        for _, connection in members:
            with contextlib.suppress(OSError):
                connection.send(None)
            connection.close()
        deadline = time.monotonic() + self._stop_timeout
        for process, _ in members:
            process.join(max(deadline - time.monotonic(), 0.01))
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
