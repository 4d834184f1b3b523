"""Streams of nets that move and merge samples."""

from __future__ import annotations

import pytest

from tests.streams.compare import expect_all_steps
from tests.streams.nets import NETS, SAMPLES


@pytest.mark.parametrize("name", SAMPLES)
def test_nets_of_samples_give_the_numbers_of_whole_sequences(name: str):
    expect_all_steps(NETS[name]())
