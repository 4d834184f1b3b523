"""Object code for macOS shared by the tests of linking, LLVM's tools to inspect results, and a way to run them here.

A program for Linux cannot be linked with a library for macOS. ``link_here`` writes C code with the same names instead,
which jumps into the library that ``macho_loader.h`` has loaded.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from graphc.codegen.link.macho.shared import link_dylib
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import architecture, target_named
from graphc.compiler.linking import builtins_for
from tests.codegen.link.objects import TABLE, TEXT, need
from tools.codegen.cross_ops import RUNNER, commands, missing_tool

TARGETS = ("macos-neon", "macos-avx2")
ARCHITECTURES = {"macos-neon": "arm64", "macos-avx2": "x86_64"}
"""Names of the architectures in Apple's tools."""
EXPORTS = ("call", "clear", "direct")
"""Exported functions of TEXT."""
SYSTEM = """\
--- !tapi-tbd
tbd-version: 4
targets: [ x86_64-macos, arm64-macos ]
install-name: '/usr/lib/libSystem.B.dylib'
exports:
  - targets: [ x86_64-macos, arm64-macos ]
    symbols: [ dyld_stub_binder ]
...
"""
"""Description of the system's library for other linkers."""
_JUMPS = {
    "aarch64": "adrp x16, addresses\\nadd x16, x16, :lo12:addresses\\nldr x16, [x16, #{offset}]\\nbr x16",
    "x86_64": "jmp *addresses+{offset}(%rip)",
}
_LOADING = """\
#include <stdlib.h>
#include "macho_loader.h"
const void *addresses[{count}];
{tables}
__attribute__((constructor)) static void load(void) {{
    static const char *const names[] = {{{names}}};
    macho_library_t *library = macho_open("{library}");
    for (int i = 0; i < {count}; i++) {{
        addresses[i] = library ? macho_symbol(library, names[i]) : NULL;
        if (!addresses[i]) {{ fprintf(stderr, "%s: %s\\n", names[i], macho_error); exit(9); }}
    }}
    {copies}
}}
{functions}
"""


@cache
def macho(name: str = "macos-neon", text: str = TEXT) -> bytes:
    """Return the object code of a text for macOS."""
    target = target_named(name)
    return build_object(text.replace("{{", "{").replace("}}", "}").replace("{triple}", target.triple), target)


def dylib(
    *objects: bytes, target: str = "macos-neon", exports: Sequence[str] = EXPORTS, name: str = "net.dylib"
) -> bytes:
    """Return the library of these objects, or of TEXT, with the block of data and the functions that TEXT needs."""
    supply = builtins_for(target_named(target), needs_libc=False)
    return link_dylib(objects or (macho(target),), exports, name=name, data={"table": TABLE}, supply=supply)


def llvm_tool(name: str) -> str:
    """Return the path of a tool of LLVM, or skip the test."""
    path = shutil.which(name) or next((str(p) for p in sorted(Path("/usr/lib").glob(f"llvm-*/bin/{name}"))), None)
    return path or pytest.skip(f"{name} is not installed")


def lld(target: str, folder: Path, output: str, *files: str) -> None:
    """Link files of a folder to a library by LLVM's linker for macOS, with all warnings as errors."""
    (folder / "libSystem.tbd").write_text(SYSTEM)
    command = [llvm_tool("ld64.lld"), "-dylib", "-arch", ARCHITECTURES[target], "-platform_version", "macos"]
    command += ["11.0", "11.0", "-fatal_warnings", "-o", output, *files, "libSystem.tbd"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def need_loader(target: str) -> None:
    """Skip the test where no library of a target can be loaded."""
    if reason := missing_tool(target_named(target)):
        pytest.skip(reason)


def link_here(
    sources: Sequence[Path],
    library: Path,
    functions: Sequence[str],
    target: str,
    *,
    tables: Mapping[str, int] = {},
    flags: Sequence[str | Path] = (),
) -> list[str]:
    """Compile sources to a program that calls the library of its folder; return the command that runs it. ``tables``
    are exported data with their sizes in bytes."""
    need_loader(target)
    machine = target_named(target)
    compiler, *emulator = commands(machine)
    jump, names = _JUMPS[architecture(machine)], [*functions, *tables]
    bodies = [
        f'__asm__(".text\\n.globl {name}\\n{name}:\\n{jump.format(offset=8 * i)}\\n");'
        for i, name in enumerate(functions)
    ]
    shim = _LOADING.format(
        count=len(names),
        names=", ".join(f'"{name}"' for name in names),
        library=library.name,
        tables="\n".join(f"char {name}[{nbytes}] __attribute__((aligned(16)));" for name, nbytes in tables.items()),
        copies="\n    ".join(
            f"memcpy({name}, addresses[{len(functions) + i}], {nbytes});"
            for i, (name, nbytes) in enumerate(tables.items())
        ),
        functions="\n".join(bodies),
    )
    folder, program = library.parent, library.with_suffix(".program")
    (folder / "shim.c").write_text(shim)
    own = [compiler, "-O1", "-I", RUNNER.parent, "-c", folder / "shim.c", "-o", folder / "shim.o"]
    subprocess.run(own, check=True)
    if any(source.suffix == ".cpp" for source in sources):
        need(compiler := {"cc": "c++"}.get(compiler, compiler.replace("gcc", "g++")))
    command = [compiler, "-O1", *flags, "-static", "-no-pie", *sources, folder / "shim.o", "-o", program]
    subprocess.run(command, check=True)
    return [*emulator, *(["-cpu", "max"] if emulator else []), str(program)]


def run_here(command: Sequence[str], folder: Path, *arguments: str) -> str:
    """Return what a program of ``link_here`` prints."""
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def load_commands(library: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the bytes of each load command."""
    start = 32
    for _ in range(struct.unpack_from("<I", library, 16)[0]):
        command, nbytes = struct.unpack_from("<II", library, start)
        yield command, library[start : start + nbytes]
        start += nbytes


def number(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number and the offset after it."""
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value, shift = value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


def exports(trie: bytes, at: int = 0, prefix: str = "") -> dict[str, int]:
    """Return the exported names of a trie and their addresses."""
    terminal, start = number(trie, at)
    names: dict[str, int] = {}
    if terminal:
        flags, after = number(trie, start)
        assert flags == 0
        names[prefix], end = number(trie, after)
        assert end == start + terminal
    count, at = trie[start + terminal], start + terminal + 1
    for _ in range(count):
        label, _, _ = trie[at:].partition(b"\0")
        child, at = number(trie, at + len(label) + 1)
        names |= exports(trie, child, prefix + label.decode())
    return names


def exports_of(library: bytes) -> dict[str, int]:
    """Return the exported symbols of a library and their addresses."""
    tables = next(data for command, data in load_commands(library) if command == 0x80000022)
    start, nbytes = struct.unpack_from("<II", tables, 40)
    return exports(library[start : start + nbytes])
