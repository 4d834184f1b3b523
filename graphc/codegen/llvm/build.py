"""LLVM text to object code and assembly."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import llvmlite
from llvmlite import binding

from graphc.base import config
from graphc.base.errors import CompileError
from graphc.base.locks import Lock, hold_for_forks, section
from graphc.codegen.llvm.module import LlvmModule
from graphc.codegen.llvm.split import Unit, split_module
from graphc.codegen.machine.target import Target, architecture, host_target, target_machine
from graphc.files.object_archive import join_objects

VERSIONS = llvmlite.__version__, binding.llvm_version_info


class ObjectCache(Protocol):
    """Object code of units (see codegen.llvm.split) by key. It may forget any."""

    def load(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the object code of the keys that it has."""
        ...

    def store(self, objects: Mapping[str, bytes]) -> None:
        """Add object code, by key."""


_lock = Lock()
hold_for_forks(binding.ffi.lib._lock.__enter__, binding.ffi.lib._lock.__exit__)
_of_thread = threading.local()


def _parse(text: str) -> binding.ModuleRef:
    try:
        module = binding.parse_assembly(text, binding.create_context())
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refused the emitted text: {error}") from error
    return module


def _machine(target: Target, quick: bool) -> binding.TargetMachine:
    """Return this thread's target machine. A new one takes a millisecond at its first module."""
    machines = _of_thread.__dict__.setdefault("machines", {})
    key = target.triple, target.cpu, target.features, quick
    if key not in machines:
        machines[key] = target_machine(target, quick)
    return machines[key]


class _Switches:
    """Switches of LLVM, which it has once for the process (``Target.llvm_switches``). They are on while builds for
    their targets run: other users of LLVM keep its passes. Builds for targets with other switches wait for the end."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._threads: list[int] = []
        """Identifiers of the threads that build."""
        self._on: tuple[str, ...] = ()

    @contextmanager
    def of(self, target: Target) -> Iterator[None]:
        """Set the switches of a target while the block runs."""
        names, me = target.llvm_switches, threading.get_ident()
        with self._changed:
            while self._on != names and {*self._threads} - {me}:
                self._changed.wait()
            self._set(names)
            self._threads.append(me)
        try:
            yield
        finally:
            with self._changed:
                self._threads.remove(me)
                if not self._threads:
                    self._set(())
                self._changed.notify_all()

    def _set(self, names: tuple[str, ...]) -> None:
        for name in {*self._on} ^ {*names}:
            # A switch that disables nothing enables a pass that LLVM runs by default.
            skips = name in names
            value = skips if name.startswith("-disable-") else not skips
            binding.set_option("", f"{name}={str(value).lower()}")
        self._on = names

    def forget_other_threads(self) -> None:
        """Drop builds of threads that do not exist in the child after fork(), and their switches."""
        self._changed = threading.Condition()
        self._threads = [thread for thread in self._threads if thread == threading.get_ident()]
        if not self._threads:
            self._set(())


_switches = _Switches()
os.register_at_fork(after_in_child=_switches.forget_other_threads)


def build_object(
    module: LlvmModule | str, target: Target, quick: bool = False, cache: ObjectCache | None = None
) -> bytes:
    """Return relocatable object code of a module, or of LLVM text; raises CompileError when LLVM refuses it.

    Several threads build the units of a module (see object_archive for the result) that ``cache`` does not have, but
    LLVM text in one piece. ``quick`` code builds in a tenth of the time and is not optimised.
    """
    units = [Unit(module, quick=quick)] if isinstance(module, str) else split_module(module)
    units = [replace(unit, quick=True) for unit in units] if quick else units
    keys = [_key(unit, target) for unit in units]
    shared = {key for key, unit in zip(keys, units, strict=True) if unit.is_shared}
    ready = {} if cache is None else cache.load(sorted(shared))
    missing = {key: unit for key, unit in zip(keys, units, strict=True) if key not in ready}
    longest_first = sorted(missing, key=lambda key: -len(missing[key].text))
    with _switches.of(target):
        codes = _build_all([missing[key] for key in longest_first], target)
    built = dict(zip(longest_first, codes, strict=True))
    if cache is not None and not shared.isdisjoint(built):
        cache.store({key: code for key, code in built.items() if key in shared})
    ready |= built
    return join_objects([unit.named(ready[key]) for key, unit in zip(keys, units, strict=True)])


def _key(unit: Unit, target: Target) -> str:
    """Return a digest of everything that the object code of a unit depends on."""
    facts = VERSIONS, target.triple, target.cpu, target.features, unit.quick, target.llvm_switches
    state = hashlib.sha256(repr(facts).encode())
    state.update(unit.text.encode())
    return state.hexdigest()


def _build_all(units: Sequence[Unit], target: Target) -> list[bytes]:
    workers = min(len(units), _threads())
    if workers <= 1:
        return [_build(unit.text, target, unit.quick) for unit in units]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda unit: _build(unit.text, target, unit.quick), units))


def _threads() -> int:
    count = config.read().compile_threads
    return count or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _build(text: str, target: Target, quick: bool) -> bytes:
    with _lock:
        module, machine = _parse(_unwound(text) if target.is_windows else text), _machine(target, quick)
    # NOTE: llvmlite lets one thread at a time into LLVM. Modules with their own context and target machine may be
    # emitted concurrently, so this call bypasses llvmlite's lock.
    emit = getattr(binding.ffi.lib, "_lib", binding.ffi.lib).LLVMPY_TargetMachineEmitToMemory
    with section(), binding.ffi.OutputString() as error:
        buffer = emit(machine, module, 1, error)
        if not buffer:
            raise CompileError(f"LLVM emitted no object code: {error}")
    with _lock:
        try:
            return ctypes.string_at(
                binding.ffi.lib.LLVMPY_GetBufferStart(buffer), binding.ffi.lib.LLVMPY_GetBufferSize(buffer)
            )
        finally:
            binding.ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)
            module.close()


def _unwound(text: str) -> str:
    """Return a module whose functions get unwind tables. Windows needs one for each function that moves the stack
    pointer, also where nothing is thrown: debuggers and handlers of faults walk the stack by them."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(("attributes #", "define ")) and " naked " not in line:
            lines[number] = _NO_UNWIND.sub("nounwind uwtable", line, count=1)
    return "\n".join(lines) + "\n"


_NO_UNWIND = re.compile(r"\bnounwind\b")


def emit_assembly(text: str, target: Target, quick: bool = False) -> str:
    """Return the assembly of a module given as LLVM text, for code that is ``quick`` as in ``build_object``."""
    with _switches.of(target), _lock:
        return _machine(target, quick).emit_assembly(_parse(text))


def assemble(assembly: str, target: Target) -> bytes:
    """Return object code of assembly for the architecture of this machine. Raises CompileError for others, because
    llvmlite only has the native assembly parser, and when LLVM refuses the assembly."""
    if architecture(target) != architecture(host_target()):
        raise CompileError(f"this machine cannot assemble code for {architecture(target)}")
    lines = (line.translate(_ESCAPED) for line in assembly.splitlines())
    text = "\n".join([f'target triple = "{target.triple}"', *(f'module asm "{line}"' for line in lines), ""])
    with _lock:
        binding.initialize_native_asmparser()
    with _switches.of(target):
        return _build(text, target, quick=False)


_ESCAPED = str.maketrans({"\\": "\\5C", '"': "\\22", "\t": "\\09"})
"""Escapes of special characters in LLVM strings."""
