"""Ranks as threads: they meet in collectives, and the error of one is that of all."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.distributed import barrier, group, rank, size, threads
from graphc.errors import DistributedError


def test_each_thread_is_a_rank_and_results_come_by_rank():
    assert threads.run(3, lambda number: (number, rank(), size())) == [(0, 0, 3), (1, 1, 3), (2, 2, 3)]
    assert (rank(), size()) == (0, 1)


def test_collectives_meet():
    def run(number: int) -> None:
        here, whole = group(), np.arange(6.0) + number
        np.testing.assert_array_equal(here.all_reduce(whole), np.arange(6.0) * 2 + 1)
        np.testing.assert_array_equal(here.all_gather(whole[:1]), [[0.0], [1.0]])
        np.testing.assert_array_equal(here.reduce_scatter(whole, "max"), (np.arange(6.0) + 1)[number * 3 :][:3])
        np.testing.assert_array_equal(here.broadcast(whole, 1), np.arange(6.0) + 1)
        np.testing.assert_array_equal(here.all_to_all(whole[:2]), [number, number + 1.0])
        assert here.gather_objects(str(number)) == ["0", "1"]

    threads.run(2, run)


def test_the_error_of_one_is_raised_and_the_others_end():
    ended = []

    def run(number: int) -> None:
        try:
            if number == 1:
                raise ValueError("rank 1 cannot")
            barrier()
        except DistributedError:
            ended.append(number)
            raise

    with pytest.raises(ValueError, match="rank 1 cannot"):
        threads.run(3, run)
    assert sorted(ended) == [0, 2]


def test_an_error_that_all_raise_is_not_hidden_by_those_who_wait():
    def run(number: int) -> None:
        group().gather_objects(number)
        raise DistributedError("the plans differ")

    for _ in range(20):
        with pytest.raises(DistributedError, match="the plans differ"):
            threads.run(3, run)


def test_a_thread_that_does_not_come_is_waited_for_so_long_only():
    with pytest.raises(DistributedError, match="does not come to this collective"):
        threads.run(2, lambda number: barrier() if number else None, timeout=0.05)


def test_a_duplicate_has_messages_of_its_own():
    def run(number: int) -> list[object]:
        other = group().communicator.duplicate()
        assert (other.rank, other.size) == (number, 2)
        return [other.gather_objects(number), group().gather_objects(-number)]

    assert threads.run(2, run) == [[[0, 1], [0, -1]]] * 2
