"""Duels: how many rounds a new program must win, and that a lost duel ends early."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphc.compiler.duel import GAIN, ROUNDS, WINS, fight


def times(*seconds: float) -> tuple[Callable[[], float], list[int]]:
    """Return a program that takes these seconds in turn, and the list of its rounds."""
    rounds: list[int] = []

    def time() -> float:
        rounds.append(len(rounds))
        return seconds[(len(rounds) - 1) % len(seconds)]

    return time, rounds


def test_seven_wins_of_nine_rounds_win():
    old, _ = times(1.0)
    new, rounds = times(1.0, 1.0, *[0.9] * WINS)
    duel = fight(old, new)
    assert duel.is_won and duel.wins == WINS and duel.rounds == len(rounds) == ROUNDS
    assert duel.gain == pytest.approx(1 / 0.9)


@pytest.mark.parametrize("lost", [(0, 1, 2), (0, 4, 8), (6, 7, 8)])
def test_three_lost_rounds_lose(lost: tuple[int, ...]):
    old, _ = times(1.0)
    new, _ = times(*[1.0 if i in lost else 0.9 for i in range(ROUNDS)])
    duel = fight(old, new)
    assert not duel.is_won and duel.rounds == lost[-1] + 1 and duel.rounds - duel.wins == len(lost)


def test_a_small_gain_wins_no_round():
    old, _ = times(1.0)
    new, rounds = times(1 / (GAIN - 0.01))
    duel = fight(old, new)
    assert (duel.wins, duel.rounds, len(rounds)) == (0, 3, 3)
    assert fight(old, new, gain=1.0).is_won


def test_a_drift_of_the_machine_favours_neither():
    clock = iter(range(100, 1000))
    duel = fight(lambda: float(next(clock)), lambda: float(next(clock)), gain=1.0)
    assert not duel.is_won and 0 < duel.wins < duel.rounds
