"""Streams of convolutions, pools and reads in patterns."""

from __future__ import annotations

import pytest

from tests.streams.compare import expect_all_steps
from tests.streams.nets import NETS, WINDOWS


@pytest.mark.parametrize("name", WINDOWS)
def test_nets_of_windows_give_the_numbers_of_whole_sequences(name: str):
    expect_all_steps(NETS[name]())
