"""Sums in tiles: the instructions of blocks, on processors that have them and in the text for those."""

from __future__ import annotations

import pytest

from graphc.base.errors import CompileError
from graphc.codegen.llvm.emit import emit_kernel
from graphc.codegen.llvm.tiles import shapes_of
from graphc.codegen.machine.target import host_target
from graphc.codegen.machine.tiles import Shape
from graphc.ir.kernel.statements import Kernel
from tests.codegen.kernel_native import check_scheduled, program_of
from tests.codegen.tiled import FREE, NO_TILES, TILES, pairs, rows_and_columns
from tests.native import priced, scheduled

with_tiles = pytest.mark.skipif(not host_target().tile_rows, reason="this processor, or its system, has no tiles")


def in_tiles(kernel: Kernel) -> Kernel:
    """The kernel as it is scheduled for a processor with tiles."""
    return scheduled(program_of(kernel), TILES).kernel("k")


def test_blocks_of_one_shape_are_configured_once():
    kernel = in_tiles(rows_and_columns(64, 64, 64))
    text = emit_kernel(kernel, TILES, {}).body
    assert shapes_of(kernel) == {Shape(32, 16)}
    for name, times in {"ldtilecfg": 1, "tilerelease": 1, "tilezero": 4, "tileloadd64": 4, "tilestored64": 4}.items():
        assert text.count(f"@llvm.x86.{name}(") == times
    assert text.count("@llvm.x86.tdpbf16ps(") == 4 and "dpbf16ps.512" not in text
    assert text.rindex("tilerelease") > text.rindex("tilestored64")


def test_blocks_of_several_shapes_are_configured_one_by_one():
    kernel = in_tiles(rows_and_columns(65, 64, 64))
    text = emit_kernel(kernel, TILES, {}).body
    assert len(shapes_of(kernel)) == 2
    assert text.count("@llvm.x86.ldtilecfg(") == 2 and text.count("@llvm.x86.tilerelease(") == 1


def test_processors_without_tiles_use_vectors():
    kernel = scheduled(program_of(rows_and_columns(64, 64, 64)), NO_TILES).kernel("k")
    text = emit_kernel(kernel, NO_TILES, {}).body
    assert not shapes_of(kernel) and "tile" not in text and "dpbf16ps.512" in text


def test_a_kernel_in_tiles_is_refused_where_there_are_none():
    with pytest.raises(CompileError, match="has no tiles"):
        emit_kernel(in_tiles(rows_and_columns(64, 64, 64)), NO_TILES, {})


@with_tiles
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(17, 20, 8), (4, 16, 8), (33, 16, 8), (5, 40, 14)],
)
def test_products_on_this_machine(m: int, n: int, k: int):
    kernels = [
        rows_and_columns(m, n, k),
        pairs(m, n, k, f"{k}*i + l", f"{k}*j + l"),
        pairs(m, n, k, f"{m}*l + i", f"{n}*l + j"),
        rows_and_columns(m, n, k, "v: f32 = abs(r)", "v"),
    ]
    for kernel in kernels:
        program = check_scheduled(kernel, priced(host_target(), contraction=FREE))
        assert any(shapes_of(found) for found in program.kernels)
