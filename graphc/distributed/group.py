"""Process group: start and end it, find rank and size, and call collectives on arrays."""

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

__all__ = ["Group", "barrier", "destroy_process_group", "get_rank", "get_world_size", "group", "init"]
__all__ += ["init_process_group", "is_available", "is_initialized", "is_mpi_available", "rank", "size", "using"]

BACKENDS = ("auto", "mpi", "nccl", "local")
_LAUNCH = "mpiexec -n COUNT python script.py"


class Group:
    """Group of processes, seen from one of them. Arrays may have any strides; results are new arrays."""

    def __init__(self, communicator: Communicator):
        self.communicator = communicator
        self.rank, self.size = communicator.rank, communicator.size

    def all_reduce(self, array: np.ndarray, op: str = "sum") -> np.ndarray:
        """Return the reduction over all processes. Raises ArgumentError unless ``op`` is in OPS."""
        check_op(op)
        source = np.asarray(array, order="C")
        result = np.empty_like(source)
        self.communicator.all_reduce(source, result, op)
        return result

    def reduce_scatter(self, array: np.ndarray, op: str = "sum") -> np.ndarray:
        """Return part ``rank`` of the reduction, along the first dimension, which ``size`` must divide."""
        check_op(op)
        source = np.asarray(array, order="C")
        result = np.empty((source.shape[0] // self.size, *source.shape[1:]), source.dtype)
        self.communicator.reduce_scatter(source, result, op)
        return result

    def all_gather(self, array: np.ndarray) -> np.ndarray:
        """Return the arrays of all processes, stacked along a new first dimension by rank."""
        source = np.asarray(array, order="C")
        result = np.empty((self.size, *source.shape), source.dtype)
        self.communicator.all_gather(source, result)
        return result

    def broadcast(self, array: np.ndarray, root: int = 0) -> np.ndarray:
        """Return the array of rank ``root``; the other processes pass one of the same shape and type."""
        self.check_rank(root)
        result = np.array(array, order="C")
        self.communicator.broadcast(result, root)
        return result

    def all_to_all(self, array: np.ndarray) -> np.ndarray:
        """Send part i along the first dimension to rank i; return the received parts in the order of senders."""
        source = np.asarray(array, order="C")
        result = np.empty_like(source)
        self.communicator.all_to_all(source, result)
        return result

    def barrier(self) -> None:
        """Return when all processes have called it."""
        self.communicator.barrier()

    def gather_objects(self, value: Any) -> list[Any]:
        """Return the pickled values of all processes, by rank."""
        return self.communicator.gather_objects(value)

    @cached_property
    def on_devices(self) -> Any:
        """Collectives of arrays on GPUs, imported at first use."""
        return import_module("graphc.distributed.nccl").OnDevices(self.communicator)

    def check_rank(self, rank: int) -> None:
        """Raise ArgumentError unless ``rank`` is the rank of a process."""
        if not 0 <= rank < self.size:
            raise ArgumentError(
                f"there is no rank {rank} among {self.size} processes", remedy=f"choose 0 to {self.size - 1}"
            )


def check_op(op: str) -> None:
    """Raise ArgumentError unless ``op`` is in OPS."""
    if op not in OPS:
        raise ArgumentError(f"there is no reduction {op!r}", remedy=f"choose one of {', '.join(OPS)}")


_alone = Group(Alone())
_default: Group | None = None
_guard: Guard | None = None
_here: ContextVar[Group | None] = ContextVar("group", default=None)


def init(backend: str = "auto", *, timeout: float | None = None) -> Group:
    """Join the processes started by a launcher (``mpiexec -n 4 python train.py``) into one group.

    Processes on one machine share its cores equally, unless GRAPHC_THREADS or ``set_num_threads`` is set. Later calls
    return the same group. From then on, an uncaught error in one process ends all of them. So does a collective that
    some processes do not enter within the timeout; the message names the collective, the processes in it, and the
    activity of the others. With GRAPHC_DISTRIBUTED_CHECK=1 the processes compare their calls before each collective.

    Args:
        backend: ``"auto"`` uses MPI if a launcher started this process and otherwise this process alone; ``"mpi"`` and
            ``"local"`` choose one of them. ``"nccl"`` is ``"mpi"`` and requires NCCL, which tensors on GPUs use anyway.
        timeout: seconds to wait for a process (default: GRAPHC_DISTRIBUTED_TIMEOUT, or 600).

    Returns:
        The group.

    Raises:
        DistributedError: MPI is not installed.
        DeviceError: ``"nccl"`` without NCCL.
        ArgumentError: an unknown backend, or a timeout other than a positive number.

    Example:
        >>> import graphc.distributed as dist
        >>> group = dist.init()
        >>> print(dist.rank(), "of", dist.size())
        0 of 1
        >>> dist.destroy_process_group()
    """
    global _default, _guard
    options = config.read()
    timeout = options.distributed_timeout if timeout is None else timeout
    if backend not in BACKENDS:
        raise ArgumentError(f"init: there is no backend {backend!r}", remedy=f"choose one of {', '.join(BACKENDS)}")
    if not timeout > 0 or math.isnan(timeout):
        raise ArgumentError(
            f"init: timeout must be a positive number of seconds, got {timeout!r}", remedy="pass timeout=600"
        )
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
    """Divide the cores of a machine equally between the processes that may use them."""
    near = group.gather_objects((gethostname(), tuple(sorted(os.sched_getaffinity(0)))))
    threads.follow(max(1, threads.available_cores() // near.count(near[group.rank])))


def is_initialized() -> bool:
    """Check whether ``init`` was called."""
    return _default is not None or _here.get() is not None


def group() -> Group:
    """Return the group made by ``init``, or a group of this process alone."""
    return _here.get() or _default or _alone


def check_group(chosen: Any, name: str) -> None:
    """Raise ArgumentError unless ``chosen`` is None or the group of all processes; ``name`` is the argument's name."""
    if chosen not in (None, group()):
        raise ArgumentError(f"{name}={chosen!r}: all processes are one group", remedy="pass None, for all processes")


@contextmanager
def using(chosen: Group) -> Iterator[Group]:
    """Make ``chosen`` the group of this thread or task inside the block."""
    token = _here.set(chosen)
    try:
        yield chosen
    finally:
        _here.reset(token)


def rank() -> int:
    """Return the rank of this process, from 0."""
    return group().rank


def size() -> int:
    """Return the number of processes."""
    return group().size


get_rank, get_world_size = rank, size


def barrier() -> None:
    """Return when all processes have called it."""
    group().barrier()


def init_process_group(
    backend: str | None = None, init_method: Any = None, timeout: Any = None, **options: Any
) -> Group:
    """Call ``init``, with PyTorch's name and arguments.

    The launcher has chosen the processes, so ``gloo``, ``mpi``, ``nccl`` and ``init_method="env://"`` all mean the
    group that it started. ``timeout`` is a timedelta or a number of seconds. Raises ArgumentError for arguments that
    describe another group.
    """
    name = "auto" if backend in (None, "gloo", "nccl", "cpu:gloo,cuda:nccl") else backend
    launched = init("auto" if name == "mpi" and not mpi.is_launched() else name, timeout=_seconds(timeout))
    actual = {"world_size": launched.size, "rank": launched.rank}
    for key, value in options.items():
        if value not in (actual.get(key), None, -1):
            raise ArgumentError(
                f"init_process_group: {key}={value!r} does not match the launched processes", remedy=f"start {_LAUNCH}"
            )
    if init_method not in (None, "env://"):
        raise ArgumentError(
            f"init_process_group: init_method={init_method!r} is not supported", remedy=f"start {_LAUNCH}"
        )
    return launched


def _seconds(timeout: Any) -> float | None:
    return None if timeout is None else getattr(timeout, "total_seconds", lambda: float(timeout))()


def destroy_process_group() -> None:
    """Wait for the other processes and leave the group. Calling it is optional."""
    global _default, _guard
    if _default is not None:
        _default.barrier()
        _default = None
    if _guard is not None:
        _guard.close()
        _guard = None


def is_available() -> bool:
    """Return True, since a single process is a group too."""
    return True


def is_mpi_available() -> bool:
    """Check whether mpi4py and an MPI library are installed, so that several processes can communicate."""
    try:
        mpi.library()
    except DistributedError:
        return False
    return True
