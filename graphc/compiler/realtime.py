"""The proof that a compiled program takes a bounded time: no allocation, lock or system call, and how much of all."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from graphc.base.errors import RealtimeError
from graphc.base.sizes.size import is_size
from graphc.codegen.llvm.entry import ENTRY, emit_module
from graphc.codegen.llvm.module import Module
from graphc.codegen.machine.cuda.facts import is_gpu
from graphc.codegen.machine.target import Target
from graphc.codegen.proof.leaves import LEAVES
from graphc.codegen.proof.prove import FunctionFacts, Proof, prove
from graphc.compiler.ready import target_spec
from graphc.compiler.stages import Stages
from graphc.files.manifest import TargetSpec
from graphc.ir.op import Trait

VERSION = 1
"""Of the JSON of a report."""


@dataclass(frozen=True)
class RealtimeReport:
    """What was proven of a program's machine code, and what it takes."""

    name: str
    target: TargetSpec
    entry: str
    """The function that is called."""
    stack_bytes: int
    """Below the stack pointer at its entry, at most."""
    touched_bytes: int
    """From there to the lowest byte that is ever written, which is what a painted stack shows."""
    stack_path: tuple[str, ...]
    """The chain of calls that takes most of the stack."""
    arena_bytes: int | None
    """Of the memory that the caller gives for temporaries; None where sizes of a call decide."""
    code_bytes: int
    """Of the functions that are reached."""
    instructions: int | None
    """The most that one call runs; None where a loop has no bound."""
    outside: tuple[str, ...]
    """Functions of the C library that are reached. Their stack, code and instructions are in no number here."""
    functions: tuple[FunctionFacts, ...]
    """All that are reached, each behind all that it calls."""
    compared: str
    """How what was looked at was compared with the object code."""

    @property
    def unbounded(self) -> tuple[tuple[str, int], ...]:
        """Loops whose turns could not be bounded, as (function, line of the assembly)."""
        return tuple((f.name, loop.line) for f in self.functions for loop in f.loops if loop.turns is None)

    def to_json(self) -> str:
        """The report as one JSON object with the fields of this record, ``version`` and ``unbounded``."""
        return json.dumps({"version": VERSION, **asdict(self), "unbounded": self.unbounded}, sort_keys=True)

    def __str__(self) -> str:
        known = "depends on sizes of the call" if self.arena_bytes is None else f"{self.arena_bytes:,} bytes"
        path = " -> ".join(self.stack_path)
        lines = [
            f"{self.name} for {self.target.triple} ({self.target.cpu}): no allocation, lock or system call is reached "
            f"from @{self.entry}",
            f"  stack         {self.stack_bytes:,} bytes ({self.touched_bytes:,} written): {path}",
            f"  arena         {known}",
            f"  code          {self.code_bytes:,} bytes in {len(self.functions)} functions",
            f"  instructions  {self._instructions()}",
            *(f"  calls         {name}: {LEAVES[name]}" for name in self.outside),
            f"  checked       {self.compared}",
        ]
        if self.outside:
            lines.append("  not counted   what these functions take; bind them when the program is loaded (-z now)")
        return "\n".join(lines)

    def _instructions(self) -> str:
        if self.instructions is not None:
            return f"{self.instructions:,} at most"
        loops = sum(len(f.loops) for f in self.functions)
        where = ", ".join(f"@{name} line {line}" for name, line in self.unbounded)
        return f"unbounded by this analysis: {len(self.unbounded)} of {loops} loops ({where})"


def realtime_module(stages: Stages) -> Module:
    """The module of a program without threads and without looks at Ctrl-C. Raises RealtimeError for GPUs, and for a
    program that calls Python, by name."""
    if is_gpu(stages.target):
        raise RealtimeError("nothing is proven of code for GPUs", remedy="a CPU")
    program = stages.scheduled
    number = next((kernel.host for kernel in program.kernels if kernel.host >= 0), None)
    if number is not None:
        nodes = [n for n in stages.traced.nodes() if n.op.has(Trait.HOST)] if stages.has_graph else []
        node = next((n for n in nodes if n.attrs["number"] == number), None)
        raise RealtimeError(
            f"{node.attrs['name'] if node else 'a kernel'} is Python, which takes locks and memory",
            origin=node.location.describe() if node else None,
            remedy="the same in ops of graphc",
        )
    return emit_module(program, stages.target, stages.execution.alone)


def prove_realtime(stages: Stages) -> RealtimeReport:
    """The proof for the entry of a program as ``realtime_module`` emits it. What is computed once for many calls
    (``stages.prepacking``) is no part of a call.

    Raises RealtimeError, which names what is reached and the calls that lead there, when it fails."""
    arena = stages.scheduled.arena
    module = realtime_module(stages)
    return prove_modules([module], stages.target, ENTRY, name=stages.name, arena=None if is_size(arena) else arena)


def prove_modules(
    modules: Sequence[Module | str],
    target: Target,
    entry: str,
    *,
    name: str,
    arena: int | None = None,
    data: Collection[str] = (),
) -> RealtimeReport:
    """The proof for one function of some modules that are linked together, as those of a library are; each is what
    ``build_object`` is given. ``data`` names what is linked to them and is no code. Raises RealtimeError."""
    proof = prove(modules, target, (entry,), data)
    return _report(proof, target, entry, name, arena)


def _report(proof: Proof, target: Target, entry: str, name: str, arena: int | None) -> RealtimeReport:
    facts = proof.of(entry)
    return RealtimeReport(
        name=name,
        target=target_spec(target),
        entry=entry,
        stack_bytes=facts.stack_bytes,
        touched_bytes=facts.touched_bytes,
        stack_path=proof.stack_path,
        arena_bytes=arena,
        code_bytes=sum(f.code_bytes for f in proof.functions),
        instructions=facts.instructions,
        outside=proof.outside,
        functions=proof.functions,
        compared=proof.compared,
    )
