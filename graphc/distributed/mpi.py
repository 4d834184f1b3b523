"""Collectives by MPI, through mpi4py: the only file that imports it."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import numpy as np

from graphc.base.errors import DistributedError
from graphc.distributed.communicator import FOLDS, in_parts

INSTALL = "pip install 'graphc[mpi]'"
_LAUNCHERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
"""Environment variables that tell processes which an MPI launcher has started."""


def is_launched() -> bool:
    """Whether ``mpiexec`` or the like has started this process."""
    return any(name in os.environ for name in _LAUNCHERS)


def library() -> Any:
    """The module ``mpi4py.MPI``; raises DistributedError where there is none, or no MPI for it."""
    try:
        # NOTE: loaded here, since loading it joins this process to those that the launcher has started.
        return import_module("mpi4py.MPI")
    except ImportError:
        raise DistributedError(
            "several processes need MPI, through mpi4py, which is not there", remedy=INSTALL
        ) from None
    except RuntimeError as error:  # mpi4py without an MPI library
        raise DistributedError(f"mpi4py finds no MPI: {error}", remedy=INSTALL) from error


def launched() -> Mpi:
    """All processes that were started together."""
    found = library()
    if found.Query_thread() < found.THREAD_MULTIPLE:
        raise DistributedError(
            "this MPI does not let several threads communicate (MPI_THREAD_MULTIPLE)",
            remedy="initialise MPI by graphc.distributed.init() alone, or another build of MPI",
        )
    return Mpi(found.COMM_WORLD, found)


class Mpi:
    """One process of an MPI communicator."""

    name = "mpi"

    def __init__(self, comm: Any, library: Any):
        self._comm, self._library = comm, library
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._ops = {"sum": library.SUM, "prod": library.PROD, "min": library.MIN, "max": library.MAX}

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
        found = parts[0]
        for part in parts[1:]:
            found = FOLDS[op](found, part)
        return found

    def reduce_scatter(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """See Communicator."""
        if _is_known(source):
            self._comm.Reduce_scatter_block(source, result, self._ops[op])
        else:
            np.copyto(result, in_parts(self._folded(source, op), self.size)[self.rank])

    def all_gather(self, source: np.ndarray, result: np.ndarray) -> None:
        """See Communicator."""
        self._comm.Allgather(_bytes(source), _bytes(result))

    def broadcast(self, array: np.ndarray, root: int) -> None:
        """See Communicator."""
        self._comm.Bcast(_bytes(array), root)

    def all_to_all(self, source: np.ndarray, result: np.ndarray) -> None:
        """See Communicator."""
        self._comm.Alltoall(_bytes(source), _bytes(result))

    def barrier(self) -> None:
        """See Communicator."""
        self._comm.Barrier()

    def gather_objects(self, value: Any) -> list[Any]:
        """See Communicator."""
        return self._comm.allgather(value)

    def duplicate(self) -> Mpi:
        """See Communicator."""
        return Mpi(self._comm.Dup(), self._library)

    def abort(self, message: str) -> None:
        """See Communicator."""
        print(message, file=sys.stderr, flush=True)
        self._library.COMM_WORLD.Abort(1)


def _is_known(array: np.ndarray) -> bool:
    """Whether MPI can compute with such elements: numbers of at least 32 bits, and whole ones."""
    return array.dtype.kind in "iu" or (array.dtype.kind in "fc" and array.dtype != np.float16)


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
