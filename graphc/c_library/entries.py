"""Sources to native code and plan: each entry is compiled for a library, and all share one block of weights."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError, CompileError, GraphcError
from graphc.base.sizes.size import is_size, terms
from graphc.base.version import VERSION
from graphc.c_library.identifiers import distinct
from graphc.c_library.plan import (
    CONTEXT_BYTES,
    MACHINE,
    RESERVED,
    Argument,
    EntryPlan,
    Equal,
    LibraryPlan,
    Solved,
    StatePlan,
)
from graphc.c_library.sources import Source
from graphc.codegen.llvm.entry import ENTRY, emit_module
from graphc.codegen.llvm.module import Module, prefixed
from graphc.codegen.machine.target import Target
from graphc.compiler.compile import describe, watched
from graphc.compiler.ready import target_spec
from graphc.compiler.stages import Stages
from graphc.files.container import align
from graphc.files.manifest import BufferSpec, Manifest, TensorSpec
from graphc.ir.kernel.statements import Program
from graphc.runtime.call_sizes import SizesOfCalls, table_slots


@dataclass(frozen=True)
class Choices:
    """What is chosen for a whole library."""

    name: str
    """What its functions begin with."""
    target: Target
    target_name: str
    weights: str
    """INSIDE or BESIDE."""
    threads: bool
    """Whether calls can be shared by threads."""


@dataclass(frozen=True)
class Compiled:
    """One entry before it is known where its constants and states lie."""

    source: Source
    program: Program
    manifest: Manifest
    constants: np.ndarray
    module: Module
    threaded: bool


@dataclass(frozen=True)
class Built:
    """A library before its own functions are written."""

    plan: LibraryPlan
    modules: tuple[Module, ...]
    """Of the programs, with names of their own."""
    weights: np.ndarray
    """Constants of all entries, then what the states are at first, as bytes."""


def compile_source(source: Source, changing: Collection[str], choices: Choices) -> Compiled:
    """Native code of a source without polls, and for one thread unless threads are chosen. Raises CompileError where
    it calls Python functions, and where there is no one program for all sizes of its dimensions."""
    target = choices.target
    try:
        stages = Stages(source.frozen(changing), target=target)
        with watched(stages):
            program, execution = stages.scheduled, stages.execution
    except GraphcError as error:
        if not source.spec.dims:
            raise
        names = ", ".join(d.name for d in source.spec.dims)
        raise CompileError(
            f"a library has one program for all sizes of {names}, which there is not for {source.spec.title}: "
            f"{error.what}",
            remedy="numbers in place of named dimensions, one library or entry each",
        ) from error
    called = next((k.name for k in program.kernels if k.host >= 0), None)
    if called is not None:
        raise CompileError(
            f"{source.spec.title} calls a Python function, which a library cannot do (kernel {called})",
            remedy="ops in its place, or the part before and the part after it as two entries",
        )
    manifest, constants = describe(program, target)
    execution = replace(execution, polls=frozenset()) if choices.threads else execution.alone
    module = emit_module(program, target, execution, threads_in_table=True)
    return Compiled(source, program, manifest, constants, module, bool(execution.threads.chunked))


def build(sources: Sequence[Source], changing: Collection[str], choices: Choices) -> Built:
    """The programs of all sources and the plan of the library of which they are functions. Params and states that are
    ``changing`` lie in its contexts."""
    name, target = choices.name, choices.target
    _check_names(sources, name)
    compiled = [compile_source(source, changing, choices) for source in sources]
    states, state_bytes = _states(compiled)
    block = _Block()
    places = [[(slot, block.add(data)) for slot, data in _constants(c)] for c in compiled]
    arrays = _arrays(sources)
    initial = block.add_states([(s.offset - CONTEXT_BYTES, arrays[s.spec.name]) for s in states], state_bytes)
    data = block.bytes()
    offsets = {s.spec.name: s.offset for s in states}
    entries = tuple(_entry(name, c, constants, offsets) for c, constants in zip(compiled, places, strict=True))
    modules = tuple(prefixed(c.module, f"{name}__{c.source.name}_") for c in compiled)
    described = hashlib.sha256("\n".join(f"{s.spec}" for s in states).encode()).digest()
    held = hashlib.sha256(data.data).digest()
    digest = hashlib.sha256(held + described + choices.weights.encode())
    for entry, module in zip(entries, modules, strict=True):
        digest.update(f"{entry}".encode() + module.text.encode())
    plan = LibraryPlan(
        name,
        entries,
        states,
        state_bytes,
        initial,
        data.nbytes,
        choices.weights,
        choices.threads,
        target_spec(target),
        choices.target_name,
        bool(target.detection(MACHINE)),
        VERSION,
        digest.digest(),
        described,
        held,
    )
    doubled = sorted({s for s in plan.exports if plan.exports.count(s) > 1})
    if doubled:
        raise ArgumentError(f"two functions of the library would be called {doubled[0]}", remedy="another entry name")
    return Built(plan, modules, data)


def _check_names(sources: Sequence[Source], name: str) -> None:
    for source in sources:
        if not source.name.isidentifier() or not source.name.isascii() or source.name in RESERVED:
            raise ArgumentError(
                f"an entry of a library cannot be called {source.name!r}: {name}_{source.name} is another function",
                remedy="another name, an identifier of C",
            )


def _arrays(sources: Iterable[Source]) -> Mapping[str, np.ndarray]:
    """Params and states of all sources by path: entries share those of one path."""
    return {path: array for source in sources for path, array in source.weights.items()}


def _constants(compiled: Compiled) -> Iterator[tuple[int, np.ndarray]]:
    """(word of the table, bytes) of each constant."""
    slots = table_slots(compiled.manifest)
    for spec in compiled.manifest.of_class("constant"):
        yield slots[spec.name], compiled.constants[spec.offset : spec.offset + spec.nbytes]


def _bound(manifest: Manifest) -> tuple[BufferSpec, ...]:
    return manifest.of_class("param", "state")


def _states(compiled: Sequence[Compiled]) -> tuple[tuple[StatePlan, ...], int]:
    """The states of all entries in the order of their first use, and their bytes together."""
    found: dict[str, StatePlan] = {}
    end = CONTEXT_BYTES
    for spec in (b for c in compiled for b in _bound(c.manifest)):
        if spec.path not in found:
            found[spec.path] = StatePlan(TensorSpec(spec.path, spec.dtype, spec.shape), end)
            end = align(end + spec.nbytes)
    return tuple(found.values()), end - CONTEXT_BYTES


class _Block:
    """Bytes one after the other at aligned offsets, equal ones once."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, np.ndarray]] = []
        self._known: dict[bytes, int] = {}
        self._end = 0

    def add(self, data: np.ndarray) -> int:
        """The offset of these bytes."""
        key = hashlib.sha256(data.data).digest() + data.nbytes.to_bytes(8, "little")
        if key not in self._known:
            self._known[key] = self._end
            self._parts.append((self._end, data))
            self._end = align(self._end + data.nbytes)
        return self._known[key]

    def add_states(self, states: Sequence[tuple[int, np.ndarray]], nbytes: int) -> int:
        """The offset of arrays that lie at offsets of their own in so many bytes."""
        start = self._end
        self._parts += [(start + offset, np.ascontiguousarray(a).reshape(-1).view(np.uint8)) for offset, a in states]
        self._end = start + nbytes
        return start

    def bytes(self) -> np.ndarray:
        """All of it."""
        found = np.zeros(align(self._end), np.uint8)
        for offset, data in self._parts:
            found[offset : offset + data.nbytes] = data
        return found


def _entry(
    library: str, compiled: Compiled, constants: Sequence[tuple[int, int]], offsets: Mapping[str, int]
) -> EntryPlan:
    """What the function of an entry has to do."""
    source, manifest = compiled.source, compiled.manifest
    for buffer in manifest.of_class("input", "param", "state", "output"):
        if BY_NAME[buffer.dtype].is_complex:
            raise CompileError(
                f"{buffer}: C libraries have no complex numbers",
                remedy="pairs of floats, and view_as_complex and view_as_real inside of the model",
            )
    model, slots = source.spec, table_slots(manifest)
    given = [*zip(model.inputs, manifest.of_class("input"), strict=True)]
    filled = [*zip(model.outputs, manifest.of_class("output"), strict=True)]
    taken = ("net", library, "arena", "arena_size", "code")
    dims = distinct((d.name for d in model.dims), taken)
    arrays = [(spec, buffer) for spec, buffer in given if spec.equals is None]
    names = distinct((spec.name for spec, _ in [*arrays, *filled]), (*taken, *dims))
    arguments = [
        Argument(spec, name, slots[buffer.name]) for (spec, buffer), name in zip([*arrays, *filled], names, strict=True)
    ]
    solved, equal = _relations(compiled)
    return EntryPlan(
        source.name,
        f"{library}__{source.name}_{ENTRY}",
        manifest,
        tuple(arguments[: len(arrays)]),
        tuple(Argument(spec, "", slots[buffer.name]) for spec, buffer in given if spec.equals is not None),
        tuple(arguments[len(arrays) :]),
        model.dims,
        tuple(dims),
        model.assumptions,
        solved,
        equal,
        tuple(constants),
        tuple((slots[b.name], offsets[b.path]) for b in _bound(manifest)),
        slots[manifest.of_class("arena")[0].name],
        next((slots[b.name] for b in manifest.of_class("status")), -1),
        compiled.threaded,
    )


def _relations(compiled: Compiled) -> tuple[tuple[Solved, ...], tuple[Equal, ...]]:
    """How the dimensions of a program follow from the sizes of a call of the model, and which sizes must agree."""
    manifest, model = compiled.manifest, compiled.source.spec
    shapes = [spec.pattern for spec in model.inputs]
    sizes = SizesOfCalls(manifest)
    if manifest.dims and sizes.patterns is None:
        names = ", ".join(d.name for d in manifest.dims)
        raise CompileError(f"no sizes of the inputs of {manifest.name} tell what {names} are")
    solved = tuple(
        Solved(dimension, shapes[tensor][dim], factor, rest)
        for (tensor, dim, _), dimension, factor, rest in (sizes.patterns.steps if sizes.patterns else ())
    )
    pairs = [
        (mine, own)
        for spec, buffer in zip(model.inputs, manifest.of_class("input"), strict=True)
        for mine, own in zip(spec.pattern, buffer.pattern, strict=True)
    ]
    # NOTE: sizes are compared by their terms, for `==` asks what may depend on the call.
    known = {(terms(s.size), ((((s.dimension, 1),), 1),)) for s in solved}
    differing = {(terms(a), terms(b)): Equal(a, b) for a, b in pairs if is_size(a) or is_size(b)}
    return solved, tuple(e for (a, b), e in differing.items() if a != b and (a, b) not in known)
