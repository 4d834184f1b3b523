"""Compile the entries of a library, with one block of weights for all, and plan the library."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError, CompileError, GraphcError
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size, terms
from graphc.base.version import VERSION
from graphc.c_library.identifiers import distinct
from graphc.c_library.plan import (
    CONTEXT_BYTES,
    MACHINE,
    RESERVED,
    EntryPlan,
    Equal,
    LibraryArgument,
    LibraryPlan,
    ProgramPlan,
    Solved,
    StatePlan,
)
from graphc.c_library.sources import LibrarySource
from graphc.codegen.llvm.entry import emit_module
from graphc.codegen.llvm.module import LlvmModule, for_target, prefixed
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import Target
from graphc.compiler.compile import describe, watched
from graphc.compiler.ready import target_spec
from graphc.compiler.stages import Stages
from graphc.files.container import align
from graphc.files.manifest import BufferSpec, Manifest, TensorSpec
from graphc.files.model_manifest import AssumptionSpec
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.statements import Program
from graphc.models.model_trace import assumption_specs
from graphc.runtime.call_sizes import SizesOfCalls, table_slots


@dataclass(frozen=True)
class Choices:
    """Options of a library."""

    name: str
    """Prefix of its functions."""
    targets: tuple[Target, ...]
    """Machines to compile for, best first; of one architecture and system."""
    target_name: str
    weights: str
    """INSIDE or BESIDE."""
    threads: bool
    """Whether threads can share a call."""


@dataclass(frozen=True)
class Compiled:
    """Compiled entry, before its constants and states have offsets."""

    source: LibrarySource
    target: Target
    program: Program
    manifest: Manifest
    constants: np.ndarray
    module: LlvmModule
    threaded: bool
    assumptions: tuple[AssumptionSpec, ...]
    """Assumptions about the sizes of calls, of the graph and of the program."""


@dataclass(frozen=True)
class Built:
    """Compiled entries and plan of a library, before its own functions are emitted."""

    plan: LibraryPlan
    modules: tuple[LlvmModule, ...]
    """Modules of the programs, with distinct prefixes."""
    weights: np.ndarray
    """Bytes of the constants of all entries, followed by the initial states without the zeros at their end."""
    targets: tuple[Target, ...]
    """Machines that it is compiled for, best first."""

    @property
    def least(self) -> Target:
        """Return the machine of functions other than programs, which run on all of them."""
        return self.targets[-1]


def compile_source(source: LibrarySource, changing: Collection[str], choices: Choices, machine: Target) -> Compiled:
    """Compile a source without polls for interrupts, and for a single thread unless ``choices.threads``.

    Raises CompileError if it calls Python functions, or if no single program serves all sizes of its dimensions.
    """

    def scheduled(graph: Graph) -> tuple[Program, Any, Target]:
        stages = Stages(graph, target=machine)
        with watched(stages):
            return stages.scheduled, stages.execution, stages.target

    try:
        (program, execution, target), added = source.made(changing, scheduled)
    except GraphcError as error:
        if not source.spec.dims:
            raise
        names = ", ".join(d.name for d in source.spec.dims)
        raise CompileError(
            f"a library needs one program for all sizes of {names}, and {source.spec.title} has none: {error.what}",
            remedy="replace named dimensions by numbers, with one library or entry for each size",
        ) from error
    called = next((k.name for k in program.kernels if k.host >= 0), None)
    if called is not None:
        raise CompileError(
            f"{source.spec.title} calls a Python function, which a library cannot do (kernel {called})",
            remedy="replace it by ops, or make the code before and after it two entries",
        )
    manifest, constants = describe(program, target)
    execution = replace(execution, polls=frozenset()) if choices.threads else execution.alone
    module = emit_module(program, target, execution, threads_in_table=True)
    assumptions = (*source.spec.assumptions, *assumption_specs(added))
    return Compiled(source, target, program, manifest, constants, module, bool(execution.threads.chunked), assumptions)


def build(sources: Sequence[LibrarySource], changing: Collection[str], choices: Choices) -> Built:
    """Compile all sources and plan their library; parameters and states in ``changing`` are stored in contexts."""
    name, targets = choices.name, choices.targets
    _check_names(sources, name)
    by_entry = [[compile_source(source, changing, choices, target) for target in targets] for source in sources]
    compiled = [c for programs in by_entry for c in programs]
    states, state_bytes = _states(compiled)
    block = _Block()
    constants = [[[(slot, block.add(data)) for slot, data in _constants(c)] for c in row] for row in by_entry]
    arrays = _arrays(sources)
    initial = block.add_states([(s.offset - CONTEXT_BYTES, arrays[s.spec.name]) for s in states])
    data = block.bytes()
    offsets = {s.spec.name: s.offset for s in states}
    entries = tuple(_entry(name, *row, offsets) for row in zip(by_entry, constants, strict=True))
    modules = tuple(_module(name, c, number, len(targets)) for row in by_entry for number, c in enumerate(row))
    state_digest = hashlib.sha256("\n".join(f"{s.spec}" for s in states).encode()).digest()
    weight_digest = hashlib.sha256(data.data).digest()
    digest = hashlib.sha256(weight_digest + state_digest + choices.weights.encode())
    for part in (*entries, *(module.text for module in modules)):
        digest.update(f"{part}".encode())
    plan = LibraryPlan(
        name,
        entries,
        states,
        state_bytes,
        *initial,
        data.nbytes,
        choices.weights,
        choices.threads,
        tuple(map(target_spec, targets)),
        choices.target_name,
        tuple(bool(target.detection(MACHINE)) for target in targets),
        VERSION,
        digest.digest(),
        state_digest,
        weight_digest,
    )
    duplicates = sorted({s for s in plan.exports if plan.exports.count(s) > 1})
    if duplicates:
        raise ArgumentError(f"two functions of the library would be called {duplicates[0]}", remedy="rename an entry")
    return Built(plan, modules, data, targets)


def _check_names(sources: Sequence[LibrarySource], name: str) -> None:
    for source in sources:
        if not source.name.isidentifier() or not source.name.isascii() or source.name in RESERVED:
            raise ArgumentError(
                f"an entry of a library cannot be called {source.name!r}: {name}_{source.name} is reserved or not an "
                "identifier",
                remedy="rename the entry to another C identifier",
            )


def _arrays(sources: Iterable[LibrarySource]) -> Mapping[str, np.ndarray]:
    """Return parameters and states of all sources by path; entries share arrays of the same path."""
    return {path: array for source in sources for path, array in source.weights.items()}


def _constants(compiled: Compiled) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (table slot, bytes) of each constant."""
    slots = table_slots(compiled.manifest)
    for spec in compiled.manifest.of_class("constant"):
        yield slots[spec.name], compiled.constants[spec.offset : spec.offset + spec.nbytes]


def _bound(manifest: Manifest) -> tuple[BufferSpec, ...]:
    return manifest.of_class("param", "state")


def _states(compiled: Sequence[Compiled]) -> tuple[tuple[StatePlan, ...], int]:
    """Return the states of all entries in the order of their first use, and their total size in bytes."""
    plans: dict[str, StatePlan] = {}
    end = CONTEXT_BYTES
    for spec in (b for c in compiled for b in _bound(c.manifest)):
        if spec.path not in plans:
            plans[spec.path] = StatePlan(TensorSpec(spec.path, spec.dtype, spec.shape), end)
            end = align(end + spec.nbytes)
    return tuple(plans.values()), end - CONTEXT_BYTES


class _Block:
    """Block of byte arrays at aligned offsets; equal arrays are stored once."""

    def __init__(self) -> None:
        self._arrays: list[tuple[int, np.ndarray]] = []
        self._offsets: dict[bytes, int] = {}
        self._end = 0

    def add(self, data: np.ndarray) -> int:
        """Add bytes, unless they are in the block, and return their offset."""
        key = hashlib.sha256(data.data).digest() + data.nbytes.to_bytes(8, "little")
        if key not in self._offsets:
            self._offsets[key] = self._end
            self._arrays.append((self._end, data))
            self._end = align(self._end + data.nbytes)
        return self._offsets[key]

    def add_states(self, states: Sequence[tuple[int, np.ndarray]]) -> tuple[int, int]:
        """Add a region with arrays at given offsets in it, up to the last one that is not all zeros. Return its offset
        and size."""
        start = self._end
        stored = [(start + offset, np.ascontiguousarray(a).reshape(-1).view(np.uint8)) for offset, a in states]
        while stored and not stored[-1][1].any():
            stored.pop()
        self._arrays += stored
        self._end = align(stored[-1][0] + stored[-1][1].nbytes) if stored else start
        return start, self._end - start

    def bytes(self) -> np.ndarray:
        """Return the block as one array of bytes."""
        block = np.zeros(align(self._end), np.uint8)
        for offset, data in self._arrays:
            block[offset : offset + data.nbytes] = data
        return block


def _prefix(library: str, compiled: Compiled, number: int, count: int) -> str:
    """Return the prefix of the names in a program, of which an entry has ``count``."""
    return f"{library}__{compiled.source.name}_{f'{number}_' if count > 1 else ''}"


def _module(library: str, compiled: Compiled, number: int, count: int) -> LlvmModule:
    """Return a program's module with a prefix for its names, for its own machine if there are several."""
    module = prefixed(compiled.module, _prefix(library, compiled, number, count))
    return for_target(module, compiled.target) if count > 1 else module


def _entry(
    library: str,
    programs: Sequence[Compiled],
    constants: Sequence[Sequence[tuple[int, int]]],
    offsets: Mapping[str, int],
) -> EntryPlan:
    """Plan the function of an entry: its programs, with the (table slot, offset in the weights) of their constants."""
    source, manifest = programs[0].source, programs[0].manifest
    for buffer in manifest.of_class("input", "param", "state", "output"):
        if BY_NAME[buffer.dtype].is_complex:
            raise CompileError(
                f"{buffer}: C libraries have no complex numbers",
                remedy="pass pairs of floats, and use view_as_complex and view_as_real inside the model",
            )
    model = source.spec
    reserved = ("net", library, "arena", "arena_size", "code")
    dims = distinct((d.name for d in model.dims), reserved)
    arrays = [spec for spec in model.inputs if spec.equals is None]
    names = distinct((spec.name for spec in [*arrays, *model.outputs]), (*reserved, *dims))
    arguments = [LibraryArgument(*pair) for pair in zip([*arrays, *model.outputs], names, strict=True)]
    return EntryPlan(
        source.name,
        tuple(arguments[: len(arrays)]),
        tuple(LibraryArgument(spec, "") for spec in model.inputs if spec.equals is not None),
        tuple(arguments[len(arrays) :]),
        model.dims,
        tuple(dims),
        tuple(
            _program(_prefix(library, compiled, number, len(programs)), compiled, own, offsets)
            for number, (compiled, own) in enumerate(zip(programs, constants, strict=True))
        ),
    )


def _program(
    prefix: str, compiled: Compiled, constants: Sequence[tuple[int, int]], offsets: Mapping[str, int]
) -> ProgramPlan:
    """Plan a program of an entry; ``offsets`` are those of its states in a context, by path."""
    manifest, slots = compiled.manifest, table_slots(compiled.manifest)
    inputs = [*zip(compiled.source.spec.inputs, manifest.of_class("input"), strict=True)]
    arrays = [buffer for spec, buffer in inputs if spec.equals is None]
    numbers = [buffer for spec, buffer in inputs if spec.equals is not None]
    solved, equal = _relations(compiled)
    return ProgramPlan(
        f"{prefix}{ENTRY}",
        manifest,
        tuple(slots[buffer.name] for buffer in (*arrays, *manifest.of_class("output"), *numbers)),
        compiled.assumptions,
        solved,
        equal,
        tuple(constants),
        tuple((slots[b.name], offsets[b.path]) for b in _bound(manifest)),
        slots[manifest.of_class("arena")[0].name],
        next((slots[b.name] for b in manifest.of_class("status")), -1),
        compiled.threaded,
    )


def _relations(compiled: Compiled) -> tuple[tuple[Solved, ...], tuple[Equal, ...]]:
    """Return how a program's dimensions follow from the sizes of the model's call, and which sizes must be equal."""
    manifest, model = compiled.manifest, compiled.source.spec
    shapes = [spec.pattern for spec in model.inputs]
    sizes = SizesOfCalls(manifest)
    if manifest.dims and sizes.patterns is None:
        names = ", ".join(d.name for d in manifest.dims)
        raise CompileError(f"the sizes of {names} cannot be computed from the inputs of {manifest.name}")
    solved = tuple(
        Solved(dimension, shapes[tensor][dim], factor, rest)
        for (tensor, dim, _), dimension, factor, rest in (sizes.patterns.steps if sizes.patterns else ())
    )
    pairs = [
        (mine, own)
        for spec, buffer in zip(model.inputs, manifest.of_class("input"), strict=True)
        for mine, own in zip(spec.pattern, buffer.pattern, strict=True)
    ]
    # NOTE: sizes are compared by their terms, since `==` on sizes may depend on the call.
    solved_pairs = {(terms(s.size), ((((s.dimension, 1),), 1),)) for s in solved}
    differing = {(terms(a), terms(b)): Equal(a, b) for a, b in pairs if is_size(a) or is_size(b)}
    return solved, tuple(e for (a, b), e in differing.items() if a != b and (a, b) not in solved_pairs)
