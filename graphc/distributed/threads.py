"""Ranks as threads of one process, with the interface of a communicator: tests use them in place of MPI."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from graphc.base.errors import DistributedError
from graphc.distributed.communicator import in_parts, reduce_arrays
from graphc.distributed.group import Group, using


class _RankLost(DistributedError):
    """Another rank has failed before, and its error says why."""


class _Meeting:
    """Barrier at which the threads exchange their values."""

    def __init__(self, size: int, timeout: float):
        self.barrier = threading.Barrier(size, timeout=timeout)
        self.values: list[Any] = [None] * size
        self.next: _Meeting | None = None

    def wait(self) -> None:
        try:
            self.barrier.wait()
        except threading.BrokenBarrierError:
            raise _RankLost("another rank has ended, or does not come to this collective") from None


class Threads:
    """Communicator of one rank among threads."""

    name = "threads"
    purpose = ""

    def __init__(self, rank: int, size: int, meeting: _Meeting, timeout: float):
        self.rank, self.size = rank, size
        self._meeting, self._timeout = meeting, timeout

    def _exchange(self, value: Any, use: Callable[[list[Any]], None]) -> None:
        meeting = self._meeting
        meeting.values[self.rank] = value
        meeting.wait()
        use([*meeting.values])
        meeting.wait()  # no thread changes its value while the others read it

    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        reduced: list[np.ndarray] = []
        self._exchange(source, lambda values: reduced.append(reduce_arrays(values, op)))
        np.copyto(result, reduced[0])

    def reduce_scatter(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        reduced = np.empty_like(source)
        self.all_reduce(source, reduced, op)
        np.copyto(result, in_parts(reduced, self.size)[self.rank])

    def all_gather(self, source: np.ndarray, result: np.ndarray) -> None:
        self._exchange(source, lambda values: np.copyto(result, np.concatenate(values).reshape(result.shape)))

    def broadcast(self, array: np.ndarray, root: int) -> None:
        self._exchange(array, lambda values: None if root == self.rank else np.copyto(array, values[root]))

    def all_to_all(self, source: np.ndarray, result: np.ndarray) -> None:

        def use(values: list[np.ndarray]) -> None:
            for target, other in zip(in_parts(result, self.size), values, strict=True):
                np.copyto(target, in_parts(other, self.size)[self.rank])

        self._exchange(source, use)

    def barrier(self) -> None:
        self._meeting.wait()

    def gather_objects(self, value: Any) -> list[Any]:
        gathered: list[Any] = []
        self._exchange(value, gathered.extend)
        return gathered

    def duplicate(self) -> Threads:
        meetings = self.gather_objects(_Meeting(self.size, self._timeout))
        return Threads(self.rank, self.size, meetings[0], self._timeout)

    def abort(self, message: str) -> None:
        self._meeting.barrier.abort()


def run(size: int, function: Callable[[int], Any], timeout: float = 30.0) -> list[Any]:
    """Call ``function(rank)`` in each of ``size`` threads that form a group, and return the results by rank.

    If a thread fails, the others end at their next collective, and its error is raised. A thread also fails if it waits
    longer than ``timeout`` seconds for the others.
    """
    meeting = _Meeting(size, timeout)

    def one(rank: int) -> Any:
        try:
            with using(Group(Threads(rank, size, meeting, timeout))):
                return function(rank)
        # NOTE: any error must break the barrier, or the others would wait for this rank.
        except BaseException:
            meeting.barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(one, rank) for rank in range(size)]
    errors = [e for f in futures if (e := f.exception()) is not None]
    if errors:
        raise next((e for e in errors if not isinstance(e, _RankLost)), errors[0])
    return [f.result() for f in futures]
