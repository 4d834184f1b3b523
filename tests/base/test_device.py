"""Names of devices."""

from __future__ import annotations

import pytest

from graphc.base.device import CPU, device
from graphc.errors import ArgumentError


def test_names():
    assert str(device("cpu")) == "cpu" and repr(device("cpu")) == "device(type='cpu')"
    assert device("cpu:0").index == 0 and device("cpu", 1) == "cpu:1"
    assert device(CPU) == CPU and len({device("cpu"), CPU}) == 1
    assert CPU != "cuda" and CPU != 3


def test_others_are_refused():
    with pytest.raises(ArgumentError, match="live on the cpu, not on 'cuda:1'"):
        device("cuda:1")
