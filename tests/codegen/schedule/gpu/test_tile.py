"""Tiles are whole warps, share their loads evenly, and fit what they are for."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.cuda.costs import TILES as COSTS
from graphc.codegen.schedule.gpu.sum_of_products import find_sum_of_products
from graphc.codegen.schedule.gpu.tile import TILES, Tile, choose_tile
from graphc.ir.kernel.map import Names
from tests.codegen.products import plain


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_every_tile_is_whole(tile: Tile) -> None:
    assert tile.threads % 32 == 0 and tile.threads <= 1024
    for size, own in ((tile.rows, tile.own_rows), (tile.columns, tile.own_columns)):
        assert size % own == 0
        assert size * tile.depth % tile.threads == 0


def chosen(m: int, n: int, k: int, dtype: str = "f32") -> Tile | None:
    found = find_sum_of_products(plain(m, n, k, dtype), Names("p"))
    assert found is not None
    chosen = choose_tile(found, m, n, COSTS)
    assert chosen is None or chosen[1] == 1
    return chosen and chosen[0]


def test_large_results_have_large_tiles() -> None:
    large, small = chosen(4096, 4096, 64), chosen(64, 64, 64)
    assert large is not None and small is not None
    assert large.owned == 64 and small.rows * small.columns < 64 * 64


def test_wide_numbers_take_registers() -> None:
    tile = chosen(4096, 4096, 64, "f64")
    assert tile is not None and tile.owned <= COSTS.wide_owned


def test_few_rows_have_none() -> None:
    assert chosen(3, 4096, 64) is None
    assert chosen(8, 8, 64) is None


def test_long_sums_with_few_results_are_cut() -> None:
    found = find_sum_of_products(plain(64, 64, 1 << 16), Names("p"))
    assert found is not None
    chosen = choose_tile(found, 64, 64, COSTS, COSTS.most_parts)
    assert chosen is not None and chosen[1] > 8
    short = find_sum_of_products(plain(64, 64, 300), Names("p"))
    assert short is not None
    assert choose_tile(short, 64, 64, COSTS, COSTS.most_parts) == choose_tile(short, 64, 64, COSTS)
