"""Ranks as threads of one process: what tests run on without MPI, with the same interface."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from graphc.base.errors import DistributedError
from graphc.distributed.communicator import folded, in_parts
from graphc.distributed.group import Group, using


class _Gone(DistributedError):
    """Another rank has failed before, which tells why."""


class _Meeting:
    """Where the threads exchange what they have."""

    def __init__(self, size: int, patience: float):
        self.barrier = threading.Barrier(size, timeout=patience)
        self.given: list[Any] = [None] * size
        self.next: _Meeting | None = None

    def wait(self) -> None:
        try:
            self.barrier.wait()
        except threading.BrokenBarrierError:
            raise _Gone("another rank has ended, or does not come to this collective") from None


class Threads:
    """One rank among threads."""

    name = "threads"
    purpose = ""

    def __init__(self, rank: int, size: int, meeting: _Meeting, patience: float):
        self.rank, self.size = rank, size
        self._meeting, self._patience = meeting, patience

    def _exchange(self, value: Any, use: Callable[[list[Any]], None]) -> None:
        meeting = self._meeting
        meeting.given[self.rank] = value
        meeting.wait()
        use([*meeting.given])
        meeting.wait()  # nobody changes what the others still read

    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """See Communicator."""
        found: list[np.ndarray] = []
        self._exchange(source, lambda given: found.append(folded(given, op)))
        np.copyto(result, found[0])

    def reduce_scatter(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """See Communicator."""
        whole = np.empty_like(source)
        self.all_reduce(source, whole, op)
        np.copyto(result, in_parts(whole, self.size)[self.rank])

    def all_gather(self, source: np.ndarray, result: np.ndarray) -> None:
        """See Communicator."""
        self._exchange(source, lambda given: np.copyto(result, np.concatenate(given).reshape(result.shape)))

    def broadcast(self, array: np.ndarray, root: int) -> None:
        """See Communicator."""
        self._exchange(array, lambda given: None if root == self.rank else np.copyto(array, given[root]))

    def all_to_all(self, source: np.ndarray, result: np.ndarray) -> None:
        """See Communicator."""

        def use(given: list[np.ndarray]) -> None:
            for part, other in zip(in_parts(result, self.size), given, strict=True):
                np.copyto(part, in_parts(other, self.size)[self.rank])

        self._exchange(source, use)

    def barrier(self) -> None:
        """See Communicator."""
        self._meeting.wait()

    def gather_objects(self, value: Any) -> list[Any]:
        """See Communicator."""
        found: list[Any] = []
        self._exchange(value, found.extend)
        return found

    def duplicate(self) -> Threads:
        """See Communicator."""
        meetings = self.gather_objects(_Meeting(self.size, self._patience))
        return Threads(self.rank, self.size, meetings[0], self._patience)

    def abort(self, message: str) -> None:
        """See Communicator."""
        self._meeting.barrier.abort()


def run(size: int, function: Callable[[int], Any], patience: float = 30.0) -> list[Any]:
    """What ``function(rank)`` returns in each of ``size`` threads that are a group. The first error of one is raised;
    the others end at their next collective, and all that wait longer than ``patience`` seconds for the others."""
    meeting = _Meeting(size, patience)

    def one(rank: int) -> Any:
        try:
            with using(Group(Threads(rank, size, meeting, patience))):
                return function(rank)
        # NOTE: whatever ends a rank, or the others would wait for it; it is raised again.
        except BaseException:
            meeting.barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(one, rank) for rank in range(size)]
    errors = [e for f in futures if (e := f.exception()) is not None]
    if errors:
        raise next((e for e in errors if not isinstance(e, _Gone)), errors[0])
    return [f.result() for f in futures]
