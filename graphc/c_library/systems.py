"""All systems that libraries can be built for."""

from __future__ import annotations

from graphc.base.errors import ArgumentError, CompileError
from graphc.c_library import bare, linux, macos, wasm, windows
from graphc.c_library.system import System
from graphc.codegen.machine.target import Target

SYSTEMS = (linux.SYSTEM, wasm.SYSTEM, windows.SYSTEM, macos.SYSTEM, bare.SYSTEM)
KINDS = tuple(dict.fromkeys(kind for system in SYSTEMS for kind in system.kinds))
"""Kinds of files of all systems."""


def system_of(target: Target) -> System:
    """Return the system of a target. Raise CompileError for one that libraries cannot be built for."""
    for system in SYSTEMS:
        if system.fits(target):
            return system
    titles = [system.title for system in SYSTEMS]
    raise CompileError(
        f"build_library supports {', '.join(titles[:-1])} and {titles[-1]} only, not {target.triple}",
        remedy=f"pass the target of another machine, such as target={SYSTEMS[0].example!r}",
    )


def check_kinds(kinds: tuple[str, ...], system: System) -> None:
    """Raise ArgumentError for kinds of files that the system does not have."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise ArgumentError(
            f"build_library: unknown kind of file {unknown[0]!r}" if unknown else "build_library: emit is empty",
            remedy=f"choose from {', '.join(KINDS)}",
        )
    unfit = next((kind for kind in kinds if kind not in system.kinds), None)
    if unfit is not None:
        others = " or ".join(repr(other.example) for other in SYSTEMS if unfit in other.kinds)
        raise ArgumentError(
            f"there is no file of kind {unfit!r} for {system.title}",
            remedy=f"choose emit from {', '.join(system.kinds)}, or pass target={others}",
        )
