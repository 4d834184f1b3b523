"""Vector loops over shared memory read 8 or 16 bytes at a time, where these start at a multiple of that."""

from __future__ import annotations

import numpy as np

from graphc.base.dtypes import float32
from graphc.codegen.cuda.emit import emit_cuda
from graphc.codegen.cuda.wide import is_vector, wide_loads
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.gpu.contraction import tile_contraction
from graphc.ir.kernel.index import Axis, as_index
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Load, Loop, Store
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
