"""Streams of loops along time."""

from __future__ import annotations

import pytest

from tests.streams.cases import NETS
from tests.streams.compare import expect_all_steps
from tests.streams.nets import LOOPS


@pytest.mark.parametrize("name", LOOPS)
def test_loops_give_the_numbers_of_whole_sequences(name: str):
    expect_all_steps(NETS[name]())
