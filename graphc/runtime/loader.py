"""Native code: object code linked into callable functions of this process."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Protocol

from graphc.base import processor
from graphc.base.errors import CompileError
from graphc.base.lazy import deferred
from graphc.files.manifest import TargetSpec
from graphc.files.object_archive import split_objects
from graphc.runtime import host_calls, interrupts, threads
from graphc.runtime.code.code_memory import can_link
from graphc.runtime.code.host_facts import host_facts

# Import a linker for the first program, and LLVM only where graphc does not link itself.
link_in_memory = deferred("graphc.runtime.code.linked_code:link")
link_by_llvm = deferred("graphc.runtime.code.llvm_engine:link")

Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
"""``void entry(void **buffers)``, called without the interpreter lock."""


class CodeOwner(Protocol):
    """Object code linked into this process, in memory as long as this object lives."""

    addresses: Mapping[str, int]

    def keep(self) -> None:
        """Keep the code until the process ends."""
        ...


class Library:
    """Loaded native code. It stays in memory as long as its entry is alive."""

    __slots__ = ("address", "entry", "nbytes")

    def __init__(self, code: CodeOwner, address: int, nbytes: int):
        self.nbytes = nbytes
        """Bytes of the object file."""
        self.address = address
        """Address of the entry."""
        self.entry = Entry(address)
        """The entry as a function of the address of a pointer array."""
        # NOTE: the function itself owns the code, so that code is never unloaded while something can still call it.
        self.entry.owner = code  # type: ignore[attr-defined]


def load_object(code: bytes, entry: str, target: TargetSpec) -> Library:
    """Link object code built for ``target`` into this process. Undefined symbols come from the process (libc),
    ``graphc_threads`` from runtime.threads, ``graphc_interrupt`` from runtime.interrupts, and ``graphc_host`` from
    runtime.host_calls.

    ``code`` must be trusted: built here, or read from a file whose digest and origin were checked. Raises CompileError
    when this machine lacks instructions of ``target``, when the code cannot be linked or does not define ``entry``.
    """
    if not entry.isidentifier():
        # NOTE: LLVM ends the process when it is asked for the empty symbol.
        raise CompileError(f"native code with the entry {entry!r} could not be loaded: that is not an identifier")
    linked = _link(code, (entry,), target)
    return Library(linked, linked.addresses[entry], len(code))


def link_forever(code: bytes, names: tuple[str, ...], target: TargetSpec) -> Mapping[str, int]:
    """Link trusted object code built for ``target`` that stays in memory until the process ends; return the
    addresses of these symbols. Raises CompileError as ``load_object`` does."""
    linked = _link(code, names, target)
    linked.keep()
    return linked.addresses


def _link(code: bytes, names: tuple[str, ...], target: TargetSpec) -> CodeOwner:
    reason = runs_here(target)
    if reason:
        raise CompileError(f"native code with the entry {names[0]!r} cannot run here: {reason}")
    symbols = {
        threads.SYMBOL: threads.ADDRESS,
        interrupts.SYMBOL: interrupts.ADDRESS,
        host_calls.SYMBOL: host_calls.ADDRESS,
    }
    try:
        link = link_in_memory if can_link() else link_by_llvm
        return link(split_objects(code), names, symbols)
    except CompileError as error:
        raise CompileError(f"native code with the entry {names[0]!r} could not be loaded: {error.what}") from error


@cache
def host() -> TargetSpec:
    """Return triple, CPU and instruction set extensions of this machine."""
    here = host_facts()
    cpu, names = processor.detected(here.cpu, dict.fromkeys(here.features, True))
    return TargetSpec(here.triple, cpu, names)


def runs_here(target: TargetSpec) -> str:
    """Return an empty string if code for ``target`` runs on this machine, else the reason why it does not."""
    here = host()
    if target.triple != here.triple:
        return f"it was built for {target.triple}, this machine is {here.triple}"
    missing = sorted(set(target.features) - set(here.features))
    return f"it needs {', '.join(missing)}, which this machine lacks" if missing else ""
