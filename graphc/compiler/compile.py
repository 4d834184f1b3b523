"""Compilation of a graph to native code with its manifest, and loading of the result."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from graphc.base import config
from graphc.base.lazy import deferred
from graphc.base.records import dataclass
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import Target
from graphc.compiler import cache
from graphc.compiler.graph_programs import assumed_sizes, key_inputs_of, load_program
from graphc.compiler.progress import shown
from graphc.compiler.ready import find_or_build, key_text, load_ready, target_spec
from graphc.compiler.stages import Stages
from graphc.files.container import align
from graphc.files.manifest import INTERRUPTIBLE_NS, BufferSpec, Manifest
from graphc.ir.graph import text
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.statements import Program, Storage
from graphc.passes.base import STANDARD, Pass
from graphc.runtime import arena
from graphc.runtime.call import Executable

# Import the code generator only for programs that the cache does not have.
bound_storages = deferred("graphc.codegen.llvm.entry:bound_storages")
collect_data = deferred("graphc.ir.kernel.text:collect_data")
dims_of_program = deferred("graphc.ir.kernel.dims:dims_of_program")
print_program = deferred("graphc.ir.kernel.text:print_program")
program_ns = deferred("graphc.codegen.schedule.estimate.cost:program_ns")
recipes = deferred("graphc.codegen.schedule.memory.prepacking:recipes")

SUFFIXES = {
    "traced": "gc",
    "optimized": "gc",
    "fused": "gcp",
    "lowered": "gck",
    "scheduled": "gck",
    "llvm": "ll",
    "asm": "s",
    "cuda": "cu",
}
"""Stages that GRAPHC_DUMP writes, with the suffixes of their files. Each target has some of them."""
_ABOVE_PROGRAMS = ("traced", "optimized", "fused")


@dataclass(frozen=True)
class CompiledGraph(cache.CacheEntry):
    """Native code for a graph, all data for calling it, and the stages of its compilation."""

    stages: Stages
    """The stages from the graph to the code."""


def compile_graph(graph: Graph, target: Target | None = None, passes: Sequence[Pass] = STANDARD) -> CompiledGraph:
    """Compile a graph to native code, for this machine or another target. The graph is not changed."""
    stages = Stages(graph, target=target, passes=passes)
    disk = cache.current()
    start = time.perf_counter()
    key = key_parts(stages) if disk else ()
    entry, is_cached = find_or_build(disk, stages.machine, key, lambda: compile_stages(stages))
    if is_cached:
        stages.seconds["cache"] = time.perf_counter() - start
        config.logger("compile").info("%s: found in the cache", graph.name)
    return CompiledGraph(entry.manifest, entry.object, entry.constants, stages, prepacking=entry.prepacking)


def key_parts(stages: Stages) -> tuple[str | np.ndarray, ...]:
    """Return the inputs of the code besides options and compiler: the target, the graph, and what it assumes of sizes.

    Where a user's code takes part in the compilation, the lowered kernels replace the graph: they say more than any
    digest of that code.
    """
    if stages.is_extended:
        program, data = print_program(stages.lowered), collect_data(stages.lowered)
        return ("kernels", key_text(stages.machine), program, *assumed_sizes(stages.traced), *data.values())
    return key_inputs_of(stages.traced, stages.machine)


_numbers = itertools.count()


def compile_stages(stages: Stages) -> CompiledGraph:
    """Run the remaining stages of a compilation. Some may have been computed already."""
    with watched(stages):
        first = None if stages.prepacking is None else _prepacking(stages.prepacking)
        manifest, constants = describe(stages.scheduled, stages.target)
        return CompiledGraph(manifest, stages.object, constants, stages, prepacking=first)


@contextmanager
def watched(stages: Stages) -> Iterator[None]:
    """Surround a compilation: report progress, dump stages where options request it, pause the garbage collector."""
    folder = config.read().dump
    with _without_collector(), shown(stages.name) as progress:
        stages.watch = progress.tell
        if folder:
            dump(stages, Path(folder) / f"{next(_numbers)}.{_file_name(stages.lowered.name)}")
        yield


def _prepacking(stages: Stages) -> cache.CacheEntry:
    manifest, constants = describe(stages.scheduled, stages.target)
    recipe_of = recipes(stages.scheduled)
    buffers = [
        replace(b, path=str(recipe_of[b.name])) if b.cls == "output" and b.name in recipe_of else b
        for b in manifest.buffers
    ]
    return cache.CacheEntry(replace(manifest, buffers=tuple(buffers)), stages.object, constants)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause Python's garbage collector: a compilation allocates many objects that stay alive."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def load_compiled(compiled: cache.CacheEntry) -> Executable:
    """Load code into this process. Raise CompileError when it was built for another kind of machine."""
    if isinstance(compiled, CompiledGraph) and compiled.stages.has_graph:
        return load_program(compiled, compiled.stages.traced)
    return load_ready(compiled)


def describe(program: Program, target: Target) -> tuple[Manifest, np.ndarray]:
    """Return the manifest of a scheduled program, and its constant block."""
    expected, chosen = program_ns(program, target.roofline), sum(k.versions > 1 for k in program.kernels)
    # The time of Python functions is unknown. The rest decides whether the call is long enough for Ctrl-C to stop it.
    if expected < INTERRUPTIBLE_NS and any(kernel.host >= 0 for kernel in program.kernels):
        expected = 0
    manifest, constants = manifest_of(program, ENTRY, target)
    return replace(manifest, nanoseconds=expected, chosen=chosen), constants


def manifest_of(program: Program, entry: str, target: Target) -> tuple[Manifest, np.ndarray]:
    """Return manifest and constants as ``describe``, with another name of the entry and without the estimated time."""
    buffers: list[BufferSpec] = []
    blocks: list[tuple[int, np.ndarray]] = []
    written = _written(program)
    end = 0
    for storage in bound_storages(program):
        offset = -1
        if storage.cls == "constant":
            offset = align(end)
            blocks.append((offset, np.ascontiguousarray(storage.data)))
            end = offset + storage.nbytes
        buffers.append(_buffer(storage, offset, storage.name in written))
    names = {b.name for b in buffers}
    name = "arena"
    while name in names:
        name += "_"
    buffers.append(BufferSpec(name, "u8", (program.arena,), "arena", written=True))
    constants, filled = arena.empty((end,), np.dtype(np.uint8), end), 0
    for offset, block in blocks:
        constants[filled:offset] = 0
        filled = offset + block.nbytes
        constants[offset:filled] = block.reshape(-1).view(np.uint8)
    dims = tuple(dims_of_program(program).values())
    spec, built_by = target_spec(target), cache.versions()
    return Manifest(program.name, entry, tuple(buffers), program.arena, end, spec, built_by, dims=dims), constants


def _buffer(storage: Storage, offset: int, written: bool) -> BufferSpec:
    cls = "param" if storage.cls == "weight" else storage.cls
    type = storage.outside
    return BufferSpec(
        storage.name, type.dtype.name, type.shape, cls, storage.path, offset, written, equals=storage.equals
    )


def _written(program: Program) -> set[str]:
    """Return the names of written storages, including those whose memory they alias."""
    alias = {s.name: s.alias for s in program.storages if s.alias}
    names: set[str] = set()
    kernels = {k.name: k for k in program.kernels}
    for call in program.calls:
        for buffer, name in zip(kernels[call.kernel].arguments, call.args, strict=True):
            while buffer.role != "in" and name:
                names.add(name)
                name = alias.get(name, "")
    return names


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in name)[:100]


def dump(stages: Stages, folder: Path) -> list[Path]:
    """Write the text of every stage into a folder, next to its constants, and return the files.

    The prepacking program goes into the subfolder ``weights``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    if stages.prepacking is not None:
        files += dump(stages.prepacking, folder / "weights")
    for stage in stages.names:
        if not stages.has_graph and stage in _ABOVE_PROGRAMS:
            continue
        suffix = SUFFIXES[stage]
        path = folder / f"{stage}.{suffix}"
        path.write_text(stages.text(stage), encoding="utf-8")
        files.append(path)
        value = getattr(stages, stage)
        data = {}
        if stage in _ABOVE_PROGRAMS:
            data = text.collect_data(value.graph if stage == "fused" else value)
        elif isinstance(value, Program):
            data = collect_data(value)
        if data:
            np.savez(path.with_suffix(".npz"), **data)  # type: ignore[arg-type]
            files.append(path.with_suffix(".npz"))
    return files
