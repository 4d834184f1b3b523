"""The CPU schedule of whole programs: packing of operands and of constants, order of storages, equal results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, dataclass, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from graphc.base.pass_runner import Named
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.base import Context, PassResult, Scheduled
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.nests import run_copy
from graphc.codegen.schedule.passes import LoopDistribution
from graphc.codegen.schedule.pipeline import PIPELINE, passes_until, schedule, schedule_program, verify_scheduled
from graphc.codegen.schedule.steps import STEPS
from graphc.codegen.schedule.threads.execution import Execution
from graphc.errors import PassError, VerifyError
from graphc.ir.kernel.interpret import run_kernel, run_program
from graphc.ir.kernel.statements import Program
from graphc.passes.pipeline import PIPELINE as GRAPH_PIPELINE
from tests.codegen.kernel_native import copying
from tests.native import Tolerance, check_all, lowered, scheduled
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of

WIDE = target_named("avx512")
LINEAR = """
    graph @linear(%x: f32[12,24], %w: f32[40,24] param "w") -> (f32[12,40]) {
      %y = matmul(%x, %w) {transpose_a=false, transpose_b=true} : f32[12,40]
      return %y
    }"""


def constant_weight() -> Program:
    weight = np.arange(40 * 24, dtype=np.float32).reshape(40, 24) / 64 - 7
    text = ", ".join(str(v) for v in weight.ravel())
    graph = graph_of(f"""
        graph @linear(%x: f32[12,24]) -> (f32[12,40], f32[12,40]) {{
          %w = constant() {{value=f32[40,24]({text})}} : f32[40,24]
          %y = matmul(%x, %w) {{transpose_a=false, transpose_b=true}} : f32[12,40]
          %e = exp(%x) : f32[12,24]
          %z = matmul(%e, %w) {{transpose_a=false, transpose_b=true}} : f32[12,40]
          return %y, %z
        }}""")
    return lowered(graph)


def packed(program: Program) -> list[str]:
    return [s.name for s in program.storages if ".packed" in s.name]


def test_an_operand_that_lies_badly_is_packed_by_a_kernel_of_its_own():
    program = schedule_program(lowered(graph_of(LINEAR)), WIDE)
    assert [c.kernel for c in program.calls] == ["k0_pack", "k0"]
    assert [program.storage(name).cls for name in packed(program)] == ["temp"]


def test_constants_are_packed_at_compile_time():
    program = scheduled(constant_weight(), WIDE)
    assert not any(c.kernel.endswith("_pack") for c in program.calls)
    assert [program.storage(name).cls for name in packed(program)] == ["constant"]
    arguments = [np.random.default_rng(0).standard_normal((12, 24)).astype(np.float32)]
    expected = run_program(constant_weight(), arguments)
    Tolerance().check(run_program(program, arguments), expected)


def test_a_constant_that_is_only_used_packed_is_dropped():
    program = schedule_program(constant_weight(), WIDE)
    used = {a for c in program.calls for a in c.args}
    assert all(s.name in used for s in program.storages if s.cls == "constant")


def test_storages_keep_their_order():
    rank = {"input": 0, "param": 0, "state": 0, "output": 1, "constant": 2, "temp": 3}
    for name in ("avx512", "avx2", "sse2", "neon"):
        order = [rank[s.cls] for s in schedule_program(constant_weight(), target_named(name)).storages]
        assert order == sorted(order)


def test_linear_layer_natively():
    graph = graph_of(LINEAR)
    check_all(graph, random_arguments(graph))


def test_copies_of_constants_are_what_the_kernel_means():
    loops = "p in 2 parallel, l in 3 parallel, k in 5 parallel"
    kernel = copying(loops, "15*p + 5*l + k", "15*p + l + 3*k", (30, 30), names=("b0", "b1"))
    source = np.arange(30, dtype=np.float32)
    expected = np.zeros(30, np.float32)
    run_kernel(kernel, {"b0": source, "b1": expected})
    np.testing.assert_array_equal(run_copy(kernel, source), expected)


def test_a_program_of_nothing():
    program = scheduled(lowered(graph_of("graph @g(%x: f32[0]) -> (f32[0]) {\n  return %x\n}")), WIDE)
    assert program.calls == () and program.kernels == () and program.arena == 0


def test_passes_say_what_they_need_do_and_leave():
    assert len({p.name for p in PIPELINE}) == len(PIPELINE)
    for step in PIPELINE:
        doc = type(step).__doc__ or ""
        assert all(word in doc for word in ("Needs:", "Does:", "Leaves:", "->")), step.name
        assert is_dataclass(step) and type(step)() == step
        with pytest.raises(FrozenInstanceError):
            step.name = "other"  # type: ignore[misc]


def test_programs_are_printed_after_passes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("GRAPHC_PRINT_AFTER", "tile-and-fuse,memory-plan")
    schedule(lowered(graph_of(LINEAR)), Context(Forms(WIDE)))
    printed = capsys.readouterr().err
    position = {step.name: number for number, step in enumerate(PIPELINE, 1)}
    assert f"// after pass {position['tile-and-fuse']}, tile-and-fuse\nprogram @linear" in printed
    assert f"// after pass {position['memory-plan']}, memory-plan\nprogram @linear arena " in printed


@dataclass(frozen=True)
class Forgets:
    """Loses the last kernel, which is still called."""

    name: str = "forgets"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Leaves a wrong program."""
        program = scheduled.program
        return PassResult(replace(scheduled, program=replace(program, kernels=program.kernels[:-1])), 1)


def test_a_wrong_program_pass_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_VERIFY", "pass")
    passes = (*passes_until("tile-and-fuse"), Forgets(), LoopDistribution())
    expected = r"pass forgets failed \(passes before it: call-invariant-first, tile-and-fuse\)"
    with pytest.raises(PassError, match=expected):
        schedule(lowered(graph_of(LINEAR)), Context(Forms(WIDE)), passes)


def test_decisions_about_what_is_not_there_are_refused():
    program = scheduled(lowered(graph_of(LINEAR)), WIDE)
    (kernel, *_) = program.kernels
    output = next(b.name for b in kernel.arguments if b.role == "out")
    verify_scheduled(Scheduled(program, execution=Execution({kernel.name: frozenset({output})}, polls=frozenset({0}))))
    for wrong in (
        Execution({"other": frozenset({output})}),
        Execution({kernel.name: frozenset({"b9"})}),
        Execution(polls=frozenset({len(program.calls)})),
    ):
        with pytest.raises(VerifyError, match="the program has no"):
            verify_scheduled(Scheduled(program, execution=wrong))


@pytest.mark.parametrize(
    ("title", "passes"),
    [("graph passes", GRAPH_PIPELINE), ("program passes", PIPELINE), ("steps on a nest", STEPS)],
    ids=["graph", "program", "nest"],
)
def test_the_page_lists_each_pass_in_its_place(title: str, passes: Sequence[Named]):
    page = (Path(__file__).parents[3] / "docs/inside/passes.md").read_text(encoding="utf-8")
    table = page.partition(f"| {title} | why there |\n|---|---|\n")[2].partition("\n\n")[0]
    listed = [name for line in table.splitlines() for name in re.findall("`([^`]+)`", line.split("|")[1])]
    assert listed == [p.name for p in passes]
