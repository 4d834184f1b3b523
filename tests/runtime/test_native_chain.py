"""Chains of native programs: values and numbers pass from one to the next, and a declined call gives nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.runtime.native_chain import ChainStep, NativeChain


def _count(x: np.ndarray) -> list[np.ndarray]:
    return [np.array((x > 0).sum()), x * 2]


def _first(doubled: np.ndarray, count: int) -> np.ndarray:
    return doubled[:count]


def _chain(high: int = 9, last: Any = _first) -> NativeChain:
    # The values are x, then count and 2 * x, then the number that was read, then the result.
    return NativeChain([ChainStep("count", _count, (0,), False, ((1, high),)), ChainStep("first", last, (2, 3), True)])


def test_programs_take_values_and_numbers_of_those_before() -> None:
    done: dict[Any, Any] = {}
    assert _chain().run([np.array([3, -1, 4])], done).tolist() == [6, -2]
    assert list(done) == ["count", "first"]


def test_numbers_out_of_their_range_end_a_call() -> None:
    assert _chain(high=1).run([np.array([3, -1, 4])], {}) is None
    assert _chain().run([np.array([-3])], {}) is None


def test_a_program_that_declines_ends_a_call() -> None:
    assert _chain(last=lambda *_: None).run([np.array([3])], {}) is None


def test_programs_that_ran_in_a_call_do_not_run_again() -> None:
    done = {"count": _count(np.array([5, 6]))}
    assert _chain().run([np.array([1])], done).tolist() == [10, 12]
