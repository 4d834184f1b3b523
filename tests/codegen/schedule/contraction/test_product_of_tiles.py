"""Products that are summed in tiles, and equal results of their blocks."""

from __future__ import annotations

import pytest

from graphc.codegen.llvm.tiles import shapes_of
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.codegen.schedule.contraction.product_of_tiles import tile_steps
from graphc.codegen.schedule.contraction.register_block import choose_tile
from graphc.ir.kernel.statements import Kernel
from tests.codegen.kernel_native import check_scheduled
from tests.codegen.products import plain
from tests.codegen.tiled import EAGER, NO_TILES, TILES, pairs, rows_and_columns


def steps(kernel: Kernel, target: Target = EAGER) -> int:
    """Steps of a product of tiles of the block that is chosen; 0 where that has none."""
    found = find_contraction(kernel)
    assert found is not None
    tile = choose_tile(found, target)
    assert tile is not None
    return tile.steps


@pytest.mark.parametrize(
    ("k", "expected"), [(16, 16), (64, 16), (392, 14), (24, 12), (8, 8), (9, 9), (7, 0), (22, 11), (34, 0), (67, 0)]
)
def test_products_take_as_many_steps_as_divide_the_sum(k: int, expected: int):
    assert steps(rows_and_columns(64, 64, k)) == expected


def test_what_has_no_tiles():
    assert not steps(rows_and_columns(64, 64, 64), NO_TILES)
    assert not steps(plain(64, 64, 64))
    assert not steps(rows_and_columns(1, 64, 64), TILES)
    started = rows_and_columns(64, 64, 64)
    text = find_contraction(started)
    assert text is not None and tile_steps(text, text.a, text.b, text.outer[1], TILES) == 16
    assert tile_steps(text, text.b, text.a, text.outer[1], TILES) == 0


@pytest.mark.sampled(57)
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 32), (65, 33, 16), (33, 50, 24), (20, 7, 32)])
@pytest.mark.parametrize("after", ["", "v: f32 = abs(r)"], ids=["stored", "followed"])
def test_blocks_of_tiles_mean_the_same(m: int, n: int, k: int, after: str):
    stored = "v" if after else "r"
    forms = [(f"{k}*i + l", f"{n}*l + j"), (f"{k}*i + l", f"{k}*j + l"), (f"{m}*l + i", f"{n}*l + j")]
    for a, b in forms:
        program = check_scheduled(pairs(m, n, k, a, b, after, stored), EAGER, natively=False)
        assert any(shapes_of(kernel) for kernel in program.kernels)
