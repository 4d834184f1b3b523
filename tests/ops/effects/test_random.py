"""Facts about random bits: published answers of Philox, what each part of the counter does, uniformity."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import float64
from graphc.ops.effects import random as r
from tests.ops.apply import run

# Known answers that the authors of the generator publish with their library Random123: counter, key, words.
ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def bits(seed, step, shape=(8,), stream=0):
    return run(lambda s: r.random_bits(s, shape=shape, stream=stream), np.array([seed, step])).view(np.uint32)


@pytest.mark.parametrize("counter,key,words", ANSWERS)
def test_known_answers(counter, key, words):
    assert tuple(int(w) for w in r.philox_arrays(counter, key)) == words


def test_first_bits_are_the_known_answer():
    assert bits(0, 0)[0] == ANSWERS[0][2][0]


def test_parts_of_the_counter():
    seed, step, stream = 0x299F31D0A4093822, 0x03707344, 0x13198A2E
    found = bits(seed, step, (3, 50), stream).reshape(-1)
    for i, bit in enumerate(found):
        counter = 16 * (i // 64) + i % 16
        words = r.philox_arrays((counter, 0, stream, step), (seed & 0xFFFFFFFF, seed >> 32))
        assert bit == words[i // 16 % 4]


def test_no_word_is_used_twice():
    found = bits(3, 1, (4096,))
    assert len(np.unique(found)) == 4096


def test_low_words_of_step_and_stream_count():
    np.testing.assert_array_equal(bits(3, 1 << 32, stream=5), bits(3, 0, stream=5 + (1 << 32)))
    np.testing.assert_array_equal(bits(-1, -1, stream=-1), bits(-1, 2**32 - 1, stream=2**32 - 1))


def test_every_part_changes_the_bits():
    first = bits(1, 1, stream=1)
    for other in (bits(2, 1, stream=1), bits(1 + (1 << 32), 1, stream=1), bits(1, 2, stream=1), bits(1, 1, stream=2)):
        assert not np.any(first == other)


def test_shape_only_arranges():
    np.testing.assert_array_equal(bits(1, 2, (12,)), bits(1, 2, (3, 4)).reshape(-1))
    np.testing.assert_array_equal(bits(1, 2, (5,)), bits(1, 2, (12,))[:5])


def test_uniform_numbers():
    state = np.array([42, 0])
    found = run(lambda s: r.uniform(s, (20000,), 7), state)
    expected = (bits(42, 0, (20000,), 7) >> 8).astype(np.float32) * np.float32(2.0**-24)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float32 and found.min() >= 0 and found.max() < 1
    counts = np.histogram(found, 20, (0, 1))[0]
    # Chi-square with 19 degrees of freedom: above 43.8 with probability 0.001 (the draw is fixed).
    assert np.sum((counts - 1000) ** 2 / 1000) < 43.8
    assert run(lambda s: r.uniform(s, (2,), 7, dtype=float64), state).dtype == np.float64
