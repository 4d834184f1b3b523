"""Vector loops over shared memory read 8 or 16 bytes at a time, where these start at a multiple of that."""

from __future__ import annotations

import numpy as np

from graphc.base.dtypes import float32
from graphc.codegen.cuda.emit import emit_cuda
from graphc.codegen.cuda.wide import is_vector, wide_loads, wide_stores
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.gpu.contraction import tile_contraction
from graphc.ir.kernel.index import Axis, as_index
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Bound, Load, Loop, Store
from graphc.runtime.devices.emulated import EmulatedDevice
from tests.codegen.cuda.running import run_on
from tests.codegen.kernel_native import random_memory, single
from tests.codegen.products import plain

V, ROW = Axis("v", 4), Axis("i", 10)


def test_neighbours_from_a_multiple_of_their_number_on() -> None:
    assert is_vector(as_index(ROW) * 8 + V + 4, V)
    assert is_vector(as_index(ROW) // 3 * 4 + V, V)
    assert not is_vector(as_index(ROW) * 6 + V, V)
    assert not is_vector(as_index(ROW) * 4 + V + 1, V)
    assert not is_vector(as_index(V) * 2, V)
    assert not is_vector(as_index(V) + (as_index(V) + ROW) // 2 * 4, V)


def test_which_loads() -> None:
    good = Load("x", "s", as_index(ROW) * 4 + V, float32)
    keep = Store("t", as_index(V), "x")
    assert wide_loads(Loop(V, "vector", (good, keep)), {"s"}) == [good]
    assert wide_loads(Loop(V, "vector", (good, keep)), {"t"}) == []
    assert wide_loads(Loop(V, "vector", (good, Store("s", as_index(V), "x"))), {"s"}) == []
    three = Axis("v", 3)
    assert wide_loads(Loop(three, "vector", (Load("x", "s", as_index(three), float32),)), {"s"}) == []


def test_which_stores() -> None:
    good = Store("t", as_index(ROW) * 4 + V, "x", guard=(Bound(as_index(ROW), 0, 9),))
    load = Load("y", "t", as_index(V), float32)
    assert wide_stores(Loop(V, "vector", (good,)), {"t"}) == [good]
    assert wide_stores(Loop(V, "vector", (load, good)), {"t"}) == [good]
    assert wide_stores(Loop(V, "vector", (good, load)), {"t"}) == []
    assert wide_stores(Loop(V, "vector", (good,)), {"s"}) == []
    assert wide_stores(Loop(V, "vector", (good, Store("t", as_index(V), "x"))), {"t"}) == []
    assert (
        wide_stores(Loop(V, "vector", (Store("t", as_index(V), "x", guard=(Bound(as_index(V), 0, 3),)),)), {"t"}) == []
    )


def test_results_that_are_not_aligned_are_written_one_by_one() -> None:
    kernel = plain(32, 64, 9)
    tiled = tile_contraction(kernel, host_target(), Names("t"))
    assert tiled is not None
    source = emit_cuda(single(tiled))
    assert "gc_store" in source.text
    memory = random_memory(kernel)
    expected = memory["a"].reshape(32, 9) @ memory["b"].reshape(9, 64)
    device = EmulatedDevice()
    launch = source.launches["k"]
    function = device.load(source.text).function(launch.symbol)
    for shift in (0, 4):
        places = [device.allocate(array.nbytes + shift) for array in memory.values()]
        words = [place.address + shift for place in places]
        for word, array in zip(words, memory.values(), strict=True):
            device.copy_in(word, array)
        device.launch(function, int(launch.grid), launch.threads, launch.dynamic, words)
        found = np.empty((32, 64), np.float32)
        device.copy_out(words[-1], found)
        np.testing.assert_array_equal(found, expected)


def test_tiles_of_factors_are_read_as_vectors() -> None:
    kernel = plain(520, 520, 9)
    tiled = tile_contraction(kernel, host_target(), Names("t"))
    assert tiled is not None
    program = single(tiled)
    source = emit_cuda(program)
    assert source.text.count("gc_load4(") >= 2
    memory = random_memory(kernel)
    given = [memory[s.name].reshape(s.shape) for s in program.storages]
    run_on(EmulatedDevice(), program, source, given)
    expected = random_memory(kernel)
    a, b = expected["a"].reshape(520, 9), expected["b"].reshape(9, 520)
    np.testing.assert_array_equal(memory["c"].reshape(520, 520), a @ b)
