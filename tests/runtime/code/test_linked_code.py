"""Linking into this process without LLVM: results, words with addresses, permissions, damage, lifetime."""

from __future__ import annotations

import ctypes
import gc
import random
import subprocess
import sys

import pytest

from graphc.errors import CompileError
from graphc.runtime.code.code_memory import can_link
from graphc.runtime.code.linked_code import LinkedCode, link
from tests.architecture.scan import ROOT
from tests.codegen.link.objects import RESULTS, TABLE, built
from tests.runtime.code.test_code_memory import permissions
from tests.runtime.native import build

pytestmark = pytest.mark.skipif(not can_link(), reason="LLVM links here")

NAMES = ("call", "direct", "clear")
_table = ctypes.create_string_buffer(TABLE)
IMPORTS = {"table": ctypes.addressof(_table)}


def call(code: LinkedCode, name: str, *arguments: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int] * len(arguments))(code.addresses[name])(*arguments)


def test_code_reaches_its_functions_its_data_and_the_process():
    code = link([built("sse2")], NAMES, IMPORTS)
    found = [call(code, "call", 0, 10), call(code, "call", 0, 10), call(code, "call", 1, 2)]
    assert [*found, call(code, "direct", 3), call(code, "call", 2, 1000)] == RESULTS
    memory = ctypes.create_string_buffer(4)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_long)(code.addresses["clear"])(ctypes.addressof(memory), 3)
    assert memory.raw == b"\7\7\7\0"


def test_objects_call_each_other_and_variables_belong_to_one_linking():
    caller = build("declare i32 @next(i32)\ndefine i32 @f(i32 %x) {\n %y = call i32 @next(i32 %x)\n ret i32 %y\n}")
    counter = build(
        "@n = internal global i32 0\ndefine i32 @next(i32 %x) {\n %a = load i32, ptr @n\n %b = add i32 %a, %x\n"
        " store i32 %b, ptr @n\n ret i32 %b\n}"
    )
    first, second = (link([caller, counter], ("f",), {}) for _ in range(2))
    assert [call(first, "f", 2), call(first, "f", 3), call(second, "f", 4)] == [2, 5, 4]


def test_large_alignments_are_met():
    text = "@x = internal global [16 x i8] zeroinitializer, align 65536\ndefine ptr @f() {\n ret ptr @x\n}"
    codes = [link([build(text)], ("f",), {}) for _ in range(3)]
    for code in codes:
        assert ctypes.CFUNCTYPE(ctypes.c_size_t)(code.addresses["f"])() % 65536 == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads the maps of a process from /proc")
def test_code_cannot_be_written_to_and_goes_with_its_owner():
    code = link([built("sse2")], NAMES, IMPORTS)
    address = code.addresses["call"]
    assert permissions(address) == "r-xp"
    del code
    gc.collect()
    assert permissions(address) != "r-xp"


@pytest.mark.parametrize(
    ("objects", "names", "what"),
    [
        ([b""], ("f",), "not a 64-bit little-endian ELF file"),
        ([b"\x7fELF"], ("f",), "not a 64-bit little-endian ELF file"),
        ([], ("f",), "no object code"),
        (["sse2"], ("missing",), "defines no function missing"),
        (["sse2"], ("",), "defines no function"),
        (["neon"], ("call",), "for the machine 183"),
        (["sse2", "sse2"], ("call",), "defined twice"),
    ],
)
def test_what_cannot_be_linked_is_a_compile_error(objects: list, names: tuple[str, ...], what: str):
    with pytest.raises(CompileError, match=what):
        link([built(x) if isinstance(x, str) else x for x in objects], names, IMPORTS)


def test_a_name_that_the_process_lacks_is_a_compile_error():
    with pytest.raises(CompileError, match="the symbol table is not defined"):
        link([built("sse2")], NAMES, {})


def test_more_memory_than_there_is_is_a_compile_error():
    text = "@x = global [1000000000000 x i8] zeroinitializer\ndefine ptr @f() {\n ret ptr @x\n}"
    script = (
        "import resource\nfrom tests.runtime.native import build\nfrom graphc.errors import CompileError\n"
        "from graphc.runtime.code.linked_code import link\n"
        f"code = build({text!r})\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36))\n"
        "try:\n    link([code], ('f',), {})\nexcept CompileError as error:\n    print(error.what)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "memory" in done.stdout or "too far away" in done.stdout, done.stderr


def test_damaged_object_code_is_refused_or_linked_and_never_ends_the_process():
    choice, outcomes = random.Random(3), set()
    for _ in range(300):
        changed = bytearray(built("sse2"))
        for _ in range(choice.choice((1, 2, 16))):
            changed[choice.randrange(len(changed))] = choice.randrange(256)
        try:
            link([bytes(changed[: choice.choice((len(changed), choice.randrange(len(changed))))])], NAMES, IMPORTS)
            outcomes.add("linked")
        except CompileError:
            outcomes.add("refused")
    assert outcomes == {"linked", "refused"}
