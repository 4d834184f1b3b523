"""LLVM text to object code and assembly."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor

from llvmlite import binding

from graphc.base import config
from graphc.base.errors import CompileError
from graphc.base.locks import Lock, hold_for_forks, section
from graphc.codegen.llvm.module import LlvmModule
from graphc.codegen.llvm.split import split_module
from graphc.codegen.machine.target import Target, architecture, host_target, target_machine
from graphc.files.object_archive import join_objects

_lock = Lock()
hold_for_forks(binding.ffi.lib._lock.__enter__, binding.ffi.lib._lock.__exit__)


def _parse(text: str, target: Target, quick: bool = False) -> tuple[binding.ModuleRef, binding.TargetMachine]:
    machine = target_machine(target, quick)
    try:
        module = binding.parse_assembly(text, binding.create_context())
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refused the emitted text: {error}") from error
    return module, machine


def build_object(module: LlvmModule | str, target: Target, quick: bool = False) -> bytes:
    """Return relocatable object code of a module, or of LLVM text; raises CompileError when LLVM refuses it.

    Several threads build a large module in parts (see object_archive for the result), but LLVM text in one piece.
    ``quick`` code builds in a tenth of the time and is not optimised.
    """
    texts = [module] if isinstance(module, str) else split_module(module)
    workers = min(len(texts), _threads())
    if workers == 1:
        return join_objects([_build(text, target, quick) for text in texts])
    with ThreadPoolExecutor(workers) as pool:
        return join_objects(list(pool.map(lambda text: _build(text, target, quick), texts)))


def _threads() -> int:
    count = config.read().compile_threads
    return count or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _build(text: str, target: Target, quick: bool) -> bytes:
    with _lock:
        module, machine = _parse(text, target, quick)
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


def emit_assembly(text: str, target: Target) -> str:
    """Return the assembly of a module given as LLVM text."""
    with _lock:
        module, machine = _parse(text, target)
        return machine.emit_assembly(module)


def assemble(assembly: str, target: Target) -> bytes:
    """Return object code of assembly for the architecture of this machine. Raises CompileError for others, because
    llvmlite only has the native assembly parser, and when LLVM refuses the assembly."""
    if architecture(target) != architecture(host_target()):
        raise CompileError(f"this machine cannot assemble code for {architecture(target)}")
    lines = (line.translate(_ESCAPED) for line in assembly.splitlines())
    text = "\n".join([f'target triple = "{target.triple}"', *(f'module asm "{line}"' for line in lines), ""])
    with _lock:
        binding.initialize_native_asmparser()
    return _build(text, target, quick=False)


_ESCAPED = str.maketrans({"\\": "\\5C", '"': "\\22", "\t": "\\09"})
"""Escapes of special characters in LLVM strings."""
