"""Static libraries: the linker of a C compiler finds what it needs through the index."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.codegen.link.archive import write_archive, write_darwin_archive
from graphc.codegen.link.relocatable import merge_objects
from graphc.codegen.machine.target import target_named
from graphc.compiler.linking import builtins_for
from graphc.errors import ArtifactError
from graphc.files.object_archive import split_objects
from tests.codegen.link.macho.macos_objects import llvm_tool, macho
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


def test_archives_for_macos_have_aligned_members_and_an_index(tmp_path: Path):
    """``tests.codegen.link.macho.test_relocatable`` links one."""
    path, long = tmp_path / "libtest.a", f"long_{LONG}"
    path.write_bytes(write_darwin_archive({"first.o": macho(), long: macho("macos-neon", "@x = global i32 1\n")}))
    assert output(llvm_tool("llvm-ar"), "t", path).split() == ["first.o", long]
    index = output(llvm_tool("llvm-nm"), "--print-armap", path).partition("\n\n")[0]
    assert "_call in first.o" in index and f"_x in {long}" in index and "_look" not in index
    data, start, names = path.read_bytes(), 8, list[bytes]()
    while start < len(data):
        name_bytes, nbytes = int(data[start + 3 : start + 16]), int(data[start + 48 : start + 58])
        names.append(data[start + 60 : start + 60 + name_bytes].rstrip(b"\0"))
        begin = start + 60 + name_bytes
        assert data[start : start + 3] == b"#1/" and begin % 8 == nbytes % 8 - name_bytes % 8 == 0
        start += 60 + nbytes
    assert names == [b"__.SYMDEF", b"first.o", long.encode()]


def test_damaged_objects_for_macos_become_no_archive():
    with pytest.raises(ArtifactError):
        write_darwin_archive({"x.o": macho()[:100]})
