"""explain: the decisions of a compilation and their reasons: fusion, layout, register blocks, lanes, memory."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from graphc.base.pass_runner import PassRun
from graphc.base.records import dataclass
from graphc.base.sizes.size import hint, is_size
from graphc.codegen.machine.cuda.facts import is_gpu
from graphc.codegen.schedule.estimate.kernel_facts import KernelFacts, Vectorization, kernel_facts
from graphc.codegen.schedule.memory.liveness import intervals, peak
from graphc.compiler.stages import Stages
from graphc.fusion.vertical import FusionPlan, fuse
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.kernel.dims import dims_of_program
from graphc.ir.kernel.statements import Call, Kernel, Loop, Program, Read, Storage, aligned, walk
from graphc.ir.literal import print_dim
from graphc.ir.op import Trait
from graphc.passes.base import held_graphs

PATHS = {
    "library": "product of the library",
    "tiles": "tiled contraction",
    "block": "block per row",
    "warp": "warp per row",
    "thread": "map",
    "alone": "one block",
}
"""Execution paths of kernels: a cublasLt product (with the kernel as fallback), a contraction with tiles of its factors
in shared memory, a block or a warp per row, a thread per iteration, one block.
"""


@dataclass(frozen=True)
class KernelExecution:
    """The execution of one call of a kernel, for the expected sizes."""

    path: str
    """One of PATHS."""
    blocks: int
    threads: int
    """Threads of a block."""
    shared: int
    """Bytes of shared memory of a block."""

    def __str__(self) -> str:
        if self.path == "library":
            return PATHS[self.path]
        return f"{PATHS[self.path]}: {self.blocks} blocks of {self.threads} threads, {self.shared} shared bytes"


def run_of(stages: Stages, call: Call) -> KernelExecution:
    """Return the execution of a call."""
    program = stages.scheduled
    kernel, launch = program.kernel(call.kernel), stages.source.launches[call.kernel]
    static = sum(hint(b.size) * b.dtype.itemsize for b in kernel.buffers if b.role == "shared")
    path = "library" if call.kernel in stages.execution.products else _path(kernel)
    # The launch allocates dynamic bytes for buffers whose size the kernel's text does not state.

    return KernelExecution(path, hint(call.size(launch.grid)), launch.threads, max(static, launch.dynamic))


def _path(kernel: Kernel) -> str:
    loops = [s for s, _ in walk(kernel.body) if isinstance(s, Loop)]
    kinds = {loop.kind for loop in loops}
    if not kinds & {"grid", "block", "warp"}:
        return "alone"
    if "warp" in kinds:
        return "warp"
    if "block" in kinds:
        return "tiles" if _is_tiled(kernel) else "block"
    return "thread"


def _is_tiled(kernel: Kernel) -> bool:
    """Return whether several buffers have tiles in shared memory, and no sum runs over the threads of a block."""
    shared = sum(b.role == "shared" for b in kernel.buffers)
    return shared > 1 and not any(isinstance(s, Read) and s.over for s, _ in walk(kernel.body))


@dataclass(frozen=True)
class KernelReport:
    """One call of a kernel, in order of execution."""

    number: int
    kernel: str
    """Name of the kernel in the scheduled program and in its LLVM text."""
    kind: str
    """``map``, ``row``, ``contraction``, ``nest`` (see fusion.vertical), ``pack`` for reordering an operand of a
    product, ``copy`` for copying into an output or a state.
    """
    ops: tuple[str, ...]
    """Fused ops in order, each once with its count: ``add*2``."""
    modules: tuple[str, ...]
    """Paths of their modules."""
    source: str
    """The user's file and line of the last op."""
    reads: tuple[str, ...]
    """Storages that it reads, with their types."""
    writes: tuple[str, ...]
    schedule: str
    """Lanes or register block, in words."""
    packed: bool
    """Whether an operand of the product is read from a packed copy."""
    lanes: int
    copies: tuple[int, ...]
    """Rows and vectors of the register block, or vectors in parallel."""
    scratch: tuple[int, ...]
    """Bytes of each scratch row."""
    flops: int
    bytes: int
    """Bytes of arguments read and written, each element once."""
    loops: tuple[int, ...] = ()
    """Iterations of the loops around the call, outermost first: steps of a scan, or blocks (blocks.tile_and_fuse)."""
    versions: int = 1
    """Number of nests, of which a call runs one, by its sizes. ``schedule`` describes the one for expected sizes."""
    device: KernelExecution | None = None
    """Its execution on a GPU; None on a CPU."""
    home: str = ""
    """Path of the module that its time counts for: that of its first product, else of its last op."""


@dataclass(frozen=True)
class Unfused:
    """Two neighbouring kernels left unmerged."""

    value: str
    """The value written by one and read by the other."""
    producer: int
    """Number of the call that computes it."""
    reader: int
    """Number of the call that reads it."""
    reason: str


@dataclass(frozen=True)
class Memory:
    """Bytes of a call besides arguments and outputs."""

    arena: int
    """All temporaries and scratch rows."""
    scratch: int
    bound: int
    """Largest total of live values at one time: a lower bound for any plan, scratch rows included."""
    temporaries: int
    """Total of all temporaries without shared memory."""
    constants: int
    formula: str = ""
    """The arena as a formula of the sizes of named dimensions; empty without any."""


@dataclass(frozen=True)
class Explanation:
    """All decisions of one compilation."""

    name: str
    calls: tuple[KernelReport, ...]
    unfused: tuple[Unfused, ...]
    layouts: dict[str, float]
    """Estimated cycles in each candidate layout; empty without images."""
    memory: Memory
    passes: tuple[PassRun, ...] = ()
    """The effect of each pass, graph passes first."""
    dims: tuple[str, ...] = ()
    """The named dimensions with their ranges; all figures are for the expected sizes (``hint``)."""
    weights: tuple[str, ...] = ()
    """With a precision: the storage of large weights, and reasons for weights that stay as they are."""
    held: tuple[str, ...] = ()
    """Values kept for recomputation (see docs/memory.md), with their bytes."""

    @property
    def layout(self) -> str:
        """The chosen layout; empty without candidates."""
        return min(self.layouts, key=self.layouts.__getitem__) if self.layouts else ""

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "layout": self.layout}

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def explain(stages: Stages) -> Explanation:
    """Explain the decisions of these stages. A compilation of a lowered program has no fusion to explain."""
    program = stages.scheduled
    graph = stages.optimized if stages.has_graph else None
    plan = _plan_of(graph, stages)
    origin = _Origins(graph, plan)
    facts = {k.name: kernel_facts(k) for k in program.kernels}
    calls = tuple(_report(program, n, c, facts[c.kernel], origin) for n, c in enumerate(program.calls))
    if is_gpu(stages.target):
        calls = tuple(_on_device(r, run_of(stages, c)) for r, c in zip(calls, program.calls, strict=True))
    unfused, passes = _unfused(program, plan, origin), tuple(run for runs in stages.passes.values() for run in runs)
    dims = tuple(print_dim(d).removeprefix("dim ") for d in dims_of_program(program).values())
    layouts, kept_values = dict(stages.layouts), () if graph is None else _held(graph)
    return Explanation(program.name, calls, unfused, layouts, memory_of(program), passes, dims, held=kept_values)


def _plan_of(graph: Graph | None, stages: Stages) -> FusionPlan:
    if graph is None:
        return FusionPlan(Graph(stages.name), (), frozenset())
    # A graph with complex values is lowered as another graph, on pairs of real numbers.
    return stages.fused if stages.fused.graph is graph else fuse(graph, stages.target.costs.fusion)


def _held(graph: Graph) -> tuple[str, ...]:
    values = dict.fromkeys(n.operands[0] for n in graph.nodes() if n.op.has(Trait.WAITS))
    return tuple(f"%{v.name}: {hint(v.type.nbytes)} bytes" for v in values)


def _on_device(report: KernelReport, execution: KernelExecution) -> KernelReport:
    return replace(report, schedule=str(execution), device=execution)


class _Origins:
    """The nodes of a graph for the calls of a program."""

    def __init__(self, graph: Graph | None, plan: FusionPlan):
        self.nodes: dict[str, Node] = {}
        self.kinds: dict[Node, str] = {n: g.kind for g in plan.groups for n in g.nodes}
        pending = [("", graph)] if graph is not None else []
        while pending:
            prefix, present = pending.pop()
            for node in present.nodes():
                self.nodes.update((prefix + v.name, node) for v in node.results)
                self.kinds.setdefault(node, "contraction" if node.op.has(Trait.CONTRACTION) else "map")
                pending += [(f"{prefix}{node.results[0].name}.", node.attrs[name]) for name in held_graphs(node)]

    def of(self, call: Call) -> list[Node]:
        """Return the nodes computed by a call."""
        return list(dict.fromkeys(self.nodes[name] for name in call.values if name in self.nodes))

    def kind(self, nodes: list[Node]) -> str:
        """Return the kind of the kernel for these nodes. For steps of a scan, products and reductions decide."""
        kinds = [self.kinds.get(n, "copy") for n in nodes] or ["copy"]
        return "contraction" if "contraction" in kinds else kinds[-1]


def is_packing(call: Call) -> bool:
    """Return whether a call reorders an operand of a product, by the schedule's name for such kernels."""
    return call.kernel.endswith("_pack")


def modules_of(nodes: list[Node]) -> tuple[str, ...]:
    """Return the module paths of nodes, each once."""
    return tuple(dict.fromkeys(n.location.module for n in nodes if n.location.module))


def _report(program: Program, number: int, call: Call, facts: KernelFacts, origins: _Origins) -> KernelReport:
    kernel = program.kernel(call.kernel)
    nodes = origins.of(call)
    kind = "pack" if is_packing(call) else "host" if kernel.host >= 0 else origins.kind(nodes)
    bound = list(zip(kernel.arguments, map(program.storage, call.args), strict=True))
    reads = tuple(_title(s) for b, s in bound if b.role != "out")
    writes = tuple(_title(s) for b, s in bound if b.role != "in")
    packed = any(b.name == "packed" for b in kernel.arguments)
    source = next((str(n.location) for n in reversed(nodes) if n.location.file), "")
    runs = hint(call.runs)
    vectorization, moved = facts.vectorization, (facts.read + facts.written) * runs
    flops = facts.flops * runs
    loops = tuple(hint(axis.extent) for axis in call.loops)
    shape = (
        _schedule(kind, vectorization, packed) if kind != "host" else f"calls Python: {_host_name(nodes)}",
        packed,
        vectorization.lanes,
        vectorization.copies,
        facts.scratch,
        flops,
        moved,
        loops,
        kernel.versions,
    )
    ops, modules = _ops(nodes), modules_of(nodes)
    return KernelReport(number, call.kernel, kind, ops, modules, source, reads, writes, *shape, home=home_of(nodes))


def home_of(nodes: list[Node]) -> str:
    """Return the path of the module to which a kernel's time counts; empty where unknown."""
    products = [n for n in nodes if n.op.has(Trait.CONTRACTION)]
    modules = [n.location.module for n in (*products[:1], *reversed(nodes)) if n.location.module]
    return modules[0] if modules else ""


def _host_name(nodes: list[Node]) -> str:
    return ", ".join(node.attrs["name"] for node in nodes if node.op.has(Trait.HOST))


def _schedule(kind: str, vectorization: Vectorization, packed: bool) -> str:
    if vectorization.block and kind != "contraction":
        return f"results in {vectorization.registers} vectors of {vectorization.lanes} lanes while a loop runs"
    return f"{vectorization}, packed" if packed else str(vectorization)


def _ops(nodes: list[Node]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for node in nodes:
        counts[node.op.name] = counts.get(node.op.name, 0) + 1
    return tuple(name if count == 1 else f"{name}*{count}" for name, count in counts.items())


def _title(storage: Storage) -> str:
    return f"{storage.path or storage.name}: {storage.outside}"


def _unfused(program: Program, plan: FusionPlan, origins: _Origins) -> tuple[Unfused, ...]:
    """Return each refused fusion once per pair of calls and reason."""
    number: dict[Node, int] = {}
    for position, call in enumerate(program.calls):
        if not is_packing(call):
            number.update((node, position) for node in origins.of(call))
    group = {n: g for g in plan.groups for n in g.nodes}
    pairs: dict[tuple[str, int, int], Unfused] = {}
    for refusal in plan.refusals:
        value, reader = refusal.value, refusal.reader
        if value.node in number and reader in number:
            reason = refusal.reason.text(group[value.node], group[reader])
            key = (value.name, number[value.node], number[reader])
            pairs.setdefault(key, Unfused(*key, reason))
    return tuple(sorted(pairs.values(), key=lambda a: (a.producer, a.reader, a.value)))


def memory_of(program: Program) -> Memory:
    """Return the memory of a planned program for the expected sizes, and its lower bound."""
    live = intervals(program)
    sizes = {i.storage.name: hint(aligned(i.storage.nbytes)) for i in live}
    constants = sum(s.nbytes for s in program.storages if s.cls == "constant")
    arena, scratch = hint(program.arena), hint(program.scratch)
    formula = str(program.arena) if is_size(program.arena) else ""
    return Memory(arena, scratch, peak(live, sizes) + scratch, sum(sizes.values()), constants, formula)


# ---- text


def _lines(explanation: Explanation) -> list[str]:
    calls = explanation.calls
    lines = [f"{explanation.name}: {len(calls)} kernel calls"]
    if explanation.dims:
        chosen = len({call.kernel for call in calls if call.versions > 1})
        versions = f"{chosen} kernels have several versions" if chosen else "no kernel has several versions"
        lines.append(f"one program for {'; '.join(explanation.dims)}; figures are for the hints; {versions}")
    if explanation.layouts:
        estimates = ", ".join(f"{name} {cycles:.3g}" for name, cycles in explanation.layouts.items())
        lines.append(f"layout of images: {explanation.layout} (estimated cycles: {estimates})")
    memory = explanation.memory
    over = memory.arena / memory.bound - 1 if memory.bound else 0.0
    lines.append(
        f"memory: arena {memory.arena} bytes, lower bound {memory.bound} (+{over:.1%}), including scratch rows "
        f"{memory.scratch}; temporaries without sharing {memory.temporaries}; constants {memory.constants}"
    )
    if memory.formula:
        lines.append(f"arena for all sizes: {memory.formula} bytes")
    if explanation.held:
        lines.append(f"computed a second time, after `later`: values that depend on {', '.join(explanation.held)}")
    lines += [f"weight {line}" for line in explanation.weights]
    hosts = [call.schedule for call in calls if call.kind == "host"]
    if hosts:
        lines.append(f"host calls: {len(hosts)}, in which native code waits for Python")
    unfused: dict[int, list[Unfused]] = {}
    for entry in explanation.unfused:
        unfused.setdefault(entry.reader, []).append(entry)
    for call in calls:
        lines += ["", *_call_lines(call), *_unfused_lines(unfused.get(call.number, []))]
    return [*lines, "", "passes:", *_pass_lines(explanation.passes), *_path_lines(calls)]


def _pass_lines(passes: tuple[PassRun, ...]) -> list[str]:
    """Return lines for passes that changed something or say why not, with their steps and the reasons for choices."""
    lines = []
    for run in passes:
        if run.changed or run.reasons:
            lines.append(f"   {run.name}: {_cost(run)}")
            lines += [f"      {step.name}: {_cost(step)}" for step in run.steps]
            lines += [f"      {reason}" for reason in run.reasons]
    return lines


def _path_lines(calls: tuple[KernelReport, ...]) -> list[str]:
    """Return lines with the execution path of each call's ops on a device."""
    lines = []
    for call in calls:
        if call.device is not None:
            where = f" of {', '.join(call.modules)}" if call.modules else ""
            lines.append(f"   {call.number}. {', '.join(call.ops) or 'copy'}{where}: {PATHS[call.device.path]}")
    return ["", "paths:", *lines] if lines else []


def _cost(run: PassRun) -> str:
    return f"{run.changed} changes, {1e3 * run.seconds:.1f} ms"


def _call_lines(call: KernelReport) -> list[str]:
    lines = [f"{call.number}. {call.kernel} {call.kind}: {', '.join(call.ops) or 'copy'}"]
    if call.modules or call.source:
        lines.append(f"   from      {', '.join(call.modules) or call.source}")
    lines.append(f"   memory    {', '.join(call.reads) or 'nothing'} -> {', '.join(call.writes)}")
    lines.append(f"   schedule  {call.schedule}")
    if call.versions > 1:
        lines.append(f"   versions  {call.versions}, chosen by the sizes of a call")
    if call.loops:
        lines.append(f"   repeated  {' x '.join(map(str, call.loops))} times, in turn with its neighbours")
    if call.scratch:
        lines.append(f"   scratch   {len(call.scratch)} rows of {', '.join(map(str, call.scratch))} bytes")
    return lines


def _unfused_lines(unfused: list[Unfused]) -> list[str]:
    return [f"   unfused   from {a.producer} ({a.value}): {a.reason}" for a in unfused]
