"""Register blocks: enough independent sums, no more registers than there are, packing where it is paid back."""

from __future__ import annotations

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.codegen.schedule.contraction.register_block import choose_tile, rank_tiles
from tests.codegen.products import plain, transposed_b


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
