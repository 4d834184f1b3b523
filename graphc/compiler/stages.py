"""The stages from a graph to its object code, each computed on demand and printable by name."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from graphc.base import config
from graphc.base.errors import ArgumentError, CompileError
from graphc.base.lazy import LazySequence, deferred
from graphc.base.locks import cached_property
from graphc.base.pass_runner import SEEN, PassRun
from graphc.base.progress import COMPILE, note, unwatched
from graphc.base.sizes.size_questions import access_asker
from graphc.codegen.machine.cuda.facts import is_gpu
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import Target, host_target, target_named
from graphc.compiler import cache
from graphc.compiler.graph_programs import tuned_target
from graphc.compiler.kernel_cache import KERNELS
from graphc.compiler.ready import target_spec
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import assumed
from graphc.ir.graph.text import print_graph
from graphc.ir.graph.verify import foreign_ops
from graphc.ir.kernel.statements import Program
from graphc.passes.base import STANDARD, Pass

if TYPE_CHECKING:
    from graphc.codegen.cuda.emit import CudaSource
    from graphc.codegen.llvm.module import LlvmModule
    from graphc.codegen.schedule.base import Context, ProgramPass, Scheduled
    from graphc.codegen.schedule.forms import Forms
    from graphc.codegen.schedule.threads.execution import Execution
    from graphc.fusion.vertical import FusionPlan

# Each stage is imported when it runs first: a program from the cache needs none, one for a CPU none of those for GPUs.
build_object = deferred("graphc.codegen.llvm.build:build_object")
canonical_sums = deferred("graphc.codegen.schedule.reduce.virtual_lanes:canonical_sums")
emit_assembly = deferred("graphc.codegen.llvm.build:emit_assembly")
emit_cuda = deferred("graphc.codegen.cuda.emit:emit_cuda")
emit_module = deferred("graphc.codegen.llvm.entry:emit_module")
estimate = deferred("graphc.codegen.schedule.pipeline:estimate")
hide_names = deferred("graphc.compiler.linking:hide_names")
lower_graph = deferred("graphc.lowering.program:lower_graph")
lower_layouts = deferred("graphc.lowering.program:lower_layouts")
make_context = deferred("graphc.codegen.schedule.base:Context")
make_forms = deferred("graphc.codegen.schedule.forms:Forms")
passes_after = deferred("graphc.codegen.schedule.pipeline:passes_after")
plan_graph = deferred("graphc.lowering.program:plan_graph")
possible_layouts = deferred("graphc.fusion.layout:possible_layouts")
print_plan = deferred("graphc.fusion.text:print_plan")
print_program = deferred("graphc.ir.kernel.text:print_program")
print_scheduled = deferred("graphc.codegen.schedule.pipeline:print_scheduled")
run_passes = deferred("graphc.passes.pipeline:run_passes")
schedule = deferred("graphc.codegen.schedule.pipeline:schedule")
standard_names = deferred("graphc.compiler.pass_names:standard_names")
verify_program = deferred("graphc.ir.kernel.verify:verify_program")
with_run_time_sizes = deferred("graphc.codegen.llvm.run_time_sizes:with_run_time_sizes")

SCHEDULE: Sequence[ProgramPass] = LazySequence("graphc.codegen.schedule.pipeline:PIPELINE")
GPU_PIPELINE: Sequence[ProgramPass] = LazySequence("graphc.codegen.schedule.gpu_pipeline:GPU_PIPELINE")

STAGES = ("traced", "optimized", "fused", "lowered", "scheduled", "llvm", "asm")
"""Names of the printable stages, in order, for CPUs."""
GPU_STAGES = ("traced", "optimized", "fused", "lowered", "scheduled", "cuda")
"""Names of the printable stages, in order, for GPUs."""


def _note_unknown(names: Sequence[str], passes: Sequence[Pass]) -> None:
    """Warn of names in GRAPHC_PRINT_AFTER without a pass. A user's pass may have one, before its first run."""
    if not names:
        return
    own = dict.fromkeys((*standard_names(), *(p.name for p in passes)))
    for name in names:
        if name != "all" and name not in own and name not in SEEN:
            what = f"GRAPHC_PRINT_AFTER: there is no pass {name!r}; use all, or one of {', '.join(own)}"
            warnings.warn(what, RuntimeWarning, stacklevel=3)


class Stages:
    """One compilation. It starts from a traced graph, or from a lowered program.

    Example:
        >>> import graphc as gc
        >>> from graphc.compiler.stages import Stages
        >>> stages = Stages(gc.trace(lambda x: x * 2, gc.zeros(3)))
        >>> stages.names[:2]
        ('traced', 'optimized')
    """

    def __init__(
        self,
        traced: Graph | None = None,
        lowered: Program | None = None,
        target: Target | None = None,
        tuned: Mapping[str, str] | None = None,
        passes: Sequence[Pass] = STANDARD,
        plan: FusionPlan | None = None,
    ):
        """``passes`` are the graph passes; a fusion ``plan`` of ``traced`` replaces passes and fusion.

        ``tuned`` holds the choices of tuning (see ``Cache.choices``); None reads the disk cache.
        """
        if (traced is None) == (lowered is None):
            raise ArgumentError("a compile starts from a graph or from a lowered program")
        _note_unknown(config.read().print_after, passes)
        self.machine = target or host_target()
        """The target, without the costs that tuning chose."""
        self.names = GPU_STAGES if is_gpu(self.machine) else STAGES
        """Names of the printable stages, in order."""
        self.seconds: dict[str, float] = {}
        """Seconds of each computed stage."""
        self.layouts: dict[str, float] = {}
        """Estimated cycles in each candidate layout (see fusion.layout), after ``lowered`` was computed; those of
        ``batch_last`` times ``batch_last_gain``."""
        self.passes: dict[str, list[PassRun]] = {}
        """The effect of each pass, by its stage (``optimized``, ``scheduled``)."""
        self.watch: Callable[[str], None] = lambda stage: None
        """Called with the name of each stage when it begins."""
        self.runs_once = False
        """Whether the program runs once for many calls."""
        self._verify = config.read().verify
        self._tuned = tuned
        self._traced = traced
        self._passes, self._plan = passes, plan
        if lowered is not None:
            self.__dict__["lowered"] = lowered
        if plan is not None:
            self.__dict__.update(optimized=plan.graph, fused=plan)

    @property
    def name(self) -> str:
        """Name of the program."""
        return self.lowered.name if self._traced is None else self._traced.name

    @property
    def graph_passes(self) -> Sequence[Pass]:
        """The graph passes."""
        return self._passes

    @property
    def has_graph(self) -> bool:
        """Whether the compilation starts from a graph."""
        return self._traced is not None

    def again(self, target: Target, tuned: Mapping[str, str]) -> Stages:
        """Return another compilation from the same beginning, for a target and with choices of tuning."""
        if self._traced is None:
            return Stages(lowered=self.lowered, target=target, tuned=tuned)
        return Stages(self._traced, target=target, tuned=tuned, passes=self._passes, plan=self._plan)

    @property
    def traced(self) -> Graph:
        """The original graph; it is not changed."""
        if self._traced is None:
            raise CompileError("this compile starts from a lowered program and has no graph")
        return self._traced

    @property
    def is_extended(self) -> bool:
        """Whether a user's code takes part in the compilation: passes outside the standard ones, or a user's ops."""
        return self._passes is not STANDARD or (self._traced is not None and bool(foreign_ops(self._traced)))

    @cached_property
    def choices(self) -> Mapping[str, str]:
        """The choices of tuning for all programs of the machine."""
        return cache.choices(target_spec(self.machine)) if self._tuned is None else self._tuned

    @cached_property
    def target(self) -> Target:
        """The target, with the costs that tuning chose for this graph.

        A user's passes and ops keep the target's own costs: the graph does not show what they do.
        """
        if self._traced is None or not self.choices or is_gpu(self.machine) or self.is_extended:
            return self.machine
        return tuned_target(self._traced, self.machine, self.choices)

    @cached_property
    def optimized(self) -> Graph:
        """The graph after all graph passes (which verify it)."""
        return self._timed("optimized", self._optimize, self.traced)

    def _optimize(self, graph: Graph) -> Graph:
        result, self.passes["optimized"] = run_passes(graph, self._passes, self.target.costs)
        return result

    @cached_property
    def fused(self) -> FusionPlan:
        """The groups of nodes that become kernels. The time to choose them counts as part of ``lowered``."""
        return plan_graph(self.optimized, self.target.costs.fusion)

    @cached_property
    def lowered(self) -> Program:
        """Kernels as loop nests, independent of the machine."""
        return self._timed("lowered", self._lower, self.optimized)

    def _lower(self, graph: Graph) -> Program:
        program = self._lower_in_best_layout(graph)
        return canonical_sums(program) if self.target.costs.strict_order else program

    def _lower_in_best_layout(self, graph: Graph) -> Program:
        """Lower the graph in the layout with the fastest estimate of the target's schedule."""
        costs = self.target.costs.fusion
        # The estimate is that of the CPU's schedule, so GPUs use the plain layout only.
        layouts = () if is_gpu(self.target) else possible_layouts(graph, costs)
        if len(layouts) <= 1:
            return lower_graph(graph, costs=costs, plan=self.fused)
        programs = dict(zip(layouts, lower_layouts(graph, layouts, costs, self.fused), strict=True))
        self.layouts = {layout: estimate(program, self._layout_forms) for layout, program in programs.items()}
        if "batch_last" in self.layouts:
            self.layouts["batch_last"] *= costs.batch_last_gain
        return programs[min(layouts, key=self.layouts.__getitem__)]

    @property
    def scheduled(self) -> Program:
        """Kernels tiled and vectorised for the target, with the memory plan."""
        return self._scheduled.program

    @property
    def execution(self) -> Execution:
        """Further decisions on the scheduled program: non-temporal stores, threads, polls."""
        return self._scheduled.execution

    @cached_property
    def _scheduled(self) -> Scheduled:
        return self._timed("scheduled", self._schedule, self.lowered)

    def _schedule(self, program: Program) -> Scheduled:
        if self._traced is None and self._verify != "off":
            verify_program(program)
        result, self.passes["scheduled"] = schedule(program, self._context, self._pipeline)
        return result

    @cached_property
    def _forms(self) -> Forms:
        return make_forms(self.target)

    @property
    def _layout_forms(self) -> Forms:
        """The target whose schedule decides about the layout: one for all in strict order, as layouts order sums."""
        return make_forms(target_named("avx2:strict")) if self.target.costs.strict_order else self._forms

    @property
    def program_passes(self) -> tuple[str, ...]:
        """Names of the program passes. The text of a program is available after each."""
        return tuple(p.name for p in self._pipeline)

    @property
    def _pipeline(self) -> Sequence[ProgramPass]:
        return GPU_PIPELINE if is_gpu(self.machine) else SCHEDULE

    @cached_property
    def _context(self) -> Context:
        return make_context(self._forms, self.choices)

    @cached_property
    def prepacking(self) -> Stages | None:
        """The compilation of the prepacking program (see codegen.schedule.memory.prepacking), or None."""
        program = self._scheduled.prepacking
        if program is None:
            return None
        prepacked = Stages(lowered=program, target=self.target)
        prepacked.runs_once = True
        planned = self._timed("prepacking", schedule, program, self._context, passes_after("prepacking"))
        prepacked.__dict__["_scheduled"], prepacked.passes["scheduled"] = planned
        return prepacked

    @cached_property
    def llvm(self) -> str:
        """LLVM text of the program."""
        return self.module.text

    @cached_property
    def module(self) -> LlvmModule:
        """The functions of the program."""
        return self._timed("llvm", self._emit, self.scheduled)

    def _emit(self, program: Program) -> LlvmModule:
        module = emit_module(program, self.target, self.execution)
        return with_run_time_sizes(module) if self.runs_once else module

    @cached_property
    def source(self) -> CudaSource:
        """CUDA C of the program, and the launches of its kernels."""
        return self._timed("cuda", emit_cuda, self.scheduled)

    @property
    def cuda(self) -> str:
        """CUDA C of the program."""
        return self.source.text

    @cached_property
    def asm(self) -> str:
        """Assembly for the target."""
        return self._timed("asm", emit_assembly, self.llvm, self.target)

    @cached_property
    def object(self) -> bytes:
        """Object code for the target."""
        return self._timed("object", self._build, self.module)

    def _build(self, module: LlvmModule) -> bytes:
        # One file is smaller, and loads faster, than an archive with a file per kernel.
        return hide_names(build_object(module, self.target, cache=KERNELS), {ENTRY: ENTRY})

    def text(self, stage: str) -> str:
        """Return the text of a stage, or of the result of one graph or program pass. Raise ArgumentError for an unknown
        name.
        """
        program_passes = self.program_passes
        if stage in program_passes:
            until = self._pipeline[: program_passes.index(stage) + 1]
            return print_scheduled(schedule(self.lowered, self._context, until)[0])
        graph_passes = tuple(dict.fromkeys(p.name for p in self._passes))
        if stage in graph_passes:
            last = max(i for i, step in enumerate(self._passes) if step.name == stage)
            return print_graph(run_passes(self.traced, self._passes[: last + 1], self.target.costs)[0])
        if stage not in self.names:
            names = (*self.names, *graph_passes, *program_passes)
            raise ArgumentError(f"there is no stage {stage!r}", remedy=f"use one of {', '.join(names)}")
        value = getattr(self, stage)
        if isinstance(value, Graph):
            return print_graph(value)
        if stage == "fused":
            return print_plan(value)
        return print_program(value) if isinstance(value, Program) else value

    def _timed(self, stage: str, compute: Any, *arguments: Any) -> Any:
        self.watch(stage)
        start = time.perf_counter()
        assumptions = nullcontext() if self._traced is None else assumed(self._traced, questions=access_asker)
        with assumptions, unwatched():
            result = compute(*arguments)
            if self._verify != "off" and isinstance(result, Program):
                verify_program(result)
        self.seconds[stage] = time.perf_counter() - start
        note(COMPILE, stage, start, program=self.name)
        config.logger("compile").info("%s: %.1f ms", stage, 1e3 * self.seconds[stage])
        return result
