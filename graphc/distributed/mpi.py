"""Collectives by MPI, through mpi4py: the only file that imports it."""

from __future__ import annotations

import atexit
import faulthandler
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from graphc.base.errors import DistributedError
from graphc.base.installation import install_command
from graphc.distributed.communicator import folded, in_parts

_LAUNCHERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
"""Environment variables that tell processes which an MPI launcher has started."""

_STDERR = 2
_HEARD = 0.2
"""Seconds in which a launcher has read what a process said last."""


def is_launched() -> bool:
    """Whether ``mpiexec`` or the like has started this process; what such a process starts in turn, as workers of a
    loader, has the same environment and is none of its processes."""
    return multiprocessing.parent_process() is None and any(name in os.environ for name in _LAUNCHERS)


def _install_mpi() -> str:
    return f"install an MPI and mpi4py: {install_command('mpi')}"


def library() -> Any:
    """The module ``mpi4py.MPI``; raises DistributedError where there is none, or no MPI for it."""
    try:
        # NOTE: MPI would begin as soon as it is imported, while Python stands still, and would end in every process
        # that was forked from this one.
        rc = import_module("mpi4py").rc
        rc.initialize = rc.finalize = False
        return import_module("mpi4py.MPI")
    except ImportError:
        raise DistributedError(
            "several processes need MPI, through mpi4py, which is not there", remedy=_install_mpi()
        ) from None
    except RuntimeError as error:  # mpi4py without an MPI library
        raise DistributedError(f"mpi4py finds no MPI: {error}", remedy=_install_mpi()) from error


def launched(timeout: float) -> Mpi:
    """All processes that were started together; they are waited for. This process ends where some have not come within
    ``timeout`` seconds."""
    found = library()
    if not found.Is_initialized():
        _wait_until_all_processes_call_init(found, timeout)
        atexit.register(_finalize, found, os.getpid())
    if found.Query_thread() < found.THREAD_MULTIPLE:
        raise DistributedError(
            "this MPI does not let several threads communicate (MPI_THREAD_MULTIPLE)",
            remedy="initialise MPI by graphc.distributed.init() alone, or another build of MPI",
        )
    return Mpi(found.COMM_WORLD, found)


def _wait_until_all_processes_call_init(library: Any, timeout: float) -> None:
    """Begins MPI, which returns when all have begun it; ends the process, with status 1, after ``timeout`` seconds."""
    # NOTE: no other thread of Python runs meanwhile, so that only faulthandler can end the process. What it prints is
    # the name of this function.
    faulthandler.dump_traceback_later(timeout, exit=True, file=_STDERR)
    try:
        library.Init_thread(library.THREAD_MULTIPLE)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _finalize(library: Any, process: int) -> None:
    """Ends MPI with the process that began it, and not with one that was forked from it."""
    if os.getpid() == process and not library.Is_finalized():
        library.Finalize()


def _with_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose errors of MPI are those of graphc."""

    @wraps(method)
    def call(self: Mpi, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except self._library.Exception as error:
            raise DistributedError(
                f"{method.__name__} has failed in MPI: {error}",
                remedy="the same collectives, with the same shapes and types, on all ranks: "
                "GRAPHC_DISTRIBUTED_CHECK=1 compares them",
            ) from error

    return call


class Mpi:
    """One process of an MPI communicator."""

    name = "mpi"
    purpose = ""

    def __init__(self, comm: Any, library: Any):
        self._comm, self._library = comm, library
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._ops = {"sum": library.SUM, "prod": library.PROD, "min": library.MIN, "max": library.MAX}

    @_with_errors
    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """See Communicator."""
        if _is_known(source):
            given = self._library.IN_PLACE if source is result else source
            self._comm.Allreduce(given, result, self._ops[op])
        else:
            np.copyto(result, self._folded(source, op))

    def _folded(self, source: np.ndarray, op: str) -> np.ndarray:
        """The reduction of elements for which MPI has no type, in the order of ranks."""
        parts = np.empty((self.size, *source.shape), source.dtype)
        self.all_gather(source, parts)
        return folded(list(parts), op)

    @_with_errors
    def reduce_scatter(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """See Communicator."""
        if _is_known(source):
            self._comm.Reduce_scatter_block(source, result, self._ops[op])
        else:
            np.copyto(result, in_parts(self._folded(source, op), self.size)[self.rank])

    @_with_errors
    def all_gather(self, source: np.ndarray, result: np.ndarray) -> None:
        """See Communicator."""
        self._comm.Allgather(_bytes(source), _bytes(result))

    @_with_errors
    def broadcast(self, array: np.ndarray, root: int) -> None:
        """See Communicator."""
        self._comm.Bcast(_bytes(array), root)

    @_with_errors
    def all_to_all(self, source: np.ndarray, result: np.ndarray) -> None:
        """See Communicator."""
        self._comm.Alltoall(_bytes(source), _bytes(result))

    @_with_errors
    def barrier(self) -> None:
        """See Communicator."""
        self._comm.Barrier()

    @_with_errors
    def gather_objects(self, value: Any) -> list[Any]:
        """See Communicator."""
        return self._comm.allgather(value)

    @_with_errors
    def duplicate(self) -> Mpi:
        """See Communicator."""
        return Mpi(self._comm.Dup(), self._library)

    def begin_barrier(self) -> Callable[[], bool]:
        """Begins a barrier; gives a function that tells whether all processes have come."""
        return self._comm.Ibarrier().Test

    def abort(self, message: str) -> None:
        """See Communicator."""
        print(message, file=sys.stderr, flush=True)
        # NOTE: the launcher of MPICH drops what it has not yet read when it is told to end all.
        time.sleep(_HEARD)
        self._library.COMM_WORLD.Abort(1)


def _is_known(array: np.ndarray) -> bool:
    """Whether MPI can compute with such elements: numbers of at least 32 bits, and whole ones."""
    return array.dtype.kind in "iu" or (array.dtype.kind in "fc" and array.dtype != np.float16)


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
