"""Windows libraries: DLL and import library of the compiled entries of a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from graphc.base.errors import ArgumentError
from graphc.c_library.plan import LibraryPlan
from graphc.codegen.link.archive import write_archive
from graphc.codegen.link.coff_reader import read_coff
from graphc.codegen.link.coff_relocatable import merge_coff
from graphc.codegen.link.import_library import write_import_library
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.pe_shared import link_dll
from graphc.codegen.machine.target import Target

WINDOWS_KINDS = ("dll", "lib")
"""Kinds of files of Windows alone, which are also their suffixes: shared library, and its import library."""
_OTHERS = ("so", "hpp", "rs", "go", "fmu")
"""Kinds of files of code for other systems."""


def check_windows_choices(kinds: Collection[str], machine: Target, realtime: bool) -> None:
    """Raise ArgumentError for kinds of files that the target's system does not have, and for proofs for Windows."""
    refused = next((kind for kind in kinds if kind in (_OTHERS if machine.is_windows else WINDOWS_KINDS)), None)
    if refused is not None and machine.is_windows:
        raise ArgumentError(
            f"there is no {refused!r} file for {machine.triple}", remedy="pass emit=('dll', 'lib', 'h')"
        )
    if refused is not None:
        raise ArgumentError(
            f"a {refused!r} file needs a target of Windows, not {machine.triple}", remedy="pass target='windows-avx2'"
        )
    if realtime and machine.is_windows:
        raise ArgumentError(
            "realtime=True proves code for Linux only",
            remedy="pass realtime=False, or prove a library of the Linux target with the same instructions",
        )


def windows_files(
    objects: Sequence[bytes],
    plan: LibraryPlan,
    dll: str,
    supply: Callable[[str], bytes | None],
    kinds: Collection[str],
) -> dict[str, bytes]:
    """Link object code to files by kind: a DLL of this file name, its import library, an object file, an archive."""
    contents: dict[str, bytes] = {}
    if "dll" in kinds:
        contents["dll"] = link_dll(objects, plan.exports, name=dll, supply=supply)
    if "lib" in kinds:
        tables = {plan.symbol(f"{entry.name}_{table}") for entry in plan.entries for table in ("inputs", "outputs")}
        machine = read_coff(objects[0]).linkage.machine
        contents["lib"] = write_import_library(dll, plan.exports, tables, machine)
    if "o" in kinds or "a" in kinds:
        merged = merge_coff(objects, plan.exports, supply)
        contents |= {"o": merged, "a": write_archive({f"{plan.name}.o": merged})}
    return {kind: contents[kind] for kind in kinds if kind in contents}


def windows_code_bytes(code: bytes) -> int:
    """Return the bytes of machine code in an object file."""
    return sum(s.nbytes for s in read_coff(code).sections if s.flags & SectionFlag.EXECUTE)
