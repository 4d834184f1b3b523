"""Object code for Windows shared by the tests of linking, and the tools to inspect and run it."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from graphc.codegen.link.pe_shared import link_dll
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named
from graphc.compiler.linking import builtins_for
from tests.codegen.link.objects import TABLE, TEXT, output
from tools.codegen.windows_ops import COMPILER, missing_tool, run_under_wine

TARGET = "windows-sse2"
EXPORTS = ("call", "clear", "direct")
"""Exported functions of TEXT."""


@cache
def coff(text: str = TEXT) -> bytes:
    """Return the object code of a text for Windows."""
    target = target_named(TARGET)
    return build_object(text.replace("{{", "{").replace("}}", "}").replace("{triple}", target.triple), target)


def dll(*objects: bytes, exports: tuple[str, ...] = EXPORTS, name: str = "net.dll") -> bytes:
    """Return the DLL of these objects, or of TEXT, with the block of data and the functions that TEXT needs."""
    supply = builtins_for(target_named(TARGET), needs_libc=False)
    return link_dll(objects or (coff(),), exports, name=name, data={"table": TABLE}, supply=supply)


def need_wine() -> None:
    """Skip the test where no program for Windows can be built or run."""
    if reason := missing_tool():
        pytest.skip(reason)


def inspector() -> str:
    """Return LLVM's reader of object files, or skip the test."""
    path = shutil.which("llvm-readobj")
    return path or pytest.skip("llvm-readobj is not installed")


def run_c(source: str, folder: Path, *linked: str) -> str:
    """Return what a C program prints under Wine; ``linked`` are files of the folder."""
    need_wine()
    (folder / "main.c").write_text(source)
    files = [str(folder / name) for name in linked]
    output(COMPILER, "-O1", "-o", folder / "main.exe", folder / "main.c", *files)
    done = run_under_wine(folder / "main.exe", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
