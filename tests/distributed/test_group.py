"""Discovery of processes, and their group."""

from __future__ import annotations

import math
from datetime import timedelta
from importlib import import_module

import numpy as np
import pytest

from graphc import distributed
from graphc.base.errors import ArgumentError
from graphc.distributed import mpi, threads
from graphc.distributed.communicator import Alone
from graphc.distributed.group import Group

module = import_module("graphc.distributed.group")  # the function of that name hides it


@pytest.fixture(autouse=True)
def nothing_is_initialised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_default", None)
    for name in mpi._LAUNCHERS:
        monkeypatch.delenv(name, raising=False)


def test_a_process_without_a_launcher_is_one_by_itself():
    assert not distributed.is_initialized()
    made = distributed.init()
    assert (distributed.rank(), distributed.size(), made.communicator.name) == (0, 1, "local")
    assert distributed.init() is made and distributed.is_initialized()
    distributed.barrier()
    distributed.destroy_process_group()
    assert not distributed.is_initialized()


@pytest.mark.parametrize("timeout", [0, -1.0, math.nan])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(timeout: float):
    message = rf"init: timeout must be a positive number of seconds, got {timeout!r}\n  try    pass timeout=600"
    with pytest.raises(ArgumentError, match=message):
        distributed.init(timeout=timeout)


def test_a_backend_that_does_not_exist_is_refused():
    with pytest.raises(ArgumentError, match="there is no backend 'nfs'\n  try    choose one of auto, mpi, nccl, local"):
        distributed.init("nfs")


def test_the_timeout_of_pytorchs_name_is_a_timedelta_or_seconds():
    assert module._seconds(timedelta(minutes=2)) == 120.0
    assert module._seconds(5) == 5.0
    assert module._seconds(None) is None
    distributed.init_process_group("gloo", timeout=timedelta(seconds=30))


@pytest.mark.parametrize("options", [{"rank": 1}, {"world_size": 2}, {"init_method": "tcp://a:1"}, {"store": 3}])
def test_what_would_make_another_group_than_the_launcher_did_is_refused(options: dict):
    with pytest.raises(ArgumentError, match="init_process_group"):
        distributed.init_process_group("gloo", **options)


def test_workers_of_a_launched_process_are_none_of_its_group(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PMI_RANK", "1")
    assert mpi.is_launched()
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "somebody")
    assert not mpi.is_launched()
    assert distributed.init().size == 1


def test_ranks_and_sizes_that_do_not_fit_are_refused():
    alone = Group(Alone())
    with pytest.raises(ArgumentError, match="there is no rank 1 among 1 processes"):
        alone.broadcast(np.ones(2), 1)
    with pytest.raises(ArgumentError, match="there is no reduction 'median'"):
        alone.all_reduce(np.ones(2), "median")


def test_a_thread_has_the_group_that_it_uses():
    assert threads.run(3, lambda rank: (distributed.rank(), distributed.size())) == [(0, 3), (1, 3), (2, 3)]
    assert distributed.size() == 1
