"""Copies between strided arrays of a device against numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.codegen.cuda import nvrtc
from graphc.codegen.cuda.strided_copy import TYPES, strided_copies, symbol
from graphc.compiler.strided_copy import copy_strided
from graphc.runtime.devices import array as arrays
from graphc.runtime.devices.array import from_host
from graphc.runtime.devices.emulated import EmulatedDevice


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setattr(arrays, "_copiers", [copy_strided])
    return EmulatedDevice()


def view(array, generator):
    """A random view: axes moved, some reversed, some with steps."""
    array = array.transpose(tuple(int(i) for i in generator.permutation(array.ndim)))
    for axis in range(array.ndim):
        step = int(generator.choice([1, 1, 2, -1, -2]))
        array = array[(slice(None),) * axis + (slice(None, None, step),)]
    return array


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "bool"])
def test_random_views(device, dtype):
    for seed in range(12):
        shape = tuple(int(n) for n in np.random.default_rng(seed).integers(1, 7, size=1 + seed % 4))
        base = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        expected = view(base, np.random.default_rng(seed))
        source = view(from_host(device, base), np.random.default_rng(seed))
        made = source.contiguous()
        assert made.is_contiguous and np.array_equal(made.get(), expected)
        room = from_host(device, np.zeros(tuple(2 * n for n in expected.shape), dtype))
        target = room[tuple(slice(None, None, 2) for _ in expected.shape)]
        target.assign(source)
        assert np.array_equal(target.get(), expected)
        assert np.count_nonzero(room.get()) == np.count_nonzero(expected), "what lies between is as it was"


def test_nothing_goes_over_the_host(device, monkeypatch):
    array = from_host(device, np.arange(12, dtype=np.float32).reshape(3, 4))
    seen = []
    monkeypatch.setattr(device, "copy_out", lambda *_: seen.append("out"))
    monkeypatch.setattr(device, "copy_in", lambda *_: seen.append("in"))
    array.T.contiguous()
    array.broadcast_to((2, 3, 4)).copy()
    assert not seen


def test_an_array_is_copied_onto_itself(device):
    array = from_host(device, np.arange(6, dtype=np.float32))
    array[1:].assign(array[:-1])
    assert array.get().tolist() == [0, 0, 1, 2, 3, 4]
    array.assign(array[::-1])
    assert array.get().tolist() == [4, 3, 2, 1, 0, 0]


def test_arrays_that_no_kernel_moves_are_right_as_well(device):
    many = np.arange(2**7, dtype=np.float32).reshape((2,) * 7)
    order = (6, 4, 2, 0, 1, 3, 5)
    assert np.array_equal(from_host(device, many).transpose(order).contiguous().get(), many.transpose(order))
    numbers = np.arange(6).reshape(2, 3) * 1j
    assert np.array_equal(from_host(device, numbers).T.contiguous().get(), numbers.T)
    copy_strided(from_host(device, many[:0]), from_host(device, many[:0]))


def test_the_text_compiles_for_gpus():
    found = nvrtc.compile_cubin(strided_copies(), "sm_90")
    assert set(found.kernels) == {symbol(n) for n in TYPES}
    assert all(k.spilled == 0 for k in found.kernels.values())
