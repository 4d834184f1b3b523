"""State of RMSprop."""

from __future__ import annotations

import pytest

from graphc.optim import RMSprop
from tests.optim.compare import parameters

OPTIONS = [{}, {"momentum": 0.9}, {"centered": True}, {"momentum": 0.5, "centered": True, "weight_decay": 0.1}]


@pytest.mark.parametrize("options", OPTIONS)
def test_state(options: dict):
    p = parameters()[0]
    names = {"square_avg"}
    names |= {"momentum_buffer"} if "momentum" in options else set()
    names |= {"grad_avg"} if "centered" in options else set()
    assert set(RMSprop([p], **options).init_state(p)) == names
