"""Shared libraries: the code does what it does elsewhere, tools find nothing amiss, what cannot be linked is named."""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path

import pytest

from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.shared import by_bucket, gnu_hash, gnu_table, link_shared, system_v_hash, system_v_table
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import architecture, host_target, target_named
from graphc.compiler.linking import builtins_for
from graphc.errors import ArtifactError, CompileError, GraphcError
from tests.codegen.link.objects import (
    PRINTED,
    RESULTS,
    TABLE,
    TARGETS,
    built,
    loaded,
    need,
    output,
    own_target,
    run_main,
)

EXPORTS = ("call", "direct", "clear")


def linked(name: str, **options) -> bytes:
    options = {"data": {"table": TABLE}, "soname": "libtest.so"} | options
    return link_shared([built(name)], EXPORTS, supply=builtins_for(target_named(name)), **options)


def code(text: str, name: str = "sse2") -> bytes:
    target = target_named(name)
    return build_object(f'target triple = "{target.triple}"\n{text}', target)


def test_the_loader_of_this_process_takes_it(tmp_path: Path):
    library = loaded(linked(own_target()), tmp_path)
    found = [library.call(0, 10), library.call(0, 10), library.call(1, 2), library.direct(3), library.call(2, 1000)]
    assert found == RESULTS
    with pytest.raises(AttributeError):
        library.add  # noqa: B018


@pytest.mark.parametrize("name", TARGETS)
def test_a_program_in_c_is_linked_with_it(name: str, tmp_path: Path):
    (tmp_path / "libtest.so").write_bytes(linked(name))
    assert run_main(target_named(name), tmp_path, "./libtest.so") == PRINTED


@pytest.mark.parametrize("name", TARGETS)
def test_tools_find_nothing_amiss(name: str, tmp_path: Path):
    need("readelf", "nm")
    path = tmp_path / "libtest.so"
    path.write_bytes(linked(name))
    text = output("readelf", "-aW", path)
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", text) == ["libc.so.6"]
    assert re.findall(r"\(SONAME\).*\[(.*)\]", text) == ["libtest.so"]
    assert "BIND_NOW" in text and "TEXTREL" not in text and "<corrupt>" not in text
    rows = [line.split() for line in output("nm", "-D", path).splitlines()]
    assert {row[-1]: row[-2] for row in rows} == {"memset": "U"} | dict.fromkeys(EXPORTS, "T")


def test_the_disassembler_and_the_debugger_know_its_functions(tmp_path: Path):
    need("objdump", "gdb")
    path = tmp_path / "libtest.so"
    path.write_bytes(linked(own_target()))
    assert "<look>:" in output("objdump", "-d", path)
    shown = output("gdb", "-nx", "-batch", "-ex", "info functions look", "-ex", "info line *call", path)
    assert "look" in shown


def test_this_machine_needs_libc_for_it_only(tmp_path: Path):
    need("ldd")
    path = tmp_path / "libtest.so"
    path.write_bytes(linked(own_target()))
    names = {Path(line.split()[0]).name for line in output("ldd", path).splitlines()}
    assert {name for name in names if "vdso" not in name and "ld-linux" not in name} == {"libc.so.6"}


@pytest.mark.parametrize("name", TARGETS)
def test_equal_code_gives_equal_bytes(name: str):
    assert linked(name) == linked(name)


def test_a_block_of_data_goes_into_the_library_as_it_is():
    big = bytes(range(256)) * 40_000
    library = link_shared([code("@w = external global i8\ndefine ptr @f() {\n  ret ptr @w\n}")], ["f"], data={"w": big})
    start = library.index(big)
    assert start % 4096 == 0 and len(library) < len(big) + 20_000


def test_objects_that_need_each_other(tmp_path: Path):
    here = own_target()
    first = code("declare i32 @g(i32)\ndefine i32 @f(i32 %x) {\n  %y = call i32 @g(i32 %x)\n  ret i32 %y\n}", here)
    second = "@n = hidden global i32 40\ndefine hidden i32 @g(i32 %x) {\n  %n = load i32, ptr @n\n"
    second = code(f"{second}  %y = add i32 %x, %n\n  ret i32 %y\n}}", here)
    assert loaded(link_shared([first, second], ["f"]), tmp_path).f(2) == 42


def test_functions_of_other_libraries_are_addresses_too(tmp_path: Path):
    text = "declare i64 @strlen(ptr)\n@f = constant ptr @strlen\ndefine i64 @call(ptr %s) {\n"
    text += "  %g = load volatile ptr, ptr @f\n  %n = call i64 %g(ptr %s)\n  ret i64 %n\n}"
    library = loaded(link_shared([code(text, own_target())], ["call", "f"]), tmp_path)
    assert library.call(b"12345") == 5


def test_a_name_that_is_nowhere_is_an_error_that_names_it():
    with pytest.raises(CompileError, match="the symbol fmod is not defined"):
        link_shared([built("sse2")], ["call"], data={"table": TABLE})
    with pytest.raises(CompileError, match="the symbol memset is not defined"):
        linked("sse2", allowed=())
    with pytest.raises(CompileError, match="the export other is not defined"):
        link_shared([code("define void @f() {\n  ret void\n}")], ["other"])


def test_an_address_in_what_is_only_read_depends_on_the_position():
    changed = bytearray(code("@f = constant ptr @f"))
    table, count = struct.unpack_from("<Q", changed, 40)[0], struct.unpack_from("<H", changed, 60)[0]
    for flags in (table + i * layout.SECTION.size + 8 for i in range(count)):
        changed[flags] &= ~SectionFlag.WRITE & 0xFF
    with pytest.raises(CompileError, match=r"R_X86_64_64 in \.data\.rel\.ro, which is read-only"):
        link_shared([bytes(changed)], ["f"])


def test_a_distance_that_is_too_long_is_an_error():
    text = "@far = hidden global [3000000000 x i8] zeroinitializer\n@near = hidden global i8 0\n"
    text += "define i64 @f() {\n  %a = ptrtoint ptr @far to i64\n  %b = ptrtoint ptr @near to i64\n"
    text += "  %c = sub i64 %b, %a\n  ret i64 %c\n}"
    with pytest.raises(CompileError, match=r"R_X86_64_PC32 of near is too far away"):
        link_shared([code(text)], ["f"])


def test_damaged_object_code_is_refused():
    with pytest.raises(ArtifactError):
        link_shared([built("sse2")[:1000]], ["call"])


@pytest.mark.parametrize("name", TARGETS)
def test_object_code_with_other_bytes_is_refused_or_linked(name: str):
    choice, outcomes = random.Random(9), set()
    for _ in range(300):
        changed = bytearray(built(name))
        changed[choice.randrange(len(changed))] = choice.randrange(256)
        try:
            link_shared([bytes(changed)], ["call"], data={"table": TABLE}, allowed=("memset", "fmod"))
            outcomes.add("linked")
        except GraphcError:
            outcomes.add("refused")
    assert outcomes == {"linked", "refused"}


def test_a_library_without_functions_of_others_has_no_table_for_them():
    library = link_shared([code("define i32 @f() {\n  ret i32 3\n}")], ["f"])
    assert b".got" not in library and b".plt" not in library and b".rela.dyn" not in library
    assert struct.unpack_from("<H", library, 16)[0] == 3


def test_the_host_is_one_of_the_machines_that_are_tested():
    if architecture(host_target()) in ("x86_64", "aarch64", "riscv64"):
        assert own_target() in TARGETS


NAMES = [f"name_{i}" for i in range(50)]


def test_hashes_of_known_names():
    assert (gnu_hash(""), gnu_hash("printf"), gnu_hash("exit")) == (0x1505, 0x156B2BB8, 0x7C967E3F)
    assert (system_v_hash(""), system_v_hash("printf"), system_v_hash("exit")) == (0, 0x077905A6, 0x0006CF04)


def found_by_gnu_table(table: bytes, names: list[str], first: int, name: str) -> int:
    """The number of a symbol, looked up as the loader does."""
    count, start, words, shift, bloom = struct.unpack_from("<IIIIQ", table)
    assert (start, words) == (first, 1)
    h = gnu_hash(name)
    if not (bloom >> h % 64 & 1 and bloom >> (h >> shift) % 64 & 1):
        return 0
    number = struct.unpack_from("<I", table, 24 + 4 * (h % count))[0]
    while number:
        link = struct.unpack_from("<I", table, 24 + 4 * (count + number - first))[0]
        if link | 1 == h | 1 and names[number - first] == name:
            return number
        number = 0 if link & 1 else number + 1
    return 0


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_the_gnu_table_finds_each_name_and_no_other(count: int):
    names = by_bucket(NAMES[:count])
    table = gnu_table(names, 4)
    assert [found_by_gnu_table(table, names, 4, name) for name in names] == [4 + i for i in range(count)]
    assert found_by_gnu_table(table, names, 4, "other") == 0


@pytest.mark.parametrize("count", [0, 1, 50])
def test_the_table_of_system_v_finds_each_name(count: int):
    names = ["", *NAMES[:count]]
    table = system_v_table(names)
    buckets, chain = struct.unpack_from("<II", table)
    assert chain == len(names) and len(table) == 4 * (2 + buckets + chain)
    for number, name in enumerate(names[1:], 1):
        at = struct.unpack_from("<I", table, 4 * (2 + system_v_hash(name) % buckets))[0]
        while at and names[at] != name:
            at = struct.unpack_from("<I", table, 4 * (2 + buckets + at))[0]
        assert at == number
