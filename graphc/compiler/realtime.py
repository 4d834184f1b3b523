"""Proof of bounded time for a compiled program: no allocation, lock or system call, and limits on resources."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import partial

from graphc.base.errors import RealtimeError
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.codegen.llvm.entry import emit_module
from graphc.codegen.llvm.module import LlvmModule
from graphc.codegen.machine.cuda.facts import is_gpu
from graphc.codegen.machine.linkage import ENTRY, is_bare
from graphc.codegen.machine.target import Target
from graphc.codegen.proof.leaves import LEAVES
from graphc.codegen.proof.prove import FunctionFacts, Proof, prove
from graphc.compiler.linking import function_text
from graphc.compiler.ready import target_spec
from graphc.compiler.stages import Stages
from graphc.files.manifest import TargetSpec
from graphc.ir.op import Trait

VERSION = 1
"""Version of the JSON report."""


@dataclass(frozen=True)
class RealtimeReport:
    """The proven facts about a program's machine code, and its resources."""

    name: str
    target: TargetSpec
    entry: str
    """The called function."""
    stack_bytes: int
    """Limit below the stack pointer at its entry."""
    touched_bytes: int
    """Bytes from there to the lowest byte ever written, as measured by painting the stack."""
    stack_path: tuple[str, ...]
    """The chain of calls with the deepest stack."""
    arena_bytes: int | None
    """Bytes for temporaries that the caller provides; None where sizes of a call decide."""
    code_bytes: int
    """Bytes of the reachable functions."""
    instructions: int | None
    """Limit on the instructions of one call; None where a loop has no bound."""
    outside: tuple[str, ...]
    """Reachable functions of the C library. Their stack, code and instructions are not counted."""
    functions: tuple[FunctionFacts, ...]
    """All reachable functions, each after its callees."""
    compared: str
    """The method by which the analyzed assembly was compared with the object code."""

    @property
    def unbounded(self) -> tuple[tuple[str, int], ...]:
        """Loops without a bound, as (function, line of the assembly)."""
        return tuple((f.name, loop.line) for f in self.functions for loop in f.loops if loop.turns is None)

    def to_json(self) -> str:
        """Return the report as one JSON object with the fields of this record, ``version`` and ``unbounded``."""
        return json.dumps({"version": VERSION, **asdict(self), "unbounded": self.unbounded}, sort_keys=True)

    def __str__(self) -> str:
        arena = "depends on sizes of the call" if self.arena_bytes is None else f"{self.arena_bytes:,} bytes"
        path = " -> ".join(self.stack_path)
        lines = [
            f"{self.name} for {self.target.triple} ({self.target.cpu}): no allocation, lock or system call is reached "
            f"from @{self.entry}",
            f"  stack         {self.stack_bytes:,} bytes ({self.touched_bytes:,} written): {path}",
            f"  arena         {arena}",
            f"  code          {self.code_bytes:,} bytes in {len(self.functions)} functions",
            f"  instructions  {self._instructions()}",
            *(f"  calls         {name}: {LEAVES[name]}" for name in self.outside),
            f"  checked       {self.compared}",
        ]
        if self.outside:
            bind = "" if is_bare(self.target.triple) else "; bind them when the program is loaded (-z now)"
            lines.append(f"  not counted   resources of these functions{bind}")
        return "\n".join(lines)

    def _instructions(self) -> str:
        if self.instructions is not None:
            return f"{self.instructions:,} at most"
        loops = sum(len(f.loops) for f in self.functions)
        where = ", ".join(f"@{name} line {line}" for name, line in self.unbounded)
        return f"unbounded by this analysis: {len(self.unbounded)} of {loops} loops ({where})"


def realtime_module(stages: Stages) -> LlvmModule:
    """Return the module of a program without threads and without polls of Ctrl-C.

    Raise RealtimeError for GPUs, and for a program that calls Python, by name.
    """
    if is_gpu(stages.target):
        raise RealtimeError("nothing is proven about code for GPUs", remedy="use a CPU")
    program = stages.scheduled
    number = next((kernel.host for kernel in program.kernels if kernel.host >= 0), None)
    if number is not None:
        nodes = [n for n in stages.traced.nodes() if n.op.has(Trait.HOST)] if stages.has_graph else []
        node = next((n for n in nodes if n.attrs["number"] == number), None)
        raise RealtimeError(
            f"{node.attrs['name'] if node else 'a kernel'} is Python, which takes locks and memory",
            origin=node.location.describe() if node else None,
            remedy="express it in ops of graphc",
        )
    return emit_module(program, stages.target, stages.execution.alone)


def prove_realtime(stages: Stages) -> RealtimeReport:
    """Prove bounded time for the entry of a program from ``realtime_module``.

    The prepacking (``stages.prepacking``), which runs once for many calls, is not part of a call. Raise RealtimeError,
    which names the offending function and the calls that lead to it, when the proof fails.
    """
    arena = stages.scheduled.arena
    module = realtime_module(stages)
    return prove_modules([module], stages.target, ENTRY, name=stages.name, arena=None if is_size(arena) else arena)


def prove_modules(
    modules: Sequence[LlvmModule | str],
    target: Target,
    entry: str,
    *,
    name: str,
    arena: int | None = None,
    data: Collection[str] = (),
) -> RealtimeReport:
    """Prove bounded time for one function of several linked modules, as in a library.

    Each module is an input of ``build_object``. ``data`` names linked symbols besides code. A microcontroller's library
    holds the functions that graphc has, which are part of the proof there. Raise RealtimeError.
    """
    supply = partial(function_text, target=target) if target.is_bare else lambda name: None
    proof = prove(modules, target, (entry,), data, supply)
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
