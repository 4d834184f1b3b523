"""LLJIT engines of LLVM, which link object code where graphc's own linker does not."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from llvmlite import binding

from graphc.base.errors import CompileError
from graphc.base.locks import Lock

LINKED = 16
"""Maximum number of programs that one engine links. LLVM keeps 9 KB of each until its engine goes, which is when the
last of these programs goes; a new engine takes half a millisecond."""

_numbers = itertools.count()
_lock = Lock()
_present: list[binding.LLJIT] = []
"""The engine in use, once for each program that it may still link. Only their programs hold older engines."""


class EngineCode:
    """Object code linked by an engine. It stays in memory as long as this object lives."""

    def __init__(self, engine: binding.LLJIT, tracker: binding.ResourceTracker, names: Sequence[str]):
        self.addresses = {name: tracker[name] for name in names}
        """Address of each function."""
        self._tracker, self._engine = tracker, engine

    def keep(self) -> None:
        """Keep the code until the process ends."""
        self._tracker.detach()


def link(objects: Sequence[bytes], names: Sequence[str], imports: Mapping[str, int]) -> EngineCode:
    """Link object files into this process, with ``imports`` and the symbols of the process. Raises CompileError."""
    with _lock:
        engine = _engine()
        builder = binding.JITLibraryBuilder().add_current_process()
        for object_code in objects:
            builder.add_object_img(object_code)
        for name, address in imports.items():
            builder.import_symbol(name, address)
        for name in names:
            builder.export_symbol(name)
        try:
            return EngineCode(engine, builder.link(engine, f"graphc.{next(_numbers)}"), names)
        except RuntimeError as error:
            raise CompileError(str(error)) from error


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
