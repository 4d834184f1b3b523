"""Each target of a CPU belongs to one system, and kinds of files to those that have them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphc.base.errors import ArgumentError, CompileError
from graphc.c_library.systems import KINDS, SYSTEMS, check_kinds, system_of
from graphc.codegen.machine.target import named_targets, target_named


def test_each_target_of_a_cpu_is_of_one_system():
    for name, target in named_targets().items():
        if target.gpu is None:
            assert [system.fits(target) for system in SYSTEMS].count(True) == 1, name
    assert all(system.fits(target_named(system.example)) for system in SYSTEMS)


def test_an_unknown_system_is_refused():
    with pytest.raises(CompileError, match=r"supports Linux, .* only, not x86_64-unknown-freebsd"):
        system_of(replace(target_named("avx2"), triple="x86_64-unknown-freebsd"))


def test_a_kind_of_file_names_the_systems_that_have_it():
    for system in SYSTEMS:
        check_kinds(system.kinds, system)
        for kind in {*KINDS} - {*system.kinds}:
            with pytest.raises(ArgumentError, match=f"no file of kind '{kind}' for {system.title}") as caught:
                check_kinds((kind,), system)
            owners = [other.example for other in SYSTEMS if kind in other.kinds]
            assert owners and all(repr(name) in str(caught.value.remedy) for name in owners)


@pytest.mark.parametrize(("kinds", "message"), [(("exe",), "unknown kind of file 'exe'"), ((), "emit is empty")])
def test_kinds_of_no_system_are_refused(kinds: tuple[str, ...], message: str):
    with pytest.raises(ArgumentError, match=message):
        check_kinds(kinds, SYSTEMS[0])
