"""Execution: what the emitter is told, and does; by default one thread runs plain code."""

from __future__ import annotations

from graphc.codegen.llvm.entry import INTERRUPT, THREADS, emit_program
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.threads.execution import Execution
from graphc.ir.kernel.statements import Program
from tests.native import lowered, scheduled
from tests.passes.graph_text import graph_of

WIDE = target_named("avx512")


def program() -> Program:
    graph = graph_of("graph @g(%x: f32[64]) -> (f32[64]) {\n  %y = add(%x, %x) : f32[64]\n  return %y\n}")
    return scheduled(lowered(graph), WIDE)


def test_nothing_is_decided_by_default():
    text = emit_program(program(), WIDE, Execution())
    assert not any(word in text for word in (THREADS, INTERRUPT, "nontemporal"))


def test_the_emitter_does_what_it_is_told():
    made = program()
    (kernel,) = made.kernels
    text = emit_program(
        made, WIDE, Execution({kernel.name: frozenset({kernel.arguments[-1].name})}, polls=frozenset({0}))
    )
    assert "nontemporal" in text and INTERRUPT in text
