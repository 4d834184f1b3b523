"""Proof about modules of functions: from the assembly of exactly the linked object code to stack and instructions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from graphc.base.errors import RealtimeError
from graphc.codegen.llvm.build import assemble, build_object, emit_assembly
from graphc.codegen.llvm.module import LlvmModule
from graphc.codegen.llvm.split import split_module
from graphc.codegen.machine.step import Reader
from graphc.codegen.machine.target import Target, architecture, host_target
from graphc.codegen.proof.assembly import AssemblyFunction, read_assembly
from graphc.codegen.proof.flow import Flow, flow_of
from graphc.codegen.proof.frames import frame_of
from graphc.codegen.proof.longest import LoopBound, longest_path
from graphc.codegen.proof.object_code import (
    ObjectCode,
    check_layout,
    check_same,
    marked,
    note_filling,
    read_object_code,
)
from graphc.codegen.proof.reach import reach
from graphc.codegen.proof.values import Values

SAME_BYTES = "the analyzed assembly gives the bytes of the object code"
SAME_LAYOUT = "each function has the same offset and length in the object code as in the analyzed assembly"
SAME_NAMES = "the object code has exactly the functions of the analyzed assembly"
"""Ways of comparing assembly and object code."""


@dataclass(frozen=True)
class FunctionFacts:
    """Proven facts of one function, without its callees unless a field says so."""

    name: str
    code_bytes: int
    frame_bytes: int
    """Bytes of the stack below the stack pointer at its entry."""
    stack_bytes: int
    """The same with its callees."""
    touched_bytes: int
    """Bytes from there to the lowest written byte, with its callees."""
    instructions: int | None
    """Maximum instructions with its callees; None if a loop has no bound."""
    loops: tuple[LoopBound, ...]


@dataclass(frozen=True)
class Proof:
    """Proven facts of everything that some functions reach."""

    functions: tuple[FunctionFacts, ...]
    """Facts of each function, callees first."""
    outside: tuple[str, ...]
    """Reached functions of the C library; no number here includes them."""
    stack_path: tuple[str, ...]
    """Chain of calls with the largest stack."""
    compared: str
    """How the assembly was compared with the object code."""

    def of(self, name: str) -> FunctionFacts:
        """Return the facts of one function."""
        return next(f for f in self.functions if f.name == name)


def prove(
    modules: Sequence[LlvmModule | str], target: Target, roots: Sequence[str], data: Collection[str] = ()
) -> Proof:
    """Return the proof for ``roots`` in the object code that ``build_object`` makes of the modules. ``data`` names
    linked symbols without code.

    Raises RealtimeError, with the reason, for code not known to be free of allocation, locks and system calls, and for
    an unbounded stack.
    """
    machine, functions, codes = target.reader, [], []
    if machine is None:
        raise RealtimeError(f"cannot prove code for {architecture(target)}: its instructions are unknown")
    for module in modules:
        for text in [module] if isinstance(module, str) else split_module(module):
            code, module_functions = _looked_at(text, target, machine)
            functions += module_functions
            codes.append(code)
    flows = {f.name: flow_of(f, machine) for f in functions if f.lines}
    missing = [root for root in roots if root not in flows]
    if missing:
        raise RealtimeError(f"no function @{missing[0]}", remedy=f"name one of {', '.join(sorted(flows))}")
    undefined = frozenset[str]().union(*(c.undefined for c in codes)) - flows.keys() - set(data)
    reached = reach(flows, roots, undefined)
    sizes = {name: size for code in codes for name, (_, size) in code.functions.items()}
    facts: dict[str, FunctionFacts] = {}
    deepest: dict[str, str] = {}
    for name in reached.functions:
        facts[name], deepest[name] = _facts(flows[name], machine, facts, sizes[name])
    root = max(roots, key=lambda name: facts[name].stack_bytes)
    path = [root]
    while deepest.get(path[-1]):
        path.append(deepest[path[-1]])
    return Proof(tuple(facts.values()), reached.outside, tuple(path), _compared(target, machine))


def _looked_at(text: str, target: Target, machine: Reader) -> tuple[ObjectCode, list[AssemblyFunction]]:
    """Return one module's object code and functions, after comparing both."""
    assembly, built = emit_assembly(text, target), build_object(text, target)
    code, functions = read_object_code(built), read_assembly(assembly, machine.comment)
    if architecture(target) == architecture(host_target()):
        again = assemble(marked(assembly), target)
        check_same(code, read_object_code(again), machine)
        note_filling(code, again, functions, machine)
    else:
        check_layout(code, functions, machine)
    return code, functions


def _compared(target: Target, machine: Reader) -> str:
    if architecture(target) == architecture(host_target()):
        return SAME_BYTES
    return SAME_LAYOUT if machine.instruction_bytes else SAME_NAMES


def _facts(flow: Flow, machine: Reader, callees: dict[str, FunctionFacts], size: int) -> tuple[FunctionFacts, str]:
    """Return the facts of a function whose callees are known, and the callee with the largest stack."""
    values = Values(flow, machine).find()
    frame = frame_of(values)
    longest = longest_path(values, {name: f.instructions for name, f in callees.items()})
    stack, touched, deepest = frame.reserved, frame.touched, ""
    for call in frame.calls:
        inner = callees.get(call.target)
        below = call.depth + (inner.stack_bytes if inner else 0)
        if inner is not None and below >= stack:
            deepest = call.target
        stack = max(stack, below)
        touched = max(touched, call.depth + (inner.touched_bytes if inner else 0))
    facts = FunctionFacts(flow.function.name, size, frame.reserved, stack, touched, longest.instructions, longest.loops)
    return facts, deepest
