"""Interface of devices: both kinds implement all of it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from graphc.runtime.devices import interface
from graphc.runtime.devices.cuda import CudaDevice
from graphc.runtime.devices.emulated import EmulatedDevice
from graphc.runtime.devices.interface import ALIGNMENT, Device, Memory

METHODS = [n for n, m in inspect.getmembers(Device, inspect.isfunction) if not n.startswith("_")]


@pytest.mark.parametrize("kind", [EmulatedDevice, CudaDevice])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_there_with_the_same_arguments(kind: Any, name: str):
    asked, given = inspect.signature(getattr(Device, name)), inspect.signature(getattr(kind, name))
    assert list(given.parameters)[: len(asked.parameters)] == list(asked.parameters)


def test_memory_is_aligned_and_counted():
    device = EmulatedDevice()
    before = device.memory_stats()
    memory = device.allocate(100)
    assert isinstance(memory, Memory) and memory.nbytes == 100 and memory.address % ALIGNMENT == 0
    assert device.memory_stats().allocated - before.allocated == 100
    del memory
    assert device.memory_stats().allocations == before.allocations
    assert interface.MemoryStats(1, 2, 3, 4, 5).total == 5
