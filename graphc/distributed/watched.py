"""Collectives that leave a note of themselves: which one a process is in, and whether all processes mean the same."""

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


class Call(NamedTuple):
    """One collective that was begun."""

    number: int
    """Its place in the order of those of one communicator, from 1."""
    name: str
    purpose: str
    """What it is for; may be empty."""
    shape: tuple[int, ...] | None
    dtype: np.dtype | None
    detail: str
    """The reduction, or the process that sends."""
    begun: float
    """In seconds of ``time.monotonic``."""
    thread: int

    def __str__(self) -> str:
        array = "" if self.shape is None else f"{_type(self.dtype)}{list(self.shape)}"
        what = ", ".join(part for part in (self.purpose, array) if part)
        return self.name + (f" of {what}" if what else "") + (f" ({self.detail})" if self.detail else "")


class Watched:
    """A communicator that notes each collective before it begins and when it has ended. With ``check`` the processes
    first compare what they are about to call: a difference is a DistributedError on all of them."""

    def __init__(self, communicator: Communicator, family: list[Watched], check: bool = False):
        """``family``: all that come from one communicator, to which this one is added."""
        self._communicator: Any = communicator
        self._family, self._check = family, check
        self.name, self.rank, self.size = communicator.name, communicator.rank, communicator.size
        self.purpose = ""
        self.last: Call | None = None
        """The collective that was begun last."""
        self.is_in = False
        """Whether it has not ended yet."""
        self._number = 0
        family.append(self)

    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """See Communicator."""
        self._note("all_reduce", source, op, lambda: self._communicator.all_reduce(source, result, op))

    def reduce_scatter(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """See Communicator."""
        self._note("reduce_scatter", source, op, lambda: self._communicator.reduce_scatter(source, result, op))

    def all_gather(self, source: np.ndarray, result: np.ndarray) -> None:
        """See Communicator."""
        self._note("all_gather", source, "", lambda: self._communicator.all_gather(source, result))

    def broadcast(self, array: np.ndarray, root: int) -> None:
        """See Communicator."""
        self._note("broadcast", array, f"from rank {root}", lambda: self._communicator.broadcast(array, root))

    def all_to_all(self, source: np.ndarray, result: np.ndarray) -> None:
        """See Communicator."""
        self._note("all_to_all", source, "", lambda: self._communicator.all_to_all(source, result))

    def barrier(self) -> None:
        """See Communicator."""
        self._note("barrier", None, "", lambda: self._communicator.barrier())

    def gather_objects(self, value: Any) -> list[Any]:
        """See Communicator."""
        return self._note("gather_objects", None, "", lambda: self._communicator.gather_objects(value))

    def duplicate(self) -> Watched:
        """See Communicator."""
        copy = self._note("duplicate", None, "", lambda: self._communicator.duplicate())
        return Watched(copy, self._family, self._check)

    def abort(self, message: str) -> None:
        """See Communicator."""
        self._communicator.abort(message)

    def become_child(self) -> None:
        """In a process that was forked: collectives are errors."""
        self._communicator, self._check = _Elsewhere(self.rank, self.size), False

    def _note(self, name: str, array: np.ndarray | None, detail: str, collective: Callable[[], Any]) -> Any:
        self._number += 1
        shape, dtype = (None, None) if array is None else (array.shape, array.dtype)
        self.last = call = Call(
            self._number, name, self.purpose, shape, dtype, detail, time.monotonic(), threading.get_ident()
        )
        self.is_in = True
        try:
            if self._check:
                self._compare(call)
            return collective()
        finally:
            self.is_in = False

    def _compare(self, call: Call) -> None:
        """Raises DistributedError on all processes where one calls something else."""
        calls = self._communicator.gather_objects((str(call), str(capture())))
        if all(text == calls[0][0] for text, _ in calls):
            return
        ranks: dict[tuple[str, str], list[int]] = {}
        for rank, told in enumerate(calls):
            ranks.setdefault(told, []).append(rank)
        said = [f"{text} on {listed(who)}{f', at {line}' if line else ''}" for (text, line), who in ranks.items()]
        raise DistributedError(
            f"collective {call.number} is not the same on all ranks: {'; '.join(said)}",
            origin=capture().describe(),
            remedy="the same collectives, in the same order, with the same shapes and types on all ranks",
        )


def _type(dtype: np.dtype | None) -> str:
    """graphc's name of an element type, as ``f32``; numpy's where it has none."""
    try:
        return layout_of(np.dtype(dtype)).name
    except DTypeError:
        return str(dtype)


def listed(ranks: list[int]) -> str:
    """Numbers of processes as a text: ``rank 1``, ``ranks 0, 2``."""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


class _Elsewhere:
    """The communicator of a process that was forked from one of a group: it has none."""

    def __init__(self, rank: int, size: int):
        self.rank, self.size = rank, size

    def __getattr__(self, name: str) -> Any:
        raise DistributedError(
            f"{name}: this process was forked from rank {self.rank} of {self.size}, and is none of them",
            remedy="collectives in the process that called init() alone; workers of loaders give batches",
        )
