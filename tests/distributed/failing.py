"""Processes of which one does something wrong after ``init``: the program of tests/distributed/test_guard.py."""

from __future__ import annotations

import os
import sys
import threading
import time

import numpy as np

import graphc as gc
from graphc import distributed
from graphc.data import DataLoader, TensorDataset

FOREVER = 60.0
RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")


def raises() -> None:
    if distributed.rank() == 1:
        raise ValueError("a batch that is none")


def raises_in_a_thread() -> None:
    if distributed.rank() == 1:
        threading.Thread(target=raises).start()
        time.sleep(FOREVER)


def ends_early() -> None:
    if distributed.rank() == 1:
        sys.exit(3)


def ends_with_the_others() -> None:
    """After the group's end each process is by itself, and its errors are its own."""
    assert sys.excepthook is not sys.__excepthook__
    distributed.destroy_process_group()
    assert sys.excepthook is sys.__excepthook__ and distributed.size() == 1
    sys.exit(3)


def stays_away() -> None:
    """Rank 1 does something else, and rank 2 is in another collective."""
    if distributed.rank() == 1:
        time.sleep(FOREVER)
    if distributed.rank() == 2:
        distributed.barrier()


def calls_another() -> None:
    if distributed.rank() == 1:
        distributed.all_gather(gc.ones(3))


def has_children() -> None:
    """Check that forked processes may end freely and do not belong to the group."""
    loader = DataLoader(TensorDataset(gc.arange(6)), batch_size=2, num_workers=2, multiprocessing_context="fork")
    assert sum(int(x.sum()) for (x,) in loader) == 15
    child = os.fork()
    if not child:
        distributed.barrier()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1


def main() -> None:
    if sys.argv[1] == "raises_before" and {os.environ.get(name) for name in RANKS} & {"1"}:
        raise ValueError("no such file")
    timeout = float(sys.argv[2])
    distributed.init(timeout=timeout)
    globals()[sys.argv[1]]()
    distributed.all_reduce(gc.ones(4))
    total = distributed.group().all_reduce(np.ones(2))
    said = distributed.group().gather_objects(f"rank {distributed.rank()} has {total.tolist()}")
    if distributed.rank() == 0:  # lines of several processes may meet
        print(*said, sep="\n")


if __name__ == "__main__":
    main()
