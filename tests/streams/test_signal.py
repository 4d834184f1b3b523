"""Values in a stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphc as gc
from graphc.streams.signal import Signal, of_axis, resized
from graphc.tracing.trace import trace


@pytest.fixture
def signal() -> Signal:
    value = trace(lambda x: x, gc.zeros(2, 3, 4)).outputs[0]
    return Signal(value, 0, (2, 3, 4), axis=1, block=3, delay=-2)


def test_a_signal_knows_its_samples(signal: Signal):
    assert (signal.rank, signal.moves, signal.known) == (3, True, 2)
    assert replace(signal, delay=5).known == 0
    assert not replace(signal, axis=None).moves
    assert replace(signal, axis=None, latest=True).moves


def test_merged_sequences_have_a_dimension_of_their_own(signal: Signal):
    assert replace(signal, shape=(6, 4), axis=0, rows=2).alone == (2, 3, 4)
    assert replace(signal, axis=None).alone == (2, 3, 4)


def test_sizes_and_indices_along_an_axis():
    assert resized((2, 3, 4), 1, 7) == (2, 7, 4)
    assert np.arange(24).reshape(2, 3, 4)[of_axis(1, 3, slice(1, 2))].shape == (2, 1, 4)
