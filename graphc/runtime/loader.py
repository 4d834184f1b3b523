"""Native code: object code linked into callable functions by LLJIT engines, a few programs in each."""

from __future__ import annotations

import ctypes
import itertools
from functools import cache

from llvmlite import binding

from graphc.base import processor
from graphc.base.errors import CompileError
from graphc.base.locks import Lock
from graphc.files.manifest import TargetSpec
from graphc.files.object_archive import split_objects
from graphc.runtime import host_calls, interrupts, threads

Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
"""``void entry(void **buffers)``, called without the interpreter lock."""

LINKED = 16
"""Maximum number of programs that one engine links. LLVM keeps 9 KB of each until its engine goes, which is when the
last of these programs goes; a new engine takes half a millisecond."""

_names = itertools.count()
_lock = Lock()


class Library:
    """Loaded native code. It stays in memory as long as its entry is alive."""

    __slots__ = ("address", "entry", "nbytes")

    def __init__(self, engine: binding.LLJIT, tracker: binding.ResourceTracker, address: int, nbytes: int):
        self.nbytes = nbytes
        """Bytes of the object file."""
        self.address = address
        """Address of the entry."""
        self.entry = Entry(address)
        """The entry as a function of the address of a pointer array."""
        # NOTE: the function itself owns the code, so that code is never unloaded while something can still call it.
        self.entry.owners = (tracker, engine)  # type: ignore[attr-defined]


_present: list[binding.LLJIT] = []
"""The engine in use, once for each program that it may still link. Only their programs hold older engines."""


def _engine() -> binding.LLJIT:
    if not _present:
        _present[:] = [_new_engine()] * LINKED
    return _present.pop()


def _new_engine() -> binding.LLJIT:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        reloc="pic", codemodel="small", jit=True
    )
    # NOTE: JITLink reaches code at any distance; LLVM's older linker ends the process where two sections are farther
    # apart than an offset of 32 bits, as in processes that hold gigabytes.
    return binding.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True)


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
    engine, tracker = _link(code, (entry,), target)
    return Library(engine, tracker, tracker[entry], len(code))


def link_forever(code: bytes, names: tuple[str, ...], target: TargetSpec) -> dict[str, int]:
    """Link trusted object code built for ``target`` and stays in memory until the process ends; return the
    addresses of these symbols. Raises CompileError as ``load_object`` does."""
    _, tracker = _link(code, names, target)
    addresses = {name: tracker[name] for name in names}
    tracker.detach()
    return addresses


def _link(code: bytes, names: tuple[str, ...], target: TargetSpec) -> tuple[binding.LLJIT, binding.ResourceTracker]:
    reason = runs_here(target)
    if reason:
        raise CompileError(f"native code with the entry {names[0]!r} cannot run here: {reason}")
    with _lock:
        engine = _engine()
        builder = binding.JITLibraryBuilder().add_current_process()
        for object_code in split_objects(code):
            builder.add_object_img(object_code)
        builder.import_symbol(threads.SYMBOL, threads.ADDRESS)
        builder.import_symbol(interrupts.SYMBOL, interrupts.ADDRESS)
        builder.import_symbol(host_calls.SYMBOL, host_calls.ADDRESS)
        for name in names:
            builder.export_symbol(name)
        try:
            return engine, builder.link(engine, f"graphc.{next(_names)}")
        except RuntimeError as error:
            raise CompileError(f"native code with the entry {names[0]!r} could not be loaded: {error}") from error


@cache
def host() -> TargetSpec:
    """Return triple, CPU and instruction set extensions of this machine."""
    cpu, names = processor.detected(binding.get_host_cpu_name(), binding.get_host_cpu_features())
    return TargetSpec(binding.get_process_triple(), cpu, names)


def runs_here(target: TargetSpec) -> str:
    """Return an empty string if code for ``target`` runs on this machine, else the reason why it does not."""
    here = host()
    if target.triple != here.triple:
        return f"it was built for {target.triple}, this machine is {here.triple}"
    missing = sorted(set(target.features) - set(here.features))
    return f"it needs {', '.join(missing)}, which this machine lacks" if missing else ""
