"""Relocations of x86-64: a stub jumps to the address in a word."""

from __future__ import annotations

from graphc.codegen.machine.x86_64.linkage import LINKAGE


def test_a_stub_counts_from_the_end_of_its_instruction():
    code = LINKAGE.stub(0x1000, 0x3000)
    assert code[:2] == b"\xff\x25" and int.from_bytes(code[2:6], "little") == 0x3000 - 0x1006


def test_addresses_of_32_bits_have_no_place_in_a_library():
    names = {how.name for how in LINKAGE.relocations.values()}
    assert not names & {"R_X86_64_32", "R_X86_64_32S"}
