"""Static libraries: the linker of a C compiler finds what it needs through the index."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.codegen.link.archive import write_archive
from graphc.codegen.link.relocatable import merge_objects
from graphc.codegen.machine.target import target_named
from graphc.compiler.linking import builtins_for
from graphc.errors import ArtifactError
from graphc.files.object_archive import split_objects
from tests.codegen.link.objects import PRINTED, TABLE, TARGETS, built, need, output, run_main

LONG = "a_name_of_more_than_fifteen_letters.o"


def members(name: str) -> dict[str, bytes]:
    def part(*names: str) -> bytes:
        exports = {name: name for name in names}
        return merge_objects([built(name)], exports, data={"table": TABLE}, supply=builtins_for(target_named(name)))

    return {"first.o": part("call", "direct"), LONG: part("clear")}


@pytest.mark.parametrize("name", TARGETS)
def test_a_program_in_c_is_linked_with_it(name: str, tmp_path: Path):
    (tmp_path / "libtest.a").write_bytes(write_archive(members(name)))
    assert run_main(target_named(name), tmp_path, "-L.", "-ltest") == PRINTED


def test_tools_list_members_and_index(tmp_path: Path):
    need("ar", "nm")
    path = tmp_path / "libtest.a"
    path.write_bytes(write_archive(members("sse2")))
    assert output("ar", "t", path).split() == ["first.o", LONG]
    index = output("nm", "-s", path).split("\n\n")[0]
    assert f"clear in {LONG}" in index and "call in first.o" in index and "look" not in index


def test_members_are_kept_as_they_are():
    found = split_objects(write_archive({"x.o": built("sse2"), "y.o": built("rv64gc")}))
    assert found[-2:] == [built("sse2"), built("rv64gc")]


def test_equal_members_give_equal_bytes_and_damaged_ones_none():
    assert write_archive(members("neon")) == write_archive(members("neon"))
    with pytest.raises(ArtifactError):
        write_archive({"x.o": built("sse2")[:100]})
