"""Facts of aarch64: 32 registers, each for one row that a loop reads beside others or for its sum."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.aarch64.facts import FAMILY, describe


def test_every_processor_has_neon():
    found, named = describe("arm64-apple-darwin", "apple-m1", ""), FAMILY.named["neon"]
    assert (found.vector_bytes, found.registers) == (named.vector_bytes, named.registers) == (16, 32)
    assert found.fma and not found.masked
    assert found.costs is named.costs


@pytest.mark.parametrize(
    ("features", "name"),
    [("+neon", "neon"), ("+crc,+dotprod,+neon", "neon-dotprod"), ("+dotprod,+i8mm,+neon,+sve", "neon-i8mm")],
)
def test_products_of_bytes_have_the_prices_of_their_instructions(features: str, name: str):
    assert describe("aarch64-unknown-linux-gnu", "", features).costs is FAMILY.named[name].costs


def test_addresses_take_registers_of_which_there_are_fewer():
    assert FAMILY.named["neon"].streams < FAMILY.named["neon"].registers


def test_threads_wait_by_the_system_call_of_linux():
    waits = FAMILY.named["neon"].waits
    assert waits is not None and waits.futex == 98
    assert not FAMILY.named["neon"].cycle_fence


def test_code_for_macos_uses_what_all_of_apples_processors_have():
    macos, linux = FAMILY.named["macos-neon"], FAMILY.named["neon-dotprod"]
    assert macos.costs is linux.costs and macos.features == linux.features
    assert macos.waits is None and not macos.has_pool
    assert macos.detection("detect") == "" != linux.detection("detect")
