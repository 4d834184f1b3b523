"""Static libraries for microcontrollers: object files in an archive, which the linker of the user's board links."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.base.errors import ArgumentError, CompileError
from graphc.c_library.plan import BESIDE
from graphc.codegen.link.archive import write_archive
from graphc.codegen.link.elf32 import read_contents
from graphc.codegen.machine.target import Target

BARE_KINDS = ("a", "h")
"""Kinds of files for microcontrollers: archive and header."""


def check_bare_choices(kinds: Sequence[str], machine: Target, weights: str, realtime: bool) -> None:
    """Raise an error where a microcontroller has no such file or option."""
    if not machine.is_bare:
        return
    unfit = next((kind for kind in kinds if kind not in BARE_KINDS), None)
    if unfit is not None:
        raise ArgumentError(
            f"there is no file of kind {unfit!r} for {machine.cpu}, which has no operating system",
            remedy=f"choose emit from {', '.join(BARE_KINDS)}",
        )
    if weights == BESIDE:
        raise ArgumentError(f"{machine.cpu} has no files to map weights from", remedy="pass weights='inside'")
    if realtime:
        raise CompileError(
            f"realtime=True does not know the instructions of {machine.cpu}", remedy="pass realtime=False"
        )


def bare_archive(name: str, objects: Sequence[bytes], supply: Callable[[str], bytes | None]) -> bytes:
    """Return the archive of object files and of the functions that ``supply`` has for them.

    Other undefined functions are those of the compiler's runtime library: arithmetic in f64, quotients in 64 bits,
    copies of memory.
    """
    members = {f"{name}_{number}.o": code for number, code in enumerate(objects)}
    return write_archive(members | {f"{symbol}.o": code for symbol, code in supplied(objects, supply).items()})


def supplied(objects: Sequence[bytes], supply: Callable[[str], bytes | None]) -> dict[str, bytes]:
    """Return the object code of the functions that ``supply`` has for object files, and for each other, by name."""
    functions, pending = dict[str, bytes](), list(objects)
    requested = set[str]()
    while pending:
        names = [name for code in pending for name in read_contents(code).undefined if name not in requested]
        requested.update(names)
        pending = []
        for name in dict.fromkeys(names):
            code = supply(name)
            if code is not None:
                functions[name] = code
                pending.append(code)
    return functions
