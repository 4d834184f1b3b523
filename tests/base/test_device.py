"""Names of devices."""

from __future__ import annotations

import pickle

import pytest

from graphc.base.device import CPU, device
from graphc.errors import ArgumentError


def test_names():
    assert str(device("cpu")) == "cpu" and repr(device("cpu")) == "device(type='cpu')"
    assert device("cpu:0").index == 0 and device("cpu", 1) == "cpu:1"
    assert device(CPU) == CPU and len({device("cpu"), CPU}) == 1
    assert CPU != "cuda" and CPU != 3


def test_a_gpu_without_a_number_is_the_first_one():
    assert device("cuda") == device("cuda:0") == "cuda" and device("cuda", 1).index == 1
    assert str(device("cuda-emu")) == "cuda-emu" and device("cuda-emu:0") == "cuda-emu"
    assert pickle.loads(pickle.dumps(device("cuda:1"))) == "cuda:1"


@pytest.mark.parametrize("name", ["tpu", "cuda:", "cuda:x", "cuda-emulator", ""])
def test_others_are_refused(name: str):
    with pytest.raises(ArgumentError, match="there is no device"):
        device(name)


def test_an_index_is_given_once():
    with pytest.raises(ArgumentError, match="already has an index"):
        device("cuda:1", 1)
