"""Times of tokens: what an iterator yields is recorded, and times add up."""

from __future__ import annotations

from graphc.cli.token_times import Timed


def test_tokens_and_times_are_recorded():
    timed = Timed(iter([3, 1, 2]))
    assert list(timed) == timed.tokens == [3, 1, 2]
    seconds = timed.seconds()
    assert timed.times == sorted(timed.times)
    assert seconds == {"prompt_seconds": timed.times[0], "tokens_seconds": timed.times[2] - timed.times[0]}


def test_the_time_of_a_token_leaves_out_the_first():
    timed = Timed([5, 6, 7])
    first, each = timed.measure()
    assert (first, each) == (timed.times[0], (timed.times[2] - timed.times[0]) / 2)
