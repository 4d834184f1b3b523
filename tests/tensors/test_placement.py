"""Devices of tensors."""

from __future__ import annotations

import copy
import pickle

import numpy as np

import graphc as gc
from graphc.base.device import CPU, device
from graphc.tensors.placement import (
    beside,
    following_rules,
    is_elsewhere,
    is_following_rules,
    is_on_device,
    on_host,
    place_of,
)


def test_arrays_of_the_host_and_of_devices():
    x = gc.ones(2, 3)
    y = x.to("cuda-emu")
    assert not is_on_device(x._data) and is_on_device(y._data)
    assert place_of(x._data) == CPU and place_of(y._data) == device("cuda-emu")
    assert on_host(x._data) is x._data and isinstance(on_host(y._data), np.ndarray)
    assert not is_elsewhere(x._data, device("cpu:1")) and is_elsewhere(x._data, device("cuda-emu"))
    assert not is_elsewhere(y._data, device("cuda-emu")) and is_elsewhere(y._data, CPU)


def test_a_tensor_that_is_there_already_is_itself():
    x = gc.ones(2).to("cuda-emu")
    assert x.to("cuda-emu") is x and x.cpu() is not x
    assert x.to("cuda-emu", copy=True) is not x
    assert x.to(gc.ones(1)).is_cpu and not x.is_cuda and x.get_device() == -1


def test_copies_and_pickles():
    x = gc.arange(3.0, device="cuda-emu")
    assert copy.deepcopy(x).device == "cuda-emu"
    back = pickle.loads(pickle.dumps(x))
    assert back.device == "cuda-emu" and back.tolist() == [0.0, 1.0, 2.0]


def test_memory_is_shared_with_other_libraries():
    x = gc.arange(4.0, device="cuda-emu")
    shared = np.from_dlpack(x)
    shared[1] = 9.0
    assert x.tolist() == [0.0, 9.0, 2.0, 3.0]
    assert not hasattr(x, "__cuda_array_interface__"), "its addresses are those of the host"
    assert x._data.__cuda_array_interface__["shape"] == (4,)


def test_beside_another_tensor():
    host, there = gc.ones(2), gc.ones(2).to("cuda-emu")
    assert beside(host, host) is host and beside(host, there).device == "cuda-emu" and beside(there, host).is_cpu


def test_following_rules_ends():
    assert not is_following_rules()
    with following_rules(), following_rules():
        assert is_following_rules()
    assert not is_following_rules()
