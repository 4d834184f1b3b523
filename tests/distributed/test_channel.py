"""The thread that reduces arrays while another one computes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from graphc.distributed import group, rank, threads
from graphc.distributed.channel import Channel, Pending
from graphc.distributed.spans import REDUCE, START, WAIT, timeline
from graphc.errors import DistributedError


def test_sums_come_in_the_order_in_which_they_were_begun():
    def summed(_: int) -> list[float]:
        channel = Channel(group())
        arrays = [(np.full(3, float(i + rank())), np.empty(3)) for i in range(20)]
        pending = [channel.reduce(f"number {i}", *pair) for i, pair in enumerate(arrays)]
        pending[-1].wait()
        return [float(result[0]) for _, result in arrays]

    assert threads.run(2, summed) == [[2.0 * i + 1 for i in range(20)]] * 2


def test_the_caller_goes_on_while_others_have_not_come():
    late = threading.Event()

    def summed(number: int) -> list[float]:
        channel, result = Channel(group()), np.empty(1)
        if number:
            assert late.wait(20)
        pending = channel.reduce("x", np.ones(1), result)
        late.set()
        pending.wait()
        return result.tolist()

    assert threads.run(2, summed) == [[2.0], [2.0]]


def test_channels_do_not_mix_their_messages():
    def summed(number: int) -> list[float]:
        channels = [Channel(group()) for _ in range(2)]
        results = [np.empty(1), np.empty(1)]
        order = [0, 1] if number else [1, 0]
        for pending in [channels[i].reduce("x", np.full(1, 10.0**i), results[i]) for i in order]:
            pending.wait()
        return [float(r[0]) for r in results]

    assert threads.run(2, summed) == [[2.0, 20.0]] * 2


def test_one_process_has_its_result_at_once():
    result = np.empty(2)
    Channel(group()).reduce("x", np.array([1.0, 2.0]), result)
    assert result.tolist() == [1.0, 2.0]


def test_the_caller_reduces_by_itself_what_comes_last():
    def summed(number: int) -> list[float]:
        channel, first, last = Channel(group()), np.empty(1), np.empty(1)
        channel.reduce("first", np.ones(1), first).wait()
        channel.reduce_now("last", np.full(1, 10.0**number), last)
        return [*first.tolist(), *last.tolist()]

    assert threads.run(2, summed) == [[2.0, 11.0]] * 2


def test_what_the_caller_does_by_itself_is_recorded_and_fails_as_all_else():
    channel = Channel(group())
    with timeline() as spans:
        channel.reduce_now("x", np.ones(1), np.empty(1))
    assert [(s.kind, s.name, s.nbytes) for s in spans] == [(kind, "x", 8) for kind in (START, REDUCE, WAIT)]
    with pytest.raises(DistributedError, match="the reduction of x failed: "):
        channel.reduce_now("x", np.ones(2), np.empty(3))


def test_what_goes_wrong_is_raised_by_who_waits():
    pending = Pending("bucket 3")
    pending.run(lambda: 1 / 0)
    pending.settle()
    with pytest.raises(DistributedError, match="the reduction of bucket 3 failed: division by zero"):
        pending.wait()
