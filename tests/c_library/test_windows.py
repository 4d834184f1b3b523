"""Windows libraries: programs of mingw that call them under Wine print the numbers of the Linux library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graphc.base.errors import ArgumentError, CompileError
from graphc.c_library.build import Library, build_library
from tests.c_library.conftest import STRICT, Built, build_demo, run_tool, tool_or_skip
from tests.c_library.nets import NETS
from tests.codegen.link.windows_objects import need_wine
from tests.native import target_or_skip
from tools.codegen.windows_ops import COMPILER, run_under_wine

KINDS = ("dll", "lib", "h", "c", "py")
SIZES = {"sizes": ["--batch=3", "--time=20"]}
CHECKS = """\
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>
#include "policy.h"
int main(void) {
    char *memory = (char *)calloc(1, 65536);
    policy_t *net = (policy_t *)(memory + 64 - (uintptr_t)memory % 64);
    HMODULE library = LoadLibraryA("policy.dll");
    FARPROC init = library ? GetProcAddress(library, "policy_init") : NULL;
    printf("%d %d %d ", init != NULL, policy_init(net, 8), policy_init(NULL, 8));
    printf("%s %s %d", policy_run_inputs[0].name, policy_run_inputs[0].shape, policy_run_outputs[1].name == NULL);
    return 0;
}
"""
LOADS_WEIGHTS = ["--weights=policy.weights"]


def windows_library(name: str, folder: Path, target: str, emit: Any = KINDS, **options: Any) -> Library:
    net = NETS[name]
    return build_library(
        net.model(), *net.calls[0], path=folder / f"{name}.dll", emit=emit, dims=net.dims, target=target, **options
    )


def run_demo(
    library: Library, *arguments: str, source: str = "c", linked: str = "lib", flags: Sequence[str] = ()
) -> str:
    """Return what the demo prints under Wine, compiled by mingw without a warning."""
    demo = library.files["c"]
    folder, program = demo.parent, demo.with_suffix(".exe")
    language = ("-std=c++17", "-x", "c++") if source == "c++" else ("-std=c99", "-x", "c")
    run_tool(COMPILER, *STRICT, *flags, *language, demo, "-x", "none", library.files[linked], "-o", program)
    done = run_under_wine(program, *arguments, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["policy", "digits", "lstm", "decoder", "sizes", "bag"])
@pytest.mark.parametrize("level", ["sse2", "avx2", "avx512"])
def test_in_strict_order_the_bits_are_those_of_linux(level: str, name: str, built: Built, tmp_path: Path):
    need_wine()
    target_or_skip(level)
    library = windows_library(name, tmp_path, f"windows-{level}", strict_order=True)
    own = build_demo(built(name, target=level, strict_order=True), compiler=tool_or_skip("cc"))
    arguments = ["--all", "--seed=3", *SIZES.get(name, [])]
    assert run_demo(library, *arguments) == run_tool(own, *arguments) != ""


def test_the_demo_is_valid_c_plus_plus_and_links_with_the_dll_itself(tmp_path: Path):
    need_wine()
    tool_or_skip(COMPILER.replace("gcc", "g++"))
    target_or_skip("avx2")
    library = windows_library("policy", tmp_path, "windows-avx2")
    text = run_demo(library, "--bench=10", source="c++", linked="dll")
    assert text.startswith("output:") and "10 calls" in text


@pytest.mark.parametrize("kind", ["a", "o"])
@pytest.mark.parametrize("name", ["digits", "decoder"])
def test_static_libraries_give_the_same_numbers(name: str, kind: str, tmp_path: Path):
    need_wine()
    target_or_skip("avx2")
    library = windows_library(name, tmp_path, "windows-avx2", emit=("dll", kind, "h", "c"))
    expected = run_demo(library, "--all", linked="dll")
    library.files["dll"].unlink()
    static = run_demo(library, "--all", linked=kind, flags=[f"-D{name.upper()}_STATIC"])
    assert static == expected != ""


def test_weights_beside_are_read_by_the_program(tmp_path: Path):
    need_wine()
    target_or_skip("avx2")
    inside = windows_library("policy", tmp_path, "windows-avx2")
    expected = run_demo(inside, "--all")
    (tmp_path / "beside").mkdir()
    beside = windows_library("policy", tmp_path / "beside", "windows-avx2", weights="beside")
    assert "open_weights" not in beside.files["h"].read_text()
    assert run_demo(beside, "--all") == run_demo(beside, "--all", *LOADS_WEIGHTS) == expected
    assert beside.files["dll"].stat().st_size < inside.files["dll"].stat().st_size


def test_codes_tables_and_names_at_run_time(tmp_path: Path):
    need_wine()
    library = windows_library("policy", tmp_path, "windows-sse2")
    (tmp_path / "main.c").write_text(CHECKS)
    run_tool(COMPILER, *STRICT, "-std=c99", tmp_path / "main.c", library.files["lib"], "-o", tmp_path / "main.exe")
    done = run_under_wine(tmp_path / "main.exe", folder=tmp_path)
    assert done.stdout == "1 3 1 input 1,17 1"


def test_equal_models_give_equal_files(tmp_path: Path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    first, second = (windows_library("digits", folder, "windows-avx512") for folder in folders)
    for kind in ("dll", "lib"):
        assert first.files[kind].read_bytes() == second.files[kind].read_bytes()
    assert first.code_bytes > 1000


def test_the_library_imports_nothing(tmp_path: Path):
    library = windows_library("digits", tmp_path, "windows-sse2")
    text = run_tool(tool_or_skip("llvm-readobj"), "--coff-imports", "--coff-exports", library.files["dll"])
    assert "Import {" not in text and text.count("Export {") == 14 and "digits_run\n" in text


def test_the_suffix_chooses_the_kind(tmp_path: Path):
    library = windows_library("bag", tmp_path, "windows-sse2", emit=None)
    assert set(library.files) == {"dll", "h"} and library.name == "bag"


@pytest.mark.parametrize(
    ("options", "message", "remedy"),
    [
        ({"target": "windows-avx2", "emit": ("so", "h")}, "no file of kind 'so' for Windows", "dll"),
        ({"target": "windows-avx2", "emit": ("dll", "rs")}, "no file of kind 'rs' for Windows", "dll"),
        ({"target": "avx2"}, "no file of kind 'dll' for Linux", "windows-avx2"),
        ({"target": "windows-avx2", "realtime": True}, "proves code for Linux only", "realtime=False"),
        ({"target": "windows-avx2", "threads": True}, "no thread pool for x86_64-pc-windows-msvc", "threads=False"),
    ],
)
def test_wrong_choices_are_refused(options: dict[str, Any], message: str, remedy: str, tmp_path: Path):
    with pytest.raises((ArgumentError, CompileError), match=message) as caught:
        windows_library("bag", tmp_path, **options)
    assert remedy in str(caught.value.remedy)


@pytest.mark.parametrize("name", ["policy", "decoder"])
def test_a_processor_without_the_instructions_is_refused(name: str, tmp_path: Path):
    need_wine()
    target_or_skip("avx2")
    emulator = tool_or_skip("qemu-x86_64")
    library = windows_library(name, tmp_path, "windows-avx2")
    program = tmp_path / f"{name}.exe"
    run_tool(COMPILER, library.files["c"], library.files["dll"], "-o", program)
    own = run_under_wine(program, folder=tmp_path)
    newest = run_under_wine(program, folder=tmp_path, emulator=(emulator, "-cpu", "max"))
    assert newest.stdout == own.stdout and own.stdout.startswith("output:")
    old = run_under_wine(program, folder=tmp_path, emulator=(emulator, "-cpu", "Nehalem"))
    assert (old.returncode, old.stdout) == (1, "")
    assert old.stderr.strip() == "init: this processor lacks instructions that the library was built for"
