"""Collectives by MPI, through mpi4py, which only this module imports."""

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
from graphc.distributed.communicator import in_parts, reduce_arrays

_LAUNCHERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
"""Environment variables that MPI launchers set for their processes."""

_STDERR = 2
_FLUSH_TIME = 0.2
"""Seconds to wait until the launcher has read the last output of a process."""


def is_launched() -> bool:
    """Check whether an MPI launcher started this process.

    Its child processes, such as workers of a loader, have the same environment variables but were not launched.
    """
    return multiprocessing.parent_process() is None and any(name in os.environ for name in _LAUNCHERS)


def _install_mpi() -> str:
    return f"install an MPI and mpi4py: {install_command('mpi')}"


def library() -> Any:
    """Return the module ``mpi4py.MPI``. Raises DistributedError without mpi4py or an MPI library."""
    try:
        # NOTE: by default, importing mpi4py initializes MPI while it holds the GIL, and finalizes it in every forked
        # process too.
        rc = import_module("mpi4py").rc
        rc.initialize = rc.finalize = False
        return import_module("mpi4py.MPI")
    except ImportError:
        raise DistributedError(
            "several processes need MPI through mpi4py, which is not installed", remedy=_install_mpi()
        ) from None
    except RuntimeError as error:  # mpi4py without an MPI library
        raise DistributedError(f"mpi4py finds no MPI: {error}", remedy=_install_mpi()) from error


def launched(timeout: float) -> Mpi:
    """Return the communicator of all launched processes, after all have called it.

    This process ends if some of them do not within ``timeout`` seconds.
    """
    module = library()
    if not module.Is_initialized():
        _wait_until_all_processes_call_init(module, timeout)
        atexit.register(_finalize, module, os.getpid())
    if module.Query_thread() < module.THREAD_MULTIPLE:
        raise DistributedError(
            "this MPI does not support communication by several threads (MPI_THREAD_MULTIPLE)",
            remedy="initialize MPI only through graphc.distributed.init(), or install another MPI",
        )
    return Mpi(module.COMM_WORLD, module)


def _wait_until_all_processes_call_init(library: Any, timeout: float) -> None:
    """Initialize MPI, which waits for all processes; end this process with status 1 after ``timeout`` seconds."""
    # NOTE: MPI holds the GIL meanwhile, so only faulthandler can end the process. Its traceback prints the name of
    # this function.
    faulthandler.dump_traceback_later(timeout, exit=True, file=_STDERR)
    try:
        library.Init_thread(library.THREAD_MULTIPLE)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _finalize(library: Any, process: int) -> None:
    """Finalize MPI in the process that initialized it, and not in forked ones."""
    if os.getpid() == process and not library.Is_finalized():
        library.Finalize()


def _with_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method so that errors of MPI become DistributedError."""

    @wraps(method)
    def call(self: Mpi, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except self._library.Exception as error:
            raise DistributedError(
                f"{method.__name__} failed in MPI: {error}",
                remedy="call the same collectives, with the same shapes and types, on all ranks: "
                "GRAPHC_DISTRIBUTED_CHECK=1 compares them",
            ) from error

    return call


class Mpi:
    """Communicator of processes connected by MPI."""

    name = "mpi"
    purpose = ""

    def __init__(self, comm: Any, library: Any):
        self._comm, self._library = comm, library
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._ops = {"sum": library.SUM, "prod": library.PROD, "min": library.MIN, "max": library.MAX}

    @_with_errors
    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        if _is_native(source):
            send_buffer = self._library.IN_PLACE if source is result else source
            self._comm.Allreduce(send_buffer, result, self._ops[op])
        else:
            np.copyto(result, self._reduce_locally(source, op))

    def _reduce_locally(self, source: np.ndarray, op: str) -> np.ndarray:
        """Gather and reduce elements of a type that MPI does not have, in the order of ranks."""
        gathered = np.empty((self.size, *source.shape), source.dtype)
        self.all_gather(source, gathered)
        return reduce_arrays(list(gathered), op)

    @_with_errors
    def reduce_scatter(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        if _is_native(source):
            self._comm.Reduce_scatter_block(source, result, self._ops[op])
        else:
            np.copyto(result, in_parts(self._reduce_locally(source, op), self.size)[self.rank])

    @_with_errors
    def all_gather(self, source: np.ndarray, result: np.ndarray) -> None:
        self._comm.Allgather(_bytes(source), _bytes(result))

    @_with_errors
    def broadcast(self, array: np.ndarray, root: int) -> None:
        self._comm.Bcast(_bytes(array), root)

    @_with_errors
    def all_to_all(self, source: np.ndarray, result: np.ndarray) -> None:
        self._comm.Alltoall(_bytes(source), _bytes(result))

    @_with_errors
    def barrier(self) -> None:
        self._comm.Barrier()

    @_with_errors
    def gather_objects(self, value: Any) -> list[Any]:
        return self._comm.allgather(value)

    @_with_errors
    def duplicate(self) -> Mpi:
        return Mpi(self._comm.Dup(), self._library)

    def begin_barrier(self) -> Callable[[], bool]:
        """Start a barrier, and return a function that checks whether all processes have entered it."""
        return self._comm.Ibarrier().Test

    def abort(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)
        # NOTE: when MPICH's launcher is told to abort, it drops output that it has not read yet.
        time.sleep(_FLUSH_TIME)
        self._library.COMM_WORLD.Abort(1)


def _is_native(array: np.ndarray) -> bool:
    """Check whether MPI can reduce the elements: integers, and floats or complex numbers of at least 32 bits."""
    return array.dtype.kind in "iu" or (array.dtype.kind in "fc" and array.dtype != np.float16)


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
