"""The processes that work together: which there are, and the collectives of one on arrays, each with a number."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from importlib import import_module
from socket import gethostname
from typing import Any

import numpy as np

from graphc.base import config
from graphc.base.errors import ArgumentError, DistributedError
from graphc.distributed import mpi
from graphc.distributed.communicator import OPS, Alone, Communicator
from graphc.distributed.guard import Guard
from graphc.runtime import threads

BACKENDS = ("auto", "mpi", "nccl", "local")
_LAUNCH = "mpiexec -n COUNT python script.py"


class Group:
    """The processes that work together, as one of them sees them. Arrays that it is given may lie anyhow; results are
    new ones."""

    def __init__(self, communicator: Communicator):
        self.communicator = communicator
        self.rank, self.size = communicator.rank, communicator.size

    def all_reduce(self, array: np.ndarray, op: str = "sum") -> np.ndarray:
        """The reduction over all processes; raises ArgumentError for another ``op`` than those of OPS."""
        checked_op(op)
        source = np.asarray(array, order="C")
        result = np.empty_like(source)
        self.communicator.all_reduce(source, result, op)
        return result

    def reduce_scatter(self, array: np.ndarray, op: str = "sum") -> np.ndarray:
        """Part ``rank`` of the reduction, along the first dimension, which ``size`` must divide (ShapeError)."""
        checked_op(op)
        source = np.asarray(array, order="C")
        result = np.empty((source.shape[0] // self.size, *source.shape[1:]), source.dtype)
        self.communicator.reduce_scatter(source, result, op)
        return result

    def all_gather(self, array: np.ndarray) -> np.ndarray:
        """The arrays of all, with a first dimension for their ranks."""
        source = np.asarray(array, order="C")
        result = np.empty((self.size, *source.shape), source.dtype)
        self.communicator.all_gather(source, result)
        return result

    def broadcast(self, array: np.ndarray, root: int = 0) -> np.ndarray:
        """The array of process ``root``; the others give one of its shape and type."""
        self.check_rank(root)
        found = np.array(array, order="C")
        self.communicator.broadcast(found, root)
        return found

    def all_to_all(self, array: np.ndarray) -> np.ndarray:
        """Part i along the first dimension goes to process i; gives what came, in the order of senders."""
        source = np.asarray(array, order="C")
        result = np.empty_like(source)
        self.communicator.all_to_all(source, result)
        return result

    def barrier(self) -> None:
        """Returns when all have called it."""
        self.communicator.barrier()

    def gather_objects(self, value: Any) -> list[Any]:
        """The values of all processes, by rank; they are pickled."""
        return self.communicator.gather_objects(value)

    @cached_property
    def on_devices(self) -> Any:
        """The collectives of arrays on GPUs; what knows these is loaded here."""
        return import_module("graphc.distributed.nccl").OnDevices(self.communicator)

    def check_rank(self, rank: int) -> None:
        """Raises ArgumentError for a number that no process has."""
        if not 0 <= rank < self.size:
            raise ArgumentError(f"there is no rank {rank} among {self.size} processes", remedy=f"0 to {self.size - 1}")


def checked_op(op: str) -> None:
    """Raises ArgumentError for a reduction that does not exist."""
    if op not in OPS:
        raise ArgumentError(f"there is no reduction {op!r}", remedy=", ".join(OPS))


_alone = Group(Alone())
_default: Group | None = None
_guard: Guard | None = None
_here: ContextVar[Group | None] = ContextVar("group", default=None)


def init(backend: str = "auto", *, timeout: float | None = None) -> Group:
    """Makes the processes that a launcher has started together (``mpiexec -n 4 python train.py``) one group.

    ``auto`` takes MPI where a launcher has started this process, and else this process alone, so that the same script
    runs by itself; ``mpi`` and ``local`` say which, and ``nccl`` is ``mpi`` where NCCL must be there for tensors on
    GPUs, which go by it anyway. Processes of one machine share its cores: each uses its part of
    them, unless GRAPHC_THREADS or ``set_num_threads`` says otherwise. Calling it again changes nothing.

    From then on an error that nobody catches in one process ends all, and so does a collective that some processes do
    not come to within ``timeout`` seconds (GRAPHC_DISTRIBUTED_TIMEOUT, 600): the message names it, who is in it, and
    what the others do. With GRAPHC_DISTRIBUTED_CHECK=1 processes compare what they call before each collective. Raises
    DistributedError where there is no MPI, DeviceError where ``nccl`` is missing, ArgumentError for another backend or
    a timeout that is no number of seconds.
    """
    global _default, _guard
    options = config.read()
    timeout = options.distributed_timeout if timeout is None else timeout
    if backend not in BACKENDS:
        raise ArgumentError(f"init: there is no backend {backend!r}", remedy=", ".join(BACKENDS))
    if not timeout > 0 or math.isnan(timeout):
        raise ArgumentError(f"init: timeout={timeout!r} is no number of seconds", remedy="timeout=600")
    if _default is not None:
        return _default
    if backend == "local" or (backend == "auto" and not mpi.is_launched()):
        _default = Group(Alone())
        return _default
    if backend == "nccl":
        import_module("graphc.runtime.devices.cuda").nccl()
    communicator = mpi.launched(timeout)
    if communicator.size > 1:
        _guard = Guard(communicator, timeout, options.distributed_check)
    _default = Group(communicator if _guard is None else _guard.watched)
    _share_cores(_default)
    return _default


def _share_cores(group: Group) -> None:
    """Processes that may use the same cores of one machine take equal parts of them."""
    near = group.gather_objects((gethostname(), tuple(sorted(os.sched_getaffinity(0)))))
    threads.follow(max(1, threads.available_cores() // near.count(near[group.rank])))


def is_initialized() -> bool:
    """Whether ``init`` was called."""
    return _default is not None or _here.get() is not None


def group() -> Group:
    """The group of this process: that of ``init``, or this process alone."""
    return _here.get() or _default or _alone


def check_group(chosen: Any, name: str) -> None:
    """Raises ArgumentError for other processes than those of the group; ``name`` is that of the argument."""
    if chosen not in (None, group()):
        raise ArgumentError(f"{name}={chosen!r}: all processes are one group", remedy="None, for all processes")


@contextmanager
def using(chosen: Group) -> Iterator[Group]:
    """While the block runs, ``chosen`` is the group of this thread or task."""
    token = _here.set(chosen)
    try:
        yield chosen
    finally:
        _here.reset(token)


def rank() -> int:
    """The number of this process, from 0."""
    return group().rank


def size() -> int:
    """How many processes there are."""
    return group().size


def barrier() -> None:
    """Returns when all processes have called it."""
    group().barrier()


def init_process_group(
    backend: str | None = None, init_method: Any = None, timeout: Any = None, **options: Any
) -> Group:
    """``init`` under PyTorch's name. A launcher has started the processes, so ``gloo``, ``mpi`` and ``nccl`` ask for
    what is there anyway, as ``init_method="env://"`` does; ``timeout`` is a timedelta or a number of seconds. Raises
    ArgumentError for what would make another group than the launcher did."""
    name = "auto" if backend in (None, "gloo", "nccl", "cpu:gloo,cuda:nccl") else backend
    launched = init("auto" if name == "mpi" and not mpi.is_launched() else name, timeout=_seconds(timeout))
    wanted = {"world_size": launched.size, "rank": launched.rank}
    for key, value in options.items():
        if value not in (wanted.get(key), None, -1):
            raise ArgumentError(f"init_process_group: {key}={value!r}", remedy=_LAUNCH)
    if init_method not in (None, "env://"):
        raise ArgumentError(
            f"init_process_group: init_method={init_method!r}", remedy="mpiexec -n COUNT python script.py"
        )
    return launched


def _seconds(timeout: Any) -> float | None:
    return None if timeout is None else getattr(timeout, "total_seconds", lambda: float(timeout))()


def destroy_process_group() -> None:
    """Waits for the others; afterwards this process is one by itself. It may be left out."""
    global _default, _guard
    if _default is not None:
        _default.barrier()
        _default = None
    if _guard is not None:
        _guard.close()
        _guard = None


def is_available() -> bool:
    """True: a process alone is a group, too."""
    return True


def is_mpi_available() -> bool:
    """Whether several processes can communicate: mpi4py and an MPI are installed."""
    try:
        mpi.library()
    except DistributedError:
        return False
    return True
