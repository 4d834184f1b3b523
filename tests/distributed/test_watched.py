"""Notes of collectives, and the comparison before each of them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from graphc.base.errors import DistributedError
from graphc.distributed import threads
from graphc.distributed.channel import Channel
from graphc.distributed.communicator import Alone
from graphc.distributed.group import Group, group
from graphc.distributed.watched import WatchedCommunicator, format_ranks


class Slow(Alone):
    """Its barriers end when they are let."""

    def __init__(self) -> None:
        self.begun, self.let = threading.Event(), threading.Event()

    def barrier(self) -> None:
        self.begun.set()
        assert self.let.wait(10)


def test_a_collective_is_noted_before_it_begins_and_when_it_has_ended():
    slow = Slow()
    watched = WatchedCommunicator(slow, [])
    assert watched.last is None and not watched.is_in
    thread = threading.Thread(target=watched.barrier)
    thread.start()
    assert slow.begun.wait(10)
    assert watched.is_in and watched.last is not None
    assert (watched.last.number, str(watched.last), watched.last.thread) == (1, "barrier", thread.ident)
    slow.let.set()
    thread.join()
    assert not watched.is_in and watched.last.number == 1


def test_an_error_ends_a_collective():
    watched = WatchedCommunicator(Alone(), [])
    with pytest.raises(ValueError, match="reshape"):
        watched.all_gather(np.ones(3), np.ones(4))
    assert not watched.is_in


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda g: g.all_reduce(np.ones((2, 3), np.float32)), "all_reduce of f32[2, 3] (sum)"),
        (lambda g: g.reduce_scatter(np.ones(2), "max"), "reduce_scatter of f64[2] (max)"),
        (lambda g: g.all_gather(np.ones(1, np.int8)), "all_gather of i8[1]"),
        (lambda g: g.broadcast(np.ones(1)), "broadcast of f64[1] (from rank 0)"),
        (lambda g: g.all_to_all(np.ones(1)), "all_to_all of f64[1]"),
        (lambda g: g.barrier(), "barrier"),
        (lambda g: g.gather_objects("x"), "gather_objects"),
    ],
)
def test_a_collective_says_what_it_is(call, text: str):
    watched = WatchedCommunicator(Alone(), [])
    call(Group(watched))
    assert str(watched.last) == text


def test_duplicates_are_of_the_family_and_have_numbers_of_their_own():
    def ranks(rank: int) -> list[str]:
        family: list[WatchedCommunicator] = []
        whole = Group(WatchedCommunicator(group().communicator, family))
        whole.barrier()
        Channel(whole).reduce("bucket 0", np.ones(2), np.ones(2)).wait()
        return [f"{watched.last.number} {watched.last}" for watched in family if watched.last]

    assert threads.run(2, ranks) == [["2 duplicate", "1 all_reduce of bucket 0, f64[2] (sum)"]] * 2


def watching(check: bool) -> Group:
    """The group of this thread, watched."""
    return Group(WatchedCommunicator(group().communicator, [], check))


def test_the_same_collectives_pass_the_comparison():
    def ranks(rank: int) -> list[float]:
        return watching(check=True).all_reduce(np.full(2, float(rank))).tolist()

    assert threads.run(3, ranks) == [[3.0, 3.0]] * 3


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (lambda g: g.all_reduce(np.ones(3)), "all_reduce of f64[3] (sum) on rank 1"),
        (lambda g: g.all_reduce(np.ones(2, np.float32)), "all_reduce of f32[2] (sum) on rank 1"),
        (lambda g: g.all_reduce(np.ones(2), "max"), "all_reduce of f64[2] (max) on rank 1"),
        (lambda g: g.barrier(), "barrier on rank 1"),
    ],
)
def test_a_difference_is_an_error_on_all_of_them(other, text: str):
    def ranks(rank: int) -> str:
        whole = watching(check=True)
        with pytest.raises(DistributedError) as caught:
            other(whole) if rank == 1 else whole.all_reduce(np.ones(2))
        return str(caught.value)

    said = threads.run(3, ranks)
    assert all("collective 1 is not the same on all ranks: all_reduce of f64[2] (sum) on ranks 0, 2" in s for s in said)
    assert all(text in s and "tests/distributed/test_watched.py:" in s for s in said)


def test_a_process_that_was_forked_has_no_collectives():
    watched = WatchedCommunicator(Alone(), [])
    watched.become_child()
    with pytest.raises(DistributedError, match="all_reduce: this process was forked from rank 0 of 1"):
        Group(watched).all_reduce(np.ones(2))


def test_ranks_are_listed():
    assert format_ranks([1]) == "rank 1"
    assert format_ranks([0, 2]) == "ranks 0, 2"
