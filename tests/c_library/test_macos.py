"""macOS libraries: programs that call them under a loader on Linux print the numbers of the Linux library."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graphc.base.errors import ArgumentError
from graphc.c_library.build import Library, build_library
from tests.c_library.conftest import STRICT, Built, build_demo, run_tool, tool_or_skip
from tests.c_library.nets import NETS
from tests.codegen.link.macho.macos_objects import (
    TARGETS,
    exports_of,
    link_here,
    lld,
    llvm_tool,
    load_commands,
    macho,
    run_here,
)

KINDS = ("dylib", "a", "o", "h", "c", "py", "hpp", "rs", "go")
SIZES = {"sizes": ["--batch=3", "--time=20"]}
REFERENCES = """\
target triple = "{{triple}}"
{declarations}
@all = global [{count} x ptr] [{pointers}]
"""
CPP = """\
#include <cstdio>
#include "policy.hpp"
namespace policy = graphc::policy;
int main() {
    policy::Model model;
    if (model.status() != policy::Error::ok) return 1;
    float input[17], output[6];
    for (int i = 0; i < 17; i++) input[i] = 0.25f * (float)i - 2.0f;
    if (model.run(input, output) != policy::Error::ok) return 2;
    for (float y : output) std::printf("%a ", (double)y);
    return 0;
}
"""


def macos_library(name: str, folder: Path, target: str, emit: Any = KINDS, **options: Any) -> Library:
    net = NETS[name]
    return build_library(
        net.model(), *net.calls[0], path=folder / f"{name}.dylib", emit=emit, dims=net.dims, target=target, **options
    )


def functions_of(path: Path) -> list[str]:
    """Return the exported functions of a library by their names in C."""
    names = [symbol[1:] for symbol in exports_of(path.read_bytes())]
    return [name for name in names if not name.endswith(("_inputs", "_outputs"))]


def run_demo(path: Path, demo: Path, target: str, *arguments: str, flags: Sequence[str | Path] = ()) -> str:
    """Return what the demo prints when it calls a library, compiled without a warning."""
    command = link_here([demo], path, functions_of(path), target, flags=[*STRICT, *flags])
    return run_here(command, path.parent, *arguments)


@pytest.mark.parametrize("name", ["policy", "digits", "lstm", "decoder", "sizes", "bag"])
@pytest.mark.parametrize("target", TARGETS)
def test_in_strict_order_the_bits_are_those_of_linux(target: str, name: str, built: Built, tmp_path: Path):
    library = macos_library(name, tmp_path, target, emit=("dylib", "h", "c"), strict_order=True)
    own = build_demo(built(name, strict_order=True), compiler=tool_or_skip("cc"))
    arguments = ["--all", "--seed=3", *SIZES.get(name, [])]
    printed = run_demo(library.files["dylib"], library.files["c"], target, *arguments, flags=["-std=c99"])
    assert printed == run_tool(own, *arguments) != ""


@pytest.mark.parametrize("kind", ["a", "o"])
@pytest.mark.parametrize("target", TARGETS)
def test_static_libraries_give_the_same_numbers(target: str, kind: str, tmp_path: Path):
    """LLVM's linker joins the archive with a program that refers to all exports, to another library."""
    library = macos_library("digits", tmp_path, target)
    expected = run_demo(library.files["dylib"], library.files["c"], target, "--all")
    names = [symbol[1:] for symbol in exports_of(library.files["dylib"].read_bytes())]
    text = REFERENCES.format(
        declarations="\n".join(f"@{name} = external global i8" for name in names),
        count=len(names),
        pointers=", ".join(f"ptr @{name}" for name in names),
    )
    (tmp_path / "all.o").write_bytes(macho(target, text))
    (tmp_path / "static").mkdir()
    lld(target, tmp_path, "static/all.dylib", "all.o", f"digits.{kind}")
    linked = exports_of((tmp_path / "static" / "all.dylib").read_bytes())
    assert linked.keys() == {"_all", *(f"_{name}" for name in names)}
    flags = ["-I", str(tmp_path)]
    (tmp_path / "static" / "digits.c").write_bytes(library.files["c"].read_bytes())
    command = link_here(
        [tmp_path / "static" / "digits.c"],
        tmp_path / "static" / "all.dylib",
        functions_of(library.files["dylib"]),
        target,
        flags=flags,
    )
    assert run_here(command, tmp_path / "static", "--all") == expected != ""


@pytest.mark.parametrize("target", TARGETS)
def test_weights_beside_are_read_by_the_program(target: str, tmp_path: Path):
    inside = macos_library("policy", tmp_path, target)
    expected = run_demo(inside.files["dylib"], inside.files["c"], target, "--all")
    (tmp_path / "beside").mkdir()
    kinds = ("dylib", "h", "c", "py")
    beside = macos_library("policy", tmp_path / "beside", target, kinds, weights="beside")
    assert "open_weights" not in beside.files["h"].read_text()
    assert run_demo(beside.files["dylib"], beside.files["c"], target, "--all") == expected
    assert beside.files["dylib"].stat().st_size < inside.files["dylib"].stat().st_size


@pytest.mark.parametrize("target", TARGETS)
def test_a_program_in_c_plus_plus_calls_it(target: str, tmp_path: Path):
    compiler, flags = tool_or_skip("c++"), [*STRICT, "-std=c++17"]
    folders = [tmp_path / name for name in ("macos", "linux")]
    for folder in folders:
        folder.mkdir()
        (folder / "main.cpp").write_text(CPP)
    path = macos_library("policy", folders[0], target, strict_order=True).files["dylib"]
    command = link_here([folders[0] / "main.cpp"], path, functions_of(path), target, flags=flags)
    net, library, own = NETS["policy"], folders[1] / "policy.so", folders[1] / "main"
    build_library(net.model(), *net.calls[0], path=library, emit=("so", "hpp"), strict_order=True)
    run_tool(compiler, *flags, folders[1] / "main.cpp", library, f"-Wl,-rpath,{folders[1]}", "-o", own)
    assert run_here(command, folders[0]) == run_tool(own) != ""


def test_equal_models_give_equal_files(tmp_path: Path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    first, second = (macos_library("digits", folder, "macos-neon") for folder in folders)
    for kind in ("dylib", "a", "o", "c", "hpp"):
        assert first.files[kind].read_bytes() == second.files[kind].read_bytes()
    assert first.code_bytes > 1000


@pytest.mark.parametrize("target", TARGETS)
def test_the_library_imports_nothing_and_names_the_system(target: str, tmp_path: Path):
    library = macos_library("digits", tmp_path, target)
    code = library.files["dylib"].read_bytes()
    commands = dict(load_commands(code))
    assert struct.unpack_from("<5I", commands[0x80000022], 16)[0:5:2] == (0, 0, 0), "no binds"
    assert struct.unpack_from("<II", commands[0xB], 24)[1] == 0, "no undefined symbols"
    assert b"/usr/lib/libSystem.B.dylib" in commands[0xC] and b"@rpath/digits.dylib" in commands[0xD]
    assert len(exports_of(code)) == 14 and "_digits_run" in exports_of(code)
    text = run_tool(llvm_tool("llvm-objdump"), "--macho", "--exports-trie", "--bind", library.files["dylib"])
    assert "_digits_run\n" in text


def test_all_macs_have_what_code_for_arm_needs_and_others_are_asked(tmp_path: Path):
    symbols = {}
    for target in TARGETS:
        library = macos_library("digits", tmp_path, target, emit=("o", "h"))
        symbols[target] = run_tool(llvm_tool("llvm-nm"), library.files["o"])
    assert ".cpuid" in symbols["macos-avx2"] and "has_instructions" not in symbols["macos-neon"]


def test_folders_for_other_languages_have_the_archive(tmp_path: Path):
    library = macos_library("digits", tmp_path, "macos-neon")
    for kind in ("rs", "go"):
        archive = library.files[kind] / "libdigits.a"
        assert archive.read_bytes() == library.files["a"].read_bytes()


def test_the_suffix_chooses_the_kind(tmp_path: Path):
    library = macos_library("bag", tmp_path, "macos-neon", emit=None)
    assert set(library.files) == {"dylib", "h"} and library.name == "bag"


@pytest.mark.parametrize(
    ("options", "message", "remedy"),
    [
        ({"target": "macos-neon", "emit": ("so", "h")}, "no file of kind 'so' for macOS", "dylib"),
        ({"target": "macos-neon", "emit": ("fmu",)}, "no file of kind 'fmu' for macOS", "dylib"),
        ({"target": "avx2"}, "no file of kind 'dylib' for Linux", "macos-neon"),
        ({"target": "macos-neon", "realtime": True}, "proves code for Linux only", "realtime=False"),
        ({"target": "macos-neon", "threads": True}, "no thread pool for aarch64-apple-macosx11", "threads=False"),
        ({"target": "macos-neon", "weights": "beside"}, "has its weights inside the library", "weights='inside'"),
    ],
)
def test_wrong_choices_are_refused(options: dict[str, Any], message: str, remedy: str, tmp_path: Path):
    with pytest.raises(ArgumentError, match=message) as caught:
        macos_library("bag", tmp_path, **options)
    assert remedy in str(caught.value.remedy)
