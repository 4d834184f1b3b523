"""Register blocks: enough independent sums, no more registers than there are, packing where it is paid back."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.codegen.schedule.contraction.register_block import choose_tile, rank_tiles
from tests.codegen.kernel_native import kernel_of
from tests.codegen.products import depthwise, plain, transposed_a, transposed_b
from tests.codegen.sized_products import sized_product


def test_a_large_product_fills_the_registers_with_independent_sums():
    contraction = find_contraction(plain(256, 256, 256))
    assert contraction is not None
    for name in ("avx512", "avx2", "sse2", "neon"):
        machine = target_named(name)
        tile = choose_tile(contraction, machine)
        assert tile is not None
        registers = tile.rows * tile.vectors + tile.vectors + 1
        assert tile.rows * tile.vectors >= 8, "too few independent sums to hide the latency of a multiply-add"
        assert registers <= machine.registers


def test_a_transposed_operand_is_packed_when_many_rows_use_it():
    wide = target_named("avx512")
    many, few = (find_contraction(transposed_b(m, 256, 256)) for m in (512, 1))
    assert many is not None and few is not None
    packed, direct = choose_tile(many, wide), choose_tile(few, wide)
    assert packed is not None and packed.pack is not None
    assert direct is not None and direct.pack is None and direct.vector in few.reduced


def test_constants_are_packed_for_nothing():
    wide = target_named("avx512")
    contraction = find_contraction(transposed_b(16, 256, 256))
    assert contraction is not None
    free = choose_tile(contraction, wide, frozenset({"b"}))
    paid = choose_tile(contraction, wide)
    assert free is not None and paid is not None and free.cycles <= paid.cycles
    assert free.pack is not None and free.pack.buffer == "b"


def test_one_row_reads_packed_weights_in_order():
    """Weights that are read once from beyond the first cache arrive faster as one stream than as one per column."""
    contraction = find_contraction(transposed_b(1, 512, 128))
    assert contraction is not None
    tile = choose_tile(contraction, target_named("avx512"), frozenset({"b"}))
    assert tile is not None and tile.pack is not None and tile.vector in contraction.outer


def test_all_blocks_are_ranked():
    wide = target_named("avx512")
    contraction = find_contraction(transposed_b(64, 256, 256))
    assert contraction is not None
    ranked = rank_tiles(contraction, wide)
    assert ranked[0] == choose_tile(contraction, wide)
    assert [t.cycles for t in ranked] == sorted(t.cycles for t in ranked)
    assert len({t.label for t in ranked}) == len(ranked) > 10


@pytest.mark.parametrize("target", ["avx512", "avx2"])
def test_an_operand_that_is_read_once_from_memory_gets_many_sums(target: str):
    """While a sum waits for memory only what other sums read can be under way, so one vector at a time is slowest."""
    contraction, machine = find_contraction(transposed_b(1, 4096, 4096)), target_named(target)
    assert contraction is not None
    tile = choose_tile(contraction, machine, frozenset({"b"}))
    assert tile is not None and tile.pack is not None and tile.vectors >= 6
    assert 0 < tile.memory < tile.cycles
    small = find_contraction(transposed_b(1, 128, 128))
    assert small is not None
    near = choose_tile(small, machine, frozenset({"b"}))
    assert near is not None and near.memory == 0


@pytest.mark.parametrize("target", ["avx512", "avx2"])
@pytest.mark.parametrize("rows", [2, 3, 4])
def test_few_rows_share_one_read_of_an_operand_in_memory(target: str, rows: int):
    """Every block waits for memory once; a block with all rows reads nothing again, from the L2 cache either."""
    contraction, machine = find_contraction(transposed_b(rows, 1024, 1024)), target_named(target)
    assert contraction is not None
    ranked = rank_tiles(contraction, machine, frozenset({"b"}))
    assert ranked[0].rows == rows and ranked[0].pack is not None
    assert all(tile.memory > 0 for tile in ranked)


def test_on_avx2_a_deep_panel_is_read_by_the_block_with_the_most_sums():
    """A panel of two vectors of 32 bytes takes one line a row: it comes from the L2 cache as fast as it is used."""
    contraction = find_contraction(transposed_b(64, 4096, 4096))
    assert contraction is not None
    tile = choose_tile(contraction, target_named("avx2"), frozenset({"b"}))
    assert tile is not None and (tile.rows, tile.vectors) == (6, 2)


def test_rows_that_lie_on_few_pages_do_not_miss_them():
    """A gradient of weights reads 64 rows, each on its own page, for all its blocks: their addresses stay at hand."""
    machine = target_named("avx2")
    few, many = (find_contraction(transposed_a(4096, 1024, k)) for k in (64, 1024))
    assert few is not None and many is not None
    times = [choose_tile(c, machine) for c in (few, many)]
    per_step = [t.cycles / c.work for t, c in zip(times, (few, many), strict=True) if t is not None]
    assert len(per_step) == 2 and per_step[0] < per_step[1]


def test_few_rows_of_a_number_that_varies_do_not_cost_as_much_as_the_most():
    contraction = find_contraction(sized_product("batch", 384, 128))
    assert contraction is not None
    tiles = rank_tiles(contraction, target_named("avx512"), frozenset({"b"}))
    (last,) = {tile.last for tile in tiles if (tile.rows, tile.vectors) == (8, 3) and tile.last}
    assert last[0] == 1 and 2 <= last[1] < last[2] == 7


@pytest.mark.parametrize("rows,sizes", [("batch", 3), ("rows", 2)])
def test_programs_that_expect_fewer_rows_than_a_block_have_three_sizes_for_them(rows: str, sizes: int):
    contraction = find_contraction(sized_product(rows, 384, 128))
    assert contraction is not None
    tiles = rank_tiles(contraction, target_named("avx512"), frozenset({"b"}))
    (last,) = {tile.last for tile in tiles if (tile.rows, tile.vectors) == (12, 2) and tile.last}
    assert (len(last), last[0], last[-1]) == (sizes, 1, 11)


@pytest.mark.parametrize("target", ["avx512", "avx2"])
def test_rows_of_windows_are_neighbours(target: str):
    """The next step of the sum reads what other rows have read. Pixels below each other are far apart, so that their
    elements would have left L1 before another row reads them."""
    contraction = find_contraction(depthwise(256, 14, 5))
    assert contraction is not None
    tile = choose_tile(contraction, target_named(target), frozenset({"b"}))
    assert tile is not None and tile.row is not None and tile.row.name == "j"


def test_rows_of_windows_that_share_few_cache_sets_are_few():
    wide = target_named("avx512")
    near, far = (find_contraction(depthwise(channels, 27, 5)) for channels in (16, 512))
    assert near is not None and far is not None
    many, few = (choose_tile(c, wide, frozenset({"b"})) for c in (near, far))
    assert many is not None and few is not None
    assert few.rows <= 16 < many.rows


def test_on_avx2_a_panel_with_strided_lines_is_packed():
    """L1 does not hold a panel of 256 lines that are 1 KiB apart, and no prefetcher reads them."""
    many, few = (find_contraction(plain(m, 256, 256)) for m in (1024, 6))
    assert many is not None and few is not None
    packed, direct = choose_tile(many, target_named("avx2")), choose_tile(few, target_named("avx2"))
    assert packed is not None and packed.pack is not None and packed.pack.buffer == "b"
    assert direct is not None and direct.pack is None


def test_on_avx2_rows_and_their_windows_share_no_set_of_the_cache():
    """Images of 9x9 pixels with 512 channels are 40.5 pages apart: four images and their windows have 18 lines in one
    set of L1, which has 8 ways. Windows of neighbouring pixels overlap."""
    kernel = kernel_of("""
        kernel @k(%a: f32[165888] in, %b: f32[2359296] in, %c: f32[100352] out) {
          for n in 4 parallel {
            for y in 7 parallel {
              for x in 7 parallel {
                for o in 512 parallel {
                  acc s: f32 = add f32(0.0)
                  for i in 512 reduce {
                    for v in 3 reduce {
                      for h in 3 reduce {
                        p: f32 = load %a[41472*n + 4608*y + 512*x + 4608*v + 512*h + i]
                        w: f32 = load %b[4608*o + 9*i + 3*v + h]
                        q: f32 = mul(p, w)
                        update s with q
                      }
                    }
                  }
                  r = read s
                  store %c[25088*n + 3584*y + 512*x + o] = r
                }
              }
            }
          }
        }""")
    contraction = find_contraction(kernel)
    assert contraction is not None
    tile = choose_tile(contraction, target_named("avx2"))
    assert tile is not None and tile.row is not None and tile.row.name in ("x", "y")


def test_on_avx2_short_sums_of_results_beyond_the_l2_cache_have_few_rows():
    """Each row of a block starts a segment of the results: with 16 products for each, two rows of four vectors are
    faster than six of two. Sums of 256 products hide it."""
    short, long = (find_contraction(plain(12544, 96, k)) for k in (16, 256))
    assert short is not None and long is not None
    few, many = (choose_tile(c, target_named("avx2"), frozenset({"b"})) for c in (short, long))
    assert few is not None and (few.rows, few.vectors) == (2, 4)
    assert many is not None and (many.rows, many.vectors) == (6, 2)
