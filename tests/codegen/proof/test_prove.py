"""The proof for modules: every number of it is what runs show."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.machine.aarch64.steps import READER as AARCH64
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.riscv64.steps import READER as RISCV64
from graphc.codegen.machine.target import target_named
from graphc.codegen.machine.thumb.steps import READER as THUMB
from graphc.codegen.proof.prove import (
    SAME_BYTES,
    SAME_COUNTS,
    SAME_LAYOUT,
    SAME_NAMES,
    CallSite,
    Reached,
    frame_of,
    prove,
    reach,
)
from graphc.compiler.freeze import freeze
from graphc.compiler.ready import running_target
from graphc.compiler.realtime import realtime_module
from graphc.compiler.stages import Stages
from graphc.errors import RealtimeError
from graphc.ir.graph.graph import Graph
from graphc.models.model_trace import snapshot
from tests.codegen.proof.functions import flow, values
from tests.codegen.proof.machine_runs import counted_instructions, load, needs_x86, painted_bytes
from tests.native import target_or_skip


class Recurrent(nn.Module):
    """An LSTM whose states nobody asks for: calls in a loop."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(9, 13)

    def forward(self, x: Any) -> Any:
        """All outputs."""
        return self.cell(x)[0]


def policy() -> tuple[nn.Module, Any]:
    return nn.Sequential(nn.Linear(17, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 6)), gc.randn(1, 17)


def convolutions() -> tuple[nn.Module, Any]:
    net = nn.Sequential(
        *(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 5), nn.Softmax(-1)),
    )
    return net, gc.randn(1, 1, 8, 8)


MODELS = {"policy": policy, "cnn": convolutions, "lstm": lambda: (Recurrent(), gc.randn(4, 1, 9))}


@cache
def frozen(name: str) -> Graph:
    gc.manual_seed(1)
    model, x = MODELS[name]()
    traced = snapshot(model.eval(), (x,))
    return freeze(traced.graph, traced.state())


@pytest.mark.parametrize("target", ["sse2", "avx2", "avx512"])
@pytest.mark.parametrize("name", MODELS)
def test_stack_and_instructions_are_those_of_a_painted_stack_and_of_single_steps(name: str, target: str):
    needs_x86()
    target_or_skip(target)
    stages = Stages(frozen(name), target=running_target(target))
    facts = prove([realtime_module(stages).text], stages.target, [ENTRY]).of(ENTRY)
    program = load(stages)
    assert painted_bytes(program) == facts.touched_bytes <= facts.stack_bytes
    counted, branches = counted_instructions(program), (name, target) == ("cnn", "sse2")
    assert facts.instructions is not None and counted <= facts.instructions
    assert (counted < facts.instructions) == branches, "other code has no branches that depend on values"


@pytest.mark.parametrize("target", ["neon", "rv64gc", "rv64gcv", "cortex-m4", "cortex-m7", "cortex-m55", "rv32imfc"])
@pytest.mark.parametrize("name", MODELS)
def test_code_for_other_architectures_is_proven_too(name: str, target: str):
    stages = Stages(frozen(name), target=target_named(target))
    proof = prove([realtime_module(stages)], stages.target, [ENTRY])
    assert proof.compared in (SAME_LAYOUT, SAME_COUNTS, SAME_NAMES, SAME_BYTES)
    assert proof.of(ENTRY).instructions and not proof.outside
    assert proof.stack_path[0] == ENTRY and set(proof.stack_path) <= {f.name for f in proof.functions}


def test_a_large_module_is_proven_in_the_parts_that_it_is_built_in():
    stages = Stages(frozen("policy"), target=target_named("sse2"))
    parts = prove([realtime_module(stages)], stages.target, [ENTRY])
    whole = prove([realtime_module(stages).text], stages.target, [ENTRY])
    assert parts.of(ENTRY).stack_bytes == whole.of(ENTRY).stack_bytes


def test_an_allocation_is_found_behind_others():
    text = """
    declare ptr @malloc(i64)
    define internal ptr @make() noinline { %p = call ptr @malloc(i64 8)  ret ptr %p }
    define void @run(ptr %t) { %p = call ptr @make()  store ptr %p, ptr %t  ret void }
    define void @other(ptr %t) { ret void }
    """
    with pytest.raises(RealtimeError, match="the code reaches @malloc, which") as error:
        prove([text], target_named("sse2"), ["run"])
    assert error.value.where == "@run -> @make -> @malloc"
    assert prove([text], target_named("sse2"), ["other"]).of("other").instructions == 1


def test_supplied_functions_are_part_of_the_proof():
    text = "declare i64 @f(i64)\ndefine i64 @run(i64 %n) { %x = call i64 @f(i64 %n)  %y = mul i64 %x, 3  ret i64 %y }"
    target = target_named("rv32imc")
    texts = {
        "f": "declare i64 @g(i64)\ndefine i64 @f(i64 %n) { %x = call i64 @g(i64 %n)  %y = add i64 %x, 1  ret i64 %y }",
        "g": "define i64 @g(i64 %n) { %x = xor i64 %n, -1  ret i64 %x }",
    }
    with pytest.raises(RealtimeError, match="the code reaches @f, which"):
        prove([text], target, ["run"])
    proof = prove([text], target, ["run"], supply=texts.get)
    assert [f.name for f in proof.functions] == ["g", "f", "run"] and not proof.outside
    assert proof.stack_path[:2] == ("run", "f")


def test_a_stack_of_unknown_size_is_refused():
    text = """
    declare void @memset(ptr, i32, i64)
    define void @run(i64 %n) { %p = alloca i8, i64 %n  call void @memset(ptr %p, i32 0, i64 %n)  ret void }
    """
    with pytest.raises(RealtimeError, match="changes by an unknown number of bytes"):
        prove([text], target_named("sse2"), ["run"])


def test_a_function_that_is_not_there_is_refused():
    with pytest.raises(RealtimeError, match="no function @run"):
        prove(["define void @k() { ret void }"], target_named("sse2"), ["run"])


def test_of_architectures_that_are_not_known_nothing_is_proven():
    target = replace(target_named("sse2"), triple="mips64-unknown-linux-gnu")
    with pytest.raises(RealtimeError, match="cannot prove code for mips64"):
        prove([], target, ["run"])


def test_pushes_room_and_what_lies_below_it_add_up():
    frame = frame_of(values("pushq %rbx\nsubq $16, %rsp\nmovq %rdi, -24(%rsp)\naddq $16, %rsp\npopq %rbx\nretq"))
    assert (frame.reserved, frame.touched) == (8 + 16 + 24, 8 + 16 + 24)


def test_room_that_nothing_is_written_to_is_reserved_only():
    frame = frame_of(values("subq $64, %rsp\nmovq %rdi, 32(%rsp)\naddq $64, %rsp\nretq"))
    assert (frame.reserved, frame.touched) == (64, 32)


def test_a_call_has_the_return_address_below_the_frame():
    frame = frame_of(values("subq $24, %rsp\ncallq f\naddq $24, %rsp\njmp g"))
    assert frame.calls == (CallSite(1, "f", 32), CallSite(3, "g", 0))
    assert frame.touched == 32


def test_frames_of_other_machines():
    body = "stp x29, x30, [sp, #-32]!\nbl f\nldp x29, x30, [sp], #32\nret"
    assert frame_of(values(body, AARCH64)).calls == (CallSite(1, "f", 32),)
    body = "addi sp, sp, -48\nsd ra, 40(sp)\ncall f\nld ra, 40(sp)\naddi sp, sp, 48\nret"
    frame = frame_of(values(body, RISCV64))
    assert (frame.reserved, frame.touched, frame.calls) == (48, 48, (CallSite(2, "f", 48),))


@pytest.mark.parametrize("body", ["subq %rdi, %rsp\nretq", "testq %rdi, %rdi\nje .L1\npushq %rax\n.L1:\nretq"])
def test_a_frame_of_unknown_size_is_refused(body: str):
    with pytest.raises(RealtimeError, match="changes by an unknown number of bytes"):
        frame_of(values(body))


def reached(undefined: tuple[str, ...] = (), **bodies: str) -> Reached:
    return reach({name: flow(body, name) for name, body in bodies.items()}, ["run"], frozenset(undefined))


def test_callees_come_before_their_callers_and_others_not_at_all():
    found = reached(run="callq a\ncallq b\nretq", a="jmp b", b="callq memset\nretq", other="callq malloc\nretq")
    assert found.functions == ("b", "a", "run")
    assert found.outside == ("memset",)
    assert found.paths["memset"] in (("run", "a", "b", "memset"), ("run", "b", "memset"))


def test_a_function_outside_that_is_not_known_is_named_with_the_way_to_it():
    with pytest.raises(RealtimeError, match="the code reaches @malloc") as error:
        reached(run="callq a\nretq", a="callq malloc@PLT\nretq")
    assert error.value.where == "@run -> @a -> @malloc"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("syscall\nretq", "a system call"),
        ("lock incq (%rdi)\nretq", "as locks use"),
        ("callq *%rax\nretq", "makes an indirect call"),
        ("callq run\nretq", "calls itself"),
        ("movq graphc_threads@GOTPCREL(%rip), %rax\nretq", "reads @graphc_threads"),
    ],
)
def test_what_is_not_allowed_is_refused(body: str, why: str):
    with pytest.raises(RealtimeError, match=why):
        reached(("graphc_threads",), run=body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("svc #0\nbx lr", "a system call"),
        ("msr primask, r0\nbx lr", "a privileged instruction"),
        ("ldrex r0, [r1]\nstrex r2, r0, [r1]\nbx lr", "as locks use"),
        ("blx r3\nbx lr", "makes an indirect call"),
        ("it ne\nbxne r3\nbx lr", "makes an indirect call"),
        ("tbb [pc, r0]", "makes an indirect call"),
        ("vstrw.32 q0, [r0]\nbx lr", "an instruction whose effects are unknown"),
        ("bl run\nbx lr", "calls itself"),
        ("cmp r0, #1\nbls run\nbx lr", "calls itself"),
        ("movw r0, :lower16:graphc_threads\nbx lr", "reads @graphc_threads"),
        ("bl malloc\nbx lr", "the code reaches @malloc"),
    ],
)
def test_what_is_not_allowed_on_microcontrollers_is_refused(body: str, why: str):
    with pytest.raises(RealtimeError, match=why):
        reach({"run": flow(body, "run", THUMB)}, ["run"], frozenset({"graphc_threads"}))


def test_functions_that_call_each_other_are_refused():
    with pytest.raises(RealtimeError, match="calls itself"):
        reached(run="callq a\nretq", a="callq b\nretq", b="callq a\nretq")
