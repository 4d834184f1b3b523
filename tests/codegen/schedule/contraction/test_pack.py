"""Packed panels: how an axis is cut into them, and that every element is copied to its place once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.codegen.machine.target import Target, target_named
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.codegen.schedule.contraction.nest import apply_tile
from graphc.codegen.schedule.contraction.pack import Packed, make_packing, make_row_packing, pack_body
from graphc.codegen.schedule.contraction.register_block import Tile, choose_tile
from graphc.ir.kernel.index import as_index, substitute
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Buffer, Kernel, Store, walk
from tests.codegen.kernel_native import check_scheduled, kernel_of
from tests.codegen.products import plain, transposed_a, transposed_b


def test_every_element_is_packed_once():
    wide = target_named("avx512")
    contraction = find_contraction(transposed_b(512, 70, 24))
    assert contraction is not None
    tile = choose_tile(contraction, wide, frozenset({"b"}))
    assert tile is not None and tile.pack is not None
    packing = make_packing(contraction, tile, wide, "packed")
    source = np.arange(packing.size, dtype=np.float32)
    buffers = (
        Buffer("b0", tile.pack.dtype, packing.size, "in"),
        Buffer("b1", tile.pack.dtype, packing.size, "out"),
    )
    kernel = Kernel("pack", buffers, pack_body(packing, Names("t"), "b1", "b0"))
    packed = np.full(packing.size, -1, np.float32)
    run_kernel(kernel, {"b0": source, "b1": packed})
    assert sorted(packed) == sorted(source)
    lanes = packing.panels[0][2]
    assert list(packed[:lanes]) == [float(24 * lane) for lane in range(lanes)], (
        "the first step of the sum, lane by lane"
    )


def test_all_turns_together_ask_for_the_next_panel():
    """While the first panel is read five times, every line of the second is asked for, and nothing much beyond."""
    wide = target_named("avx512")
    contraction = find_contraction(transposed_b(512, 96, 24))
    assert contraction is not None
    tile = choose_tile(contraction, wide, frozenset({"b"}))
    assert tile is not None and tile.pack is not None
    packing = make_packing(contraction, tile, wide, "packed")
    run = packing.panels[0]
    panel = 24 * run[2]
    asked = set()
    for turn in range(5):
        ahead = packing.ahead(run, as_index(0), run[2], as_index(turn), 5)
        for k in range(24):
            asked.add(substitute(ahead, lambda _, k=k: as_index(k)).constant // 16)
    assert asked >= set(range(panel // 16, 2 * panel // 16))
    assert max(asked) <= 2 * panel // 16 + 24 * 5 // 16 + 1


@pytest.mark.parametrize(("columns", "room"), [(20, 32), (50, 32), (64, 0), (70, 0), (9, 0)])
def test_a_last_panel_of_several_vectors_has_room_for_all_of_them(columns: int, room: int):
    """20 columns are two vectors side by side, of which four lanes of the second are stored."""
    kernel = transposed_b(40, columns, 30)
    wide = target_named("avx512")
    contraction = find_contraction(kernel)
    assert contraction is not None
    tile = Tile(0.0, contraction.outer[1], contraction.outer[0], None, 8, 2, contraction.b)
    packing = make_packing(contraction, tile, wide, "packed")
    assert packing.room == room
    buffers = (*kernel.buffers, Buffer("packed", kernel.buffers[0].dtype, packing.size, "in"))
    tiled = apply_tile(contraction, tile, replace(kernel, buffers=buffers), wide, Names(), Packed(packing))
    guarded = [s for s, _ in walk(tiled.body) if isinstance(s, Store) and s.guard]
    assert bool(guarded) is bool(room)
    assert make_packing(contraction, tile, target_named("sse2"), "packed").room == 0, "masked stores are slow there"
    check_scheduled(kernel, wide)


SMALL = {"l1_bytes": 4096, "l2_bytes": 4096}
"""Caches that hold one line of each page, or a few lines of a column."""


def is_row_packed(kernel: Kernel, target: Target) -> bool:
    """Whether a product, which is computed as it should be, reads its rows from a packed copy."""
    buffers = check_scheduled(kernel, target).kernel("k").buffers
    return any(b.name == "packed_rows" for b in buffers)


@pytest.mark.sampled(50)
@pytest.mark.parametrize("rows", [64, 75])
def test_rows_of_which_each_step_reads_another_line_are_packed(rows: int, machine: Target):
    assert is_row_packed(transposed_a(rows, 400, 96), replace(machine, **SMALL))


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (plain(64, 400, 96), "steps are neighbours"),
        (transposed_a(8, 400, 96), "a line holds two steps"),
        (transposed_a(64, 32, 96), "one panel does not wait for long"),
        (transposed_a(64, 400, 8), "all steps stay in the cache"),
    ],
)
def test_rows_that_are_read_as_they_lie(kernel: Kernel, why: str):
    assert not is_row_packed(kernel, replace(target_named("avx512"), **SMALL)), why


def test_rows_of_each_of_several_products_are_packed():
    kernel = kernel_of("""
        kernel @k(%a: f32[12288] in, %b: f32[38400] in, %c: f32[51200] out) {
          for n in 2 parallel { for i in 64 parallel { for j in 400 parallel {
            acc s: f32 = add f32(0.0)
            for l in 96 reduce {
              x: f32 = load %a[6144*n + 64*l + i]
              y: f32 = load %b[400*l + j]
              p: f32 = mul(x, y)
              update s with p
            }
            r = read s
            store %c[25600*n + 400*i + j] = r
          } } }
        }""")
    assert is_row_packed(kernel, replace(target_named("avx512"), **SMALL))


def test_every_row_is_packed_once():
    wide = replace(target_named("avx512"), **SMALL)
    contraction = find_contraction(transposed_a(75, 400, 96))
    assert contraction is not None
    tile = choose_tile(contraction, wide)
    assert tile is not None
    packing = make_row_packing(contraction, tile, wide, "packed_rows")
    assert packing is not None and packing.size == 75 * 96
    buffers = tuple(Buffer(name, packing.load.dtype, 75 * 96, role) for name, role in (("b0", "in"), ("b1", "out")))
    source, packed = np.arange(75 * 96, dtype=np.float32), np.full(75 * 96, -1, np.float32)
    run_kernel(Kernel("pack", buffers, pack_body(packing, Names("t"), "b1", "b0")), {"b0": source, "b1": packed})
    assert sorted(packed) == sorted(source)
    size = packing.panels[0][2]
    assert list(packed[size : 2 * size]) == [float(75 + i) for i in range(size)], "the second step, row by row"
