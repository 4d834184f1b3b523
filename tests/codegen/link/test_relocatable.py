"""Object code joined: chosen names are seen, equal ones hide from each other, linkers of others take it."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.codegen.link import layout
from graphc.codegen.link.reader import read_object
from graphc.codegen.link.relocatable import merge_objects
from graphc.codegen.link.shared import link_shared
from graphc.codegen.machine.target import target_named
from graphc.compiler.linking import builtins_for
from graphc.errors import CompileError
from tests.codegen.link.objects import PRINTED, TABLE, TARGETS, built, loaded, need, output, own_target, run_main

EXPORTS = {name: name for name in ("call", "direct", "clear")}


def merged(name: str, exports: dict[str, str] = EXPORTS) -> bytes:
    return merge_objects([built(name)], exports, data={"table": TABLE}, supply=builtins_for(target_named(name)))


def test_only_chosen_names_are_seen_under_the_names_given():
    found = read_object(merged("sse2", {"call": "outside"}))
    assert {s.name for s in found.symbols if s.binding != layout.LOCAL and s.section is not None} == {"outside"}
    assert "memset" in {s.name for s in found.symbols if s.section is None}
    with pytest.raises(CompileError, match="the export other is not defined"):
        merged("sse2", {"other": "other"})


def test_parts_of_equal_names_are_linked_together(tmp_path: Path):
    name = own_target()
    parts = [merged(name, {"call": f"call_{i}"}) for i in range(3)]
    library = loaded(link_shared(parts, [f"call_{i}" for i in range(3)]), tmp_path)
    found = [library.call_0(0, 10), library.call_0(0, 10), library.call_1(0, 1), library.call_2(1, 3)]
    assert found == [15, 25, 6, 103]


@pytest.mark.parametrize("name", TARGETS)
def test_the_linker_of_a_c_compiler_takes_it(name: str, tmp_path: Path):
    (tmp_path / "all.o").write_bytes(merged(name))
    assert run_main(target_named(name), tmp_path, "all.o") == PRINTED


@pytest.mark.parametrize("name", TARGETS)
def test_joined_again_it_is_the_same(name: str):
    once = merged(name)
    again = merge_objects([once], EXPORTS)
    assert merge_objects([again], EXPORTS) == again and once == merged(name)


def test_tools_find_nothing_amiss(tmp_path: Path):
    need("readelf")
    (tmp_path / "all.o").write_bytes(merged("neon"))
    assert "GNU-stack" in output("readelf", "-aW", tmp_path / "all.o")
