"""LLVM text to bytes: object code and assembly."""

from __future__ import annotations

import threading

from llvmlite import binding

from graphc.codegen.target import Target, target_machine
from graphc.errors import CompileError

_lock = threading.Lock()


def _parse(text: str, target: Target, quick: bool = False) -> tuple[binding.ModuleRef, binding.TargetMachine]:
    machine = target_machine(target, quick)
    try:
        module = binding.parse_assembly(text, binding.create_context())
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refused the emitted text: {error}") from error
    return module, machine


def build_object(text: str, target: Target, quick: bool = False) -> bytes:
    """Relocatable object code of a module given as LLVM text; raises CompileError when LLVM refuses it.

    ``quick`` code is built in a tenth of the time and not optimised."""
    with _lock:
        module, machine = _parse(text, target, quick)
        return machine.emit_object(module)


def emit_assembly(text: str, target: Target) -> str:
    """Assembly of a module given as LLVM text."""
    with _lock:
        module, machine = _parse(text, target)
        return machine.emit_assembly(module)
