"""Streams of loops along time."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import StreamError
from tests.streams.cases import Lambda
from tests.streams.compare import expect_all_steps
from tests.streams.nets import LOOPS, NETS


@pytest.mark.parametrize("name", LOOPS)
def test_loops_give_the_numbers_of_whole_sequences(name: str):
    expect_all_steps(NETS[name]())


def _state_of_cut() -> Lambda:
    gc.manual_seed(0)
    return Lambda(lambda self, x: self.gru(x[:, :-4])[1], gru=nn.GRU(4, 3, batch_first=True)).eval()


@pytest.mark.parametrize("step", [1, 2, 4])
def test_the_state_after_the_last_sample_knows_none_behind_the_end(step: int):
    model = _state_of_cut()
    stream = gc.stream(model, gc.zeros(1, 16, 4), dim=1, step=step)
    x = np.random.default_rng(0).standard_normal((1, 16, 4)).astype(np.float32)
    for count in range(step, 17, step):
        found = stream(x[:, count - step : count]).detach().numpy()
        if count > 4:
            expected = model(gc.from_numpy(np.ascontiguousarray(x[:, :count]))).detach().numpy()
            np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_state_within_a_tick_is_refused():
    with pytest.raises(StreamError, match="the state after the last sample is read, which comes later"):
        gc.stream(_state_of_cut(), gc.zeros(1, 18, 4), dim=1, step=3)
