"""Communicator that records its current collective, and checks that all processes call the same one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import layout_of
from graphc.base.errors import DistributedError, DTypeError
from graphc.base.location import capture
from graphc.distributed.communicator import Communicator


class CollectiveCall(NamedTuple):
    """One collective, recorded when it starts."""

    number: int
    """Position among the collectives of one communicator, from 1."""
    name: str
    purpose: str
    """Purpose of the collective; may be empty."""
    shape: tuple[int, ...] | None
    dtype: np.dtype | None
    detail: str
    """Name of the reduction, or the sending rank."""
    started: float
    """Start in seconds of ``time.monotonic``."""
    thread: int

    def __str__(self) -> str:
        array = "" if self.shape is None else f"{_type(self.dtype)}{list(self.shape)}"
        subject = ", ".join(text for text in (self.purpose, array) if text)
        return self.name + (f" of {subject}" if subject else "") + (f" ({self.detail})" if self.detail else "")


class WatchedCommunicator:
    """Communicator that records the start and end of each collective.

    With ``check`` the processes first compare their calls; a difference raises DistributedError on all of them.
    """

    def __init__(self, communicator: Communicator, family: list[WatchedCommunicator], check: bool = False):
        """Wrap a communicator, and add this one to ``family``: all duplicates of one communicator."""
        self._communicator: Any = communicator
        self._family, self._check = family, check
        self.name, self.rank, self.size = communicator.name, communicator.rank, communicator.size
        self.purpose = ""
        self.last: CollectiveCall | None = None
        """Collective that started last."""
        self.is_in = False
        """Whether ``last`` is still in progress."""
        self._number = 0
        family.append(self)

    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        self._note("all_reduce", source, op, lambda: self._communicator.all_reduce(source, result, op))

    def reduce_scatter(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        self._note("reduce_scatter", source, op, lambda: self._communicator.reduce_scatter(source, result, op))

    def all_gather(self, source: np.ndarray, result: np.ndarray) -> None:
        self._note("all_gather", source, "", lambda: self._communicator.all_gather(source, result))

    def broadcast(self, array: np.ndarray, root: int) -> None:
        self._note("broadcast", array, f"from rank {root}", lambda: self._communicator.broadcast(array, root))

    def all_to_all(self, source: np.ndarray, result: np.ndarray) -> None:
        self._note("all_to_all", source, "", lambda: self._communicator.all_to_all(source, result))

    def barrier(self) -> None:
        self._note("barrier", None, "", lambda: self._communicator.barrier())

    def gather_objects(self, value: Any) -> list[Any]:
        return self._note("gather_objects", None, "", lambda: self._communicator.gather_objects(value))

    def duplicate(self) -> WatchedCommunicator:
        copy = self._note("duplicate", None, "", lambda: self._communicator.duplicate())
        return WatchedCommunicator(copy, self._family, self._check)

    def abort(self, message: str) -> None:
        self._communicator.abort(message)

    def become_child(self) -> None:
        """Make collectives raise DistributedError, in a forked process."""
        self._communicator, self._check = _ForkedCommunicator(self.rank, self.size), False

    def _note(self, name: str, array: np.ndarray | None, detail: str, collective: Callable[[], Any]) -> Any:
        self._number += 1
        shape, dtype = (None, None) if array is None else (array.shape, array.dtype)
        self.last = call = CollectiveCall(
            self._number, name, self.purpose, shape, dtype, detail, time.monotonic(), threading.get_ident()
        )
        self.is_in = True
        try:
            if self._check:
                self._compare(call)
            return collective()
        finally:
            self.is_in = False

    def _compare(self, call: CollectiveCall) -> None:
        """Raise DistributedError on all processes if one calls another collective."""
        calls = self._communicator.gather_objects((str(call), str(capture())))
        if all(text == calls[0][0] for text, _ in calls):
            return
        ranks: dict[tuple[str, str], list[int]] = {}
        for rank, description in enumerate(calls):
            ranks.setdefault(description, []).append(rank)
        texts = [
            f"{text} on {format_ranks(who)}{f', at {line}' if line else ''}" for (text, line), who in ranks.items()
        ]
        raise DistributedError(
            f"collective {call.number} is not the same on all ranks: {'; '.join(texts)}",
            origin=capture().describe(),
            remedy="call the same collectives, in the same order, with the same shapes and types on all ranks",
        )


def _type(dtype: np.dtype | None) -> str:
    """Return graphc's name of an element type, such as ``f32``, or else numpy's."""
    try:
        return layout_of(np.dtype(dtype)).name
    except DTypeError:
        return str(dtype)


def format_ranks(ranks: list[int]) -> str:
    """Format ranks: ``rank 1``, ``ranks 0, 2``."""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


class _ForkedCommunicator:
    """Communicator of a forked process, which does not belong to the group: every collective is an error."""

    def __init__(self, rank: int, size: int):
        self.rank, self.size = rank, size

    def __getattr__(self, name: str) -> Any:
        raise DistributedError(
            f"{name}: this process was forked from rank {self.rank} of {self.size} and does not belong to the group",
            remedy="call collectives only in the process that called init(); workers of loaders return batches",
        )
