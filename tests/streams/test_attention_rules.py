"""Streams of attention."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from tests.streams.compare import expect_all_steps
from tests.streams.nets import ATTENTION, NETS


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_gives_the_numbers_of_whole_sequences(name: str):
    expect_all_steps(NETS[name]())


def test_rows_see_the_samples_of_the_memory_only():
    model = NETS["attention"]().model
    x = gc.randn(2, 40, 4)
    short, long = (gc.stream(model, x, dim=1, memory=memory)(x).detach().numpy() for memory in (8, 40))
    expected = model(x).detach().numpy()
    assert np.abs(long - expected).max() < 1e-6
    assert np.abs(short - expected)[:, :8].max() < 1e-6
    assert np.abs(short - expected)[:, 8:].max() > 1e-4
    window = model(x[:, 2:10]).detach().numpy()
    assert np.abs(short[:, 9] - window[:, -1]).max() < 1e-6


def test_a_window_keeps_only_its_samples():
    stream = NETS["heads_of_a_window"]().stream(step=3)
    histories = [array.shape[2] for name, array in stream.state.items() if "history" in name]
    assert histories == [8, 8]
