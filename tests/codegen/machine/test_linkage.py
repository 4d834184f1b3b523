"""Rules of linking: every family of CPUs has them, each value that is written is known, limits hold."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.linkage import (
    VALUES,
    Linkage,
    Relocation,
    coff_linkage_of,
    either,
    is_macos,
    linkage_of,
    macho_linkage_of,
    signed,
)
from graphc.codegen.machine.target import families, target_named

OTHERS = [coff_linkage_of(0x8664), macho_linkage_of(0x1000007), macho_linkage_of(0x100000C)]
"""Rules of other formats than ELF."""
LINKAGES = [family.linkage for family in families() if family.linkage is not None]


@pytest.mark.parametrize("linkage", [*LINKAGES, *OTHERS], ids=lambda linkage: str(linkage.machine))
def test_each_relocation_writes_something_known_into_some_bytes(linkage: Linkage):
    for how in linkage.relocations.values():
        assert how.value in VALUES, how
        assert (how.nbytes == 0) == (how.value == "nothing"), how


@pytest.mark.parametrize("linkage", LINKAGES, ids=lambda linkage: str(linkage.machine))
def test_a_stub_is_as_long_as_is_said_and_depends_on_the_distance(linkage: Linkage):
    assert len(linkage.stub(0x1000, 0x2010)) == linkage.stub_bytes
    assert linkage.stub(0x1000, 0x2010) == linkage.stub(0x5000, 0x6010) != linkage.stub(0x1000, 0x2018)


def test_families_of_cpus_are_told_apart_by_their_machines():
    named = {id(f): f.named.values() for f in families()}
    cpus = [
        targets for targets in named.values() if not any(t.gpu is not None or t.is_wasm or t.is_bare for t in targets)
    ]
    assert len({linkage.machine for linkage in LINKAGES}) == len(LINKAGES) == len(cpus)
    assert [linkage_of(linkage.machine) for linkage in LINKAGES] == LINKAGES
    assert linkage_of(3) is None


def test_a_place_holds_what_lies_within_its_limits():
    near = Relocation("R_NEAR", "relative", 1, limits=signed(8))
    assert near.fits(-128) and near.fits(127) and not near.fits(128) and not near.fits(-129)
    assert Relocation("R_ANY", "absolute", 4).fits(1 << 60)
    assert either(8) == (-128, 256)


def test_systems_are_told_apart_by_their_triples():
    assert is_macos(target_named("macos-neon").triple) and not is_macos(target_named("neon").triple)
    assert macho_linkage_of(62) is None and coff_linkage_of(0x100000C) is None


def test_words_hold_addends_and_instructions_do_not():
    rules = macho_linkage_of(0x100000C)
    assert rules is not None
    assert {rule.name for rule in rules.relocations.values() if rule.is_word} == {
        *("ARM64_RELOC_UNSIGNED", "ARM64_RELOC_SUBTRACTOR", "ARM64_RELOC_POINTER_TO_GOT", "ARM64_RELOC_ADDEND")
    }
