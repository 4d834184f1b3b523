"""DLPack capsules of arrays on devices."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base import dlpack as capsules
from graphc.errors import ArgumentError, DTypeError
from graphc.runtime.devices import dlpack
from graphc.runtime.devices.array import DeviceArray, from_host
from graphc.runtime.devices.emulated import EmulatedDevice

DEVICE = EmulatedDevice()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64", "uint8", "bool"])
def test_elements_are_shared_both_ways(dtype: str):
    host = np.arange(12).reshape(3, 4).astype(dtype)
    array = from_host(DEVICE, host)
    theirs = np.from_dlpack(array)
    back = dlpack.imported(theirs, DEVICE)
    assert isinstance(back, DeviceArray) and back.address == array.address and back.dtype == host.dtype
    np.testing.assert_array_equal(theirs, host)


def test_strides_and_offsets_are_kept():
    array = from_host(DEVICE, np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    part = array.transpose(2, 0, 1)[1::2]
    theirs = np.from_dlpack(part)
    assert theirs.strides == part.strides
    np.testing.assert_array_equal(theirs, np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1)[1::2])


def test_memory_lives_as_long_as_it_is_shared():
    device = EmulatedDevice()
    theirs = np.from_dlpack(from_host(device, np.arange(5)))
    assert device.memory_stats().allocated >= 40 and theirs.tolist() == [0, 1, 2, 3, 4]
    del theirs
    assert not capsules._exported


def test_kinds_of_devices():
    assert dlpack.kind_of(DEVICE) == (capsules.CPU, 0)


def test_what_cannot_be_shared_is_refused():
    with pytest.raises((ArgumentError, DTypeError, TypeError, AttributeError)):
        dlpack.imported([1, 2, 3], DEVICE)
