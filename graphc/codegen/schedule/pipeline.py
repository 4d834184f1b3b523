"""The CPU schedule: the program passes that a lowered program goes through for a target, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphc.base.pass_runner import Outcome, PassRun, Runner
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
    LoopDistribution,
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
    # What runs once for many calls, first: no loop around calls may hold some of it.
    CallInvariantFirst(),
    # While kernels are whole: a piece of one does not show which loops it has in common with its neighbours.
    TileAndFuse(),
    LoopDistribution(),
    # Looks for nests of one reduction each.
    SplitReductions(),
    # From here on kernels have lanes; register blocks add calls that pack.
    Nests(),
    # Packing of weights is among what runs once for many calls.
    Prepacking(),
    # No call is added or moved any more: lifetimes are known.
    PlanMemory(),
    NonTemporalStores(),
    # Kernels that use the same bytes of the arena wait for each other.
    PlanThreads(),
    # Threads poll at barriers.
    Polls(),
)
"""What ``schedule`` does, top to bottom; ``nests`` runs ``steps.STEPS`` on every kernel."""


def passes_until(name: str) -> tuple[ProgramPass, ...]:
    """The passes of the pipeline up to the one of that name, it included."""
    return PIPELINE[: _position(name) + 1]


def passes_after(name: str) -> tuple[ProgramPass, ...]:
    """The passes of the pipeline that come after the one of that name."""
    return PIPELINE[_position(name) + 1 :]


def _position(name: str) -> int:
    return [p.name for p in PIPELINE].index(name)


def schedule(
    program: Program, context: Context, passes: Sequence[ProgramPass] = PIPELINE
) -> tuple[Scheduled, list[PassRun]]:
    """What a lowered program is after ``passes``, and what each of them did.

    Verifies the result, and with GRAPHC_VERIFY=pass what every pass leaves; prints it to stderr after those of
    GRAPHC_PRINT_AFTER. Raises PassError, naming the pass and those before it, when one fails or leaves a wrong
    program."""

    def run(step: ProgramPass, given: Scheduled) -> Outcome[Scheduled]:
        result = step.run(given, context)
        return Outcome(result.scheduled, result.changed, result.reasons, result.steps)

    return Runner[ProgramPass, Scheduled](run, verify_scheduled, print_scheduled)(passes, Scheduled(program))


def schedule_program(program: Program, target: Target, tuned: Mapping[str, str] = NOTHING) -> Program:
    """A lowered program with its kernels scheduled, and operands of products packed: an equivalent program (see
    ir.kernel.interpret) in one piece, ready for its memory plan."""
    return schedule(program, Context(Forms(target), tuned), passes_until("nests"))[0].program


def plan_execution(program: Program, target: Target) -> Execution:
    """How a scheduled program whose memory is planned is run."""
    return schedule(program, Context(Forms(target)), passes_after("memory-plan"))[0].execution


def verify_scheduled(scheduled: Scheduled) -> None:
    """Raises VerifyError for a wrong program, or for decisions about kernels, buffers or calls that it lacks."""
    program, execution = scheduled.program, scheduled.execution
    verify_program(program)
    if scheduled.prepacking is not None:
        verify_program(scheduled.prepacking)
    buffers = {k.name: {b.name for b in k.arguments} for k in program.kernels}
    for kernel, non_temporal in execution.non_temporal.items():
        require(
            non_temporal <= buffers.get(kernel, set()), f"there is no {kernel} that writes to {sorted(non_temporal)}"
        )
    for kernel in execution.threads.chunked:
        require(kernel in buffers, f"there is no kernel {kernel} for threads to share")
    for number in execution.threads.barriers | execution.polls:
        require(0 <= number < len(program.calls), f"there is no call {number} for a barrier or a poll to stand before")


def print_scheduled(scheduled: Scheduled) -> str:
    """The text of the program, with what is decided beside its loops as comments."""
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
    """The program with the kernels that are scheduled one by one."""
    return schedule(program, context, passes_until("split-reductions"))[0].program


@dataclass(frozen=True)
class Blocks:
    """The register blocks that a kernel can have."""

    key: str
    """The same for equal kernels of all programs."""
    labels: tuple[str, ...]
    """By estimated time, the one that is taken first."""


def find_blocks(program: Program, target: Target) -> dict[str, Blocks]:
    """Of a lowered program the kernels that become register blocks, by the names that they have once scheduled (what
    packs for one is named so with ``_pack`` behind)."""
    divided = _divided(program, Context(Forms(target)))
    fixed = call_invariant_storages(divided)
    found: dict[str, Blocks] = {}
    for kernel in divided.kernels:
        canonical_kernel = canonical(kernel, Names(), target.costs.strict_order)
        constants = constant_buffers(divided, kernel, fixed)
        tiled = register_block(canonical_kernel, constants, target)
        if tiled is not None:
            labels = tuple(tile.label for tile in rank_tiles(tiled[0], target, constants))
            found[kernel.name] = Blocks(block_key(canonical_kernel, constants), labels)
    return found


def estimate(program: Program, forms: Forms) -> float:
    """Cycles that a lowered program would take once scheduled, by the estimates from which the schedule chooses; what
    depends on weights alone costs nothing."""
    program = distribute_loops(program)
    fixed = call_invariant_storages(program)
    found = {k.name: forms.find(k, constant_buffers(program, k, fixed)) for k in program.kernels}
    cycles = {name: form.cycles(forms.target) for name, form in found.items()}
    return sum(hint(c.runs) * cycles[c.kernel] for c in parted(program)[1])
