"""Batches through pipes: small ones as they are, large arrays through memory of both, exceptions that can be built."""

from __future__ import annotations

import os
import threading
from multiprocessing import Pipe

import numpy as np
import pytest

import graphc as gc
from graphc.data import batch_transport
from graphc.errors import ArgumentError, WorkerError


def sent(value):
    """Return the batch received through a pipe of this process."""
    mine, other = Pipe()
    sender = threading.Thread(target=batch_transport.send, args=(other, "head", value))
    sender.start()
    head, found = batch_transport.receive(mine)
    sender.join()
    assert head == "head"
    return found


@pytest.mark.parametrize("count", [0, 5, 1 << 20])
def test_arrays_and_tensors_arrive_and_may_be_written(count: int):
    value = {"x": np.arange(count, dtype=np.float32), "t": (gc.arange(count), "text"), "s": np.ones((count, 1))[::2]}
    found = sent(value)
    np.testing.assert_array_equal(found["x"], value["x"])
    np.testing.assert_array_equal(found["t"][0].numpy(), value["t"][0].numpy())
    np.testing.assert_array_equal(found["s"], value["s"])
    found["x"] += 1
    found["t"][0].add_(1)
    assert found["t"][1] == "text"


def test_no_files_stay_open():
    before = len(os.listdir("/proc/self/fd"))
    kept = [sent(np.ones(1 << 18)) for _ in range(3)]
    assert all(array.all() for array in kept)
    del kept
    assert len(os.listdir("/proc/self/fd")) <= before


def test_what_cannot_be_pickled_is_an_error_before_anything_is_sent():
    mine, other = Pipe()
    with pytest.raises(Exception, match="pickle"):
        batch_transport.send(other, "head", lambda: 0)
    assert not mine.poll()


def test_exceptions():
    class Strange(Exception):
        def __init__(self, one, two):
            super().__init__("worse")

    known, text = batch_transport.portable(ArgumentError("what", remedy="this"))
    assert isinstance(known, ArgumentError) and "ArgumentError: what" in text
    strange, text = batch_transport.portable(Strange(1, 2))
    assert isinstance(strange, WorkerError) and "Strange: worse" in str(strange) and "Strange" in text
