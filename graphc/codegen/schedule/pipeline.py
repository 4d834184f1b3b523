"""CPU schedule: the program passes on a lowered program for a target, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphc.base.pass_runner import Outcome, PassRun, PipelineRunner
from graphc.base.records import dataclass
from graphc.base.sizes.size import hint
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.base import Context, ProgramPass, Scheduled
from graphc.codegen.schedule.contraction.register_block import rank_tiles
from graphc.codegen.schedule.forms import NOTHING, Forms, block_key, canonical, constant_buffers, register_block
from graphc.codegen.schedule.loops.distribute import distribute_loops
from graphc.codegen.schedule.memory.prepacking import call_invariant_storages, parted
from graphc.codegen.schedule.nests import Nests
from graphc.codegen.schedule.passes import (
    CallInvariantFirst,
    DoubleBuffering,
    LoopDistribution,
    LoopKernels,
    NonTemporalStores,
    PlanMemory,
    PlanThreads,
    Polls,
    Prepacking,
    SplitReductions,
    TileAndFuse,
)
from graphc.codegen.schedule.threads.execution import Execution
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Program
from graphc.ir.kernel.text import print_program
from graphc.ir.kernel.verify import require, verify_program

PIPELINE: tuple[ProgramPass, ...] = (
    # Call-invariant calls first: no loop around calls may contain them.
    CallInvariantFirst(),
    # While kernels are whole: a piece of one does not show the loops that it shares with its neighbours.
    TileAndFuse(),
    LoopDistribution(),
    # Needs nests of one reduction each.
    SplitReductions(),
    # From here on kernels have lanes; register blocks add calls that pack.
    Nests(),
    # Loops whose kernels turn out to be scalar.
    LoopKernels(),
    # The other loops; scalars of a loop kernel need no buffers.
    DoubleBuffering(),
    # After packing: calls that pack weights are call-invariant.
    Prepacking(),
    # No later pass adds or moves a call, so lifetimes are final.
    PlanMemory(),
    NonTemporalStores(),
    # Kernels that use the same bytes of the arena wait for each other.
    PlanThreads(),
    # Threads poll at barriers.
    Polls(),
)
"""Passes of ``schedule``, from first to last; ``nests`` runs ``codegen.schedule.steps.STEPS`` on every kernel."""


def passes_until(name: str) -> tuple[ProgramPass, ...]:
    """Return the passes of the pipeline up to and including the named one."""
    return PIPELINE[: _position(name) + 1]


def passes_after(name: str) -> tuple[ProgramPass, ...]:
    """Return the passes of the pipeline after the named one."""
    return PIPELINE[_position(name) + 1 :]


def _position(name: str) -> int:
    return [p.name for p in PIPELINE].index(name)


def schedule(
    program: Program, context: Context, passes: Sequence[ProgramPass] = PIPELINE
) -> tuple[Scheduled, list[PassRun]]:
    """Run ``passes`` on a lowered program; return the result with a record of each pass's run.

    Verifies the result, with GRAPHC_VERIFY=pass also after every pass. Prints the program to stderr after the passes
    named in GRAPHC_PRINT_AFTER. Raises PassError, naming the pass and its predecessors, when a pass fails or leaves an
    invalid program.
    """

    def run(step: ProgramPass, scheduled: Scheduled) -> Outcome[Scheduled]:
        result = step.run(scheduled, context)
        return Outcome(result.scheduled, result.changed, result.reasons, result.steps)

    return PipelineRunner[ProgramPass, Scheduled](run, verify_scheduled, print_scheduled)(passes, Scheduled(program))


def schedule_program(program: Program, target: Target, tuned: Mapping[str, str] = NOTHING) -> Program:
    """Return a lowered program with scheduled kernels and packed operands of products.

    The result is one equivalent program (see ir.kernel.interpret), ready for its memory plan.
    """
    return schedule(program, Context(Forms(target), tuned), passes_until("nests"))[0].program


def plan_execution(program: Program, target: Target) -> Execution:
    """Return the execution decisions for a scheduled program with a memory plan."""
    return schedule(program, Context(Forms(target)), passes_after("memory-plan"))[0].execution


def verify_scheduled(scheduled: Scheduled) -> None:
    """Verify a program and its decisions; raise VerifyError if one names a missing kernel, buffer or call."""
    program, execution = scheduled.program, scheduled.execution
    verify_program(program)
    if scheduled.prepacking is not None:
        verify_program(scheduled.prepacking)
    buffers = {k.name: {b.name for b in k.arguments} for k in program.kernels}
    for kernel, non_temporal in execution.non_temporal.items():
        require(
            non_temporal <= buffers.get(kernel, set()),
            f"non-temporal stores: the program has no kernel {kernel} with the buffers {sorted(non_temporal)}",
        )
    for kernel in execution.threads.chunked:
        require(kernel in buffers, f"thread plan: the program has no kernel {kernel}")
    for number in execution.threads.barriers | execution.polls:
        require(0 <= number < len(program.calls), f"barriers and polls: the program has no call {number}")


def print_scheduled(scheduled: Scheduled) -> str:
    """Format the program as text, with the execution decisions as comments."""
    lines = [print_program(scheduled.program).rstrip("\n")]
    if scheduled.prepacking is not None:
        lines += ["// once for many calls:", *(f"// {x}" for x in print_program(scheduled.prepacking).splitlines())]
    return "\n".join([*lines, *_execution_lines(scheduled.execution)]) + "\n"


def _execution_lines(execution: Execution) -> list[str]:
    lines = [
        f"// non-temporal stores of @{k}: {', '.join(sorted(b))}" for k, b in sorted(execution.non_temporal.items())
    ]
    for kernel, chunking in execution.threads.chunked.items():
        shared = ", ".join(axis.name for axis in chunking.shares)
        lines.append(f"// threads share @{kernel}: {shared} in {chunking.grains} grains")
    if execution.threads.chunked:
        calls = ", ".join(map(str, sorted(execution.threads.barriers))) or "none"
        lines.append(f"// at most {execution.threads.most} threads, barriers before calls {calls}")
    if execution.polls:
        lines.append(f"// polls before calls {', '.join(map(str, sorted(execution.polls)))}")
    return lines


def _divided(program: Program, context: Context) -> Program:
    """Return the program with the kernels in the form in which ``nests`` schedules each."""
    return schedule(program, context, passes_until("split-reductions"))[0].program


@dataclass(frozen=True)
class Blocks:
    """Candidate register blocks of a kernel."""

    key: str
    """Key of the kernel, the same for equal kernels of all programs."""
    labels: tuple[str, ...]
    """Labels of the blocks, in the order of their estimated time; the first is chosen by default."""


def find_blocks(program: Program, target: Target) -> dict[str, Blocks]:
    """Return the candidate register blocks of a lowered program, by the names of the kernels after scheduling.

    A kernel that packs an operand for kernel ``k`` is named ``k_pack``.
    """
    divided = _divided(program, Context(Forms(target)))
    fixed = call_invariant_storages(divided)
    candidates: dict[str, Blocks] = {}
    for kernel in divided.kernels:
        canonical_kernel = canonical(kernel, Names(), target.costs.strict_order)
        constants = constant_buffers(divided, kernel, fixed)
        tiled = register_block(canonical_kernel, constants, target)
        if tiled is not None:
            labels = tuple(tile.label for tile in rank_tiles(tiled[0], target, constants))
            candidates[kernel.name] = Blocks(block_key(canonical_kernel, constants), labels)
    return candidates


def estimate(program: Program, forms: Forms) -> float:
    """Estimate the cycles of a lowered program after scheduling, by the same estimates by which the schedule chooses.

    Calls that depend on weights alone cost nothing.
    """
    program = distribute_loops(program)
    fixed = call_invariant_storages(program)
    kernel_forms = {k.name: forms.find(k, constant_buffers(program, k, fixed)) for k in program.kernels}
    cycles = {name: form.cycles for name, form in kernel_forms.items()}
    return sum(hint(c.runs) * cycles[c.kernel] for c in parted(program)[1])
