"""``build_library``: compile a model to the files of a C library, without a toolchain."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, CompileError
from graphc.base.host_parts import check_numeric
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.c_library.c_demo import c_demo
from graphc.c_library.c_header import c_header
from graphc.c_library.cpp_header import cpp_header
from graphc.c_library.entries import Built, Choices, build
from graphc.c_library.functions import declared_data, emit_functions
from graphc.c_library.go_package import go_package
from graphc.c_library.html_demo import html_demo
from graphc.c_library.identifiers import identifier
from graphc.c_library.js_loader import js_loader, js_types
from graphc.c_library.plan import BESIDE, INSIDE, MACHINE, EntryPlan, LibraryPlan
from graphc.c_library.python_loader import python_loader
from graphc.c_library.rust_crate import rust_crate
from graphc.c_library.sections import WEIGHTS_MAGIC, data_of, emit_data, header, weights_section
from graphc.c_library.sources import LibrarySource, changing, sources_of
from graphc.c_library.system import Linking, System
from graphc.c_library.systems import check_kinds, system_of
from graphc.c_library.wasm import WASM_KINDS
from graphc.calls.machine import machine_variant
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.module import LlvmModule, joined
from graphc.codegen.llvm.thread_pool import emit_pool
from graphc.codegen.machine.cuda.facts import is_gpu
from graphc.codegen.machine.target import Target, target_named, without_tiles
from graphc.compiler.realtime import RealtimeReport, prove_modules
from graphc.files import model_content
from graphc.files.container import replacing
from graphc.files.model_content import Artifact
from graphc.files.object_archive import split_objects
from graphc.models.formats import read_text_parts
from graphc.models.model_export import ContentOptions, content_of, wanted_entries
from graphc.passes.base import Pass
from graphc.passes.pipeline import Arranged, arrange
from graphc.passes.precision import check_precision

FOLDERS = {"rs": rust_crate, "go": go_package}
"""Kinds that are folders, named ``STEM-KIND``: the function that returns their texts by path. Each has an archive."""
LARGEST_INSIDE = 1 << 30
"""Largest size in bytes of weights inside a library: code addresses data within two gigabytes of itself."""


@dataclass(frozen=True)
class EntryFacts:
    """Properties of an entry for its callers."""

    function: str
    """Name of its C function."""
    arena: int | str
    """Bytes of the arena of a call; a formula if it depends on named dimensions."""
    nanoseconds: int
    """Estimated time of a call on one core."""


@dataclass(frozen=True)
class Library:
    """Result of ``build_library``: files, entries and sizes."""

    name: str
    """Prefix of its function names."""
    files: Mapping[str, Path]
    """Written files by kind; ``weights`` is present if they are in a separate file."""
    entries: Mapping[str, EntryFacts]
    context_bytes: int
    code_bytes: int
    """Bytes of machine code."""
    weight_bytes: int
    digest: str
    realtime: Mapping[str, RealtimeReport] = field(default_factory=dict)
    """Proof of each entry with ``realtime=True``; empty otherwise."""


def build_library(
    model: Any,
    *examples: Any,
    path: str | os.PathLike[str],
    emit: Sequence[str] | None = None,
    target: str = "host",
    name: str | None = None,
    entries: Sequence[str] | None = None,
    weights: str = INSIDE,
    threads: bool = False,
    strict_order: bool = False,
    flush_denormals: bool = False,
    realtime: bool = False,
    precision: str | None = None,
    passes: Sequence[Pass] | Arranged = (),
    dims: Any = None,
    **keyword_examples: Any,
) -> Library:
    """Compile a model to a C library.

    Args:
        model: a module or function, entries by name (``gc.Entry``), or the path of a model file.
        examples, keyword_examples: example arguments to trace ``model`` on, as for ``export``.
        path: one of the files to write; its stem names the others.
        emit: kinds of files: ``so`` (threads need libc), ``a``, ``o``, ``h``, ``c`` (a demo), ``py`` (a loader), for
            other languages ``hpp``, ``rs``, ``go``, ``fmu`` (FMI 3.0); Windows: ``dll``, ``lib``; macOS: ``dylib``;
            WebAssembly: ``wasm,js,d.ts,html`` (default), ``relaxed,scalar,wasi``. Default: that of ``path``, and ``h``.
        name: prefix of the functions (default: the name of the file).
        entries: names of the entries of a model file to include (default: all).
        weights: ``"inside"`` the library, or ``"beside"`` it in a file that the caller passes or the loader reads.
        threads: include a pool of worker threads; ``NAME_set_threads`` chooses how many share a call.
        realtime: prove the absence of allocations, locks and system calls for each entry, and report its costs.
        target: a target, or several of one architecture, of which ``init`` takes the first that fits: ``avx2,sse2``.
        strict_order, flush_denormals, precision, passes, dims: as for ``compile`` and ``export``.

    Returns:
        The Library: its files, entries and sizes.

    Raises:
        RealtimeError: a proof fails.
        CompileError: the model calls Python functions, no single program serves all sizes of its dimensions, or the
            target is a GPU; and the errors of ``export``.
        ArgumentError, OSError: a name that C cannot have; a file cannot be written.

    Example:
        >>> import graphc as gc
        >>> library = gc.build_library(gc.nn.ReLU(), gc.zeros(3), path="relu.o", emit=("o", "h"))
        >>> [str(path) for path in library.files.values()]
        ['relu.o', 'relu.h']
    """
    library_path = Path(path)
    machines = _machines(target, strict_order, flush_denormals)
    system = system_of(machines[0])
    kinds = _kinds(library_path, emit, system, weights)
    system.check(machines[0], weights, threads, realtime)
    prefix = _prefix(library_path, name)
    stored = _without_texts(_content(model, examples, keyword_examples, dims, passes, precision, machines[0]))
    sources = sources_of(stored, entries)
    built = _built(stored, sources, Choices(prefix, machines, target, weights, threads), system, kinds)
    return _write(*built, system, library_path, kinds, realtime)


def _built(
    stored: Artifact, sources: Sequence[LibrarySource], choices: Choices, system: System, kinds: Sequence[str]
) -> tuple[Built, dict[str, Built]]:
    """Compile a library, and its variants among ``kinds``, which read the same weights."""
    changed = changing(stored, sources)
    built = _checked(build(sources, changed, choices))
    variants = dict[str, Built]()
    for kind in kinds:
        if kind in system.variants:
            name = system.variants[kind]
            first = choices.targets[0]
            targets = _machines(name, first.costs.strict_order, first.flushes)
            variants[kind] = build(sources, changed, replace(choices, targets=targets, target_name=name))
            assert np.array_equal(variants[kind].weights, built.weights), "variants share weights"
    return built, variants


def _checked(built: Built) -> Built:
    """Raise CompileError for weights inside a library that are too large for it; else return the argument."""
    weight_bytes = 0 if built.plan.is_beside else built.weights.nbytes
    if weight_bytes > LARGEST_INSIDE:
        raise CompileError(
            f"build_library: the weights take {weight_bytes} bytes, a library holds at most {LARGEST_INSIDE}",
            remedy=f"pass weights={BESIDE!r}",
        )
    return built


def _kinds(path: Path, emit: Sequence[str] | None, system: System, weights: str) -> tuple[str, ...]:
    suffix = path.suffix[1:]
    if isinstance(emit, str):
        emit = emit.split(",")
    default = WASM_KINDS if suffix in WASM_KINDS else tuple(dict.fromkeys((suffix or "so", "h")))
    kinds = tuple(emit) if emit is not None else default
    check_kinds(kinds, system)
    system.check_weights(kinds, weights)
    return kinds


def _machines(names: str, strict_order: bool, flush_denormals: bool) -> tuple[Target, ...]:
    """Return the targets of a list of names, best first: of one architecture and system."""
    variants = [machine_variant(name, strict_order, flush_denormals) for name in names.split(",")]
    machines = tuple(map(_machine, variants))
    if len({machine.triple for machine in machines}) > 1:
        raise ArgumentError(f"no library serves the different machines {names}", remedy="build a library for each")
    if any(not machine.detection(MACHINE) for machine in machines[:-1]):
        raise ArgumentError(
            f"of the targets {names}, one before the last cannot be detected when a program runs",
            remedy="list the best processor first, as in avx512,avx2,sse2",
        )
    return machines


def _machine(target: str) -> Target:
    machine = target_named(target)
    if is_gpu(machine):
        raise CompileError(
            f"a C library cannot contain code for {machine.cpu}", remedy="pass target='host', or another CPU"
        )
    return without_tiles(machine)


def _prefix(path: Path, name: str | None) -> str:
    if name is None:
        return identifier(path.stem.removeprefix("lib"))
    if name != identifier(name):
        raise ArgumentError(f"C functions cannot have the prefix {name!r}", remedy=f"pass name={identifier(name)!r}")
    return name


def _content(
    model: Any,
    examples: Sequence[Any],
    named: Mapping[str, Any],
    dims: Any,
    passes: Sequence[Pass] | Arranged,
    precision: str | None,
    machine: Target,
) -> Artifact:
    """Read a model file, or trace a model and return the contents of its model file."""
    check_precision(precision)
    if not isinstance(model, str | os.PathLike):
        arranged = passes if isinstance(passes, Arranged) else arrange(passes)
        options = ContentOptions(machine.costs, arranged, precision)
        return content_of(wanted_entries(model, examples, named, dims), None, options)
    if examples or named or dims is not None or passes not in ((), Arranged()) or precision is not None:
        raise ArgumentError(
            f"{os.fspath(model)} holds a graph with its types and weights",
            remedy="leave out examples, dims, passes and precision",
        )
    return model_content.load(model)


def _without_texts(stored: Artifact) -> Artifact:
    """Return the content of a model file. Raise ArgumentError for an entry that takes or returns texts."""
    for spec in stored.manifest.public:
        check_numeric(read_text_parts(spec.texts) if spec.texts else None, "a C library")
    return stored


def _write(
    built: Built, variants: Mapping[str, Built], system: System, path: Path, kinds: tuple[str, ...], realtime: bool
) -> Library:
    plan, main = built.plan, system.library[1:]
    files = {kind: _file(path, f"{kind}.{main}" if kind in system.named_kinds else kind) for kind in kinds}
    weights = path.with_suffix(".weights")
    code = _code(built)
    reports = {entry.name: _proof(plan, entry, code, built.least) for entry in plan.entries if realtime}
    library = path.with_suffix(system.library).name
    modules = {library: plan, **{files[kind].name: variant.plan for kind, variant in variants.items()}}
    texts = {
        "h": lambda: c_header(plan, reports),
        "c": lambda: c_demo(plan, path.stem, path.with_suffix(".h").name, library, weights.name),
        "py": lambda: python_loader(plan, library, weights.name),
        "hpp": lambda: cpp_header(plan, path.with_suffix(".hpp").name),
        "js": lambda: js_loader(plan, modules, weights.name),
        "d.ts": lambda: js_types(plan),
        "html": lambda: html_demo(plan, path.with_suffix(".js").name),
    }
    contents = {kind: texts[kind]().encode() for kind in kinds if kind in texts}
    objects = _objects(built, code, system)
    contents |= system.link(Linking(objects, plan, built.weights, built.least, library, kinds))
    for kind, variant in variants.items():
        others = _objects(variant, _code(variant), system)
        linking = Linking(others, variant.plan, variant.weights, variant.least, library, (main,))
        contents[kind] = system.link(linking)[main]
    for kind in kinds:
        if kind in FOLDERS:
            _write_folder(files[kind], FOLDERS[kind](plan), f"lib{plan.name}.a", contents["a"])
        else:
            with replacing(files[kind]) as file:
                file.write(contents[kind])
    if plan.is_beside:
        files["weights"] = weights
        with replacing(weights) as file:
            file.write(header(WEIGHTS_MAGIC, plan.weight_bytes, plan.weight_digest))
            file.write(built.weights.tobytes())
    return Library(
        plan.name,
        files,
        {e.name: _facts(plan, e) for e in plan.entries},
        plan.context_bytes,
        sum(map(system.code_bytes, objects)),
        plan.weight_bytes,
        plan.digest.hex(),
        reports,
    )


def _file(path: Path, kind: str) -> Path:
    """Return the path of a kind of file. A loader ``net.py`` is avoided, since Python would import ``net.so``
    instead."""
    if kind == "py" and path.suffix != ".py":
        return path.with_name(f"{path.stem}_loader.py")
    return path.with_name(f"{path.stem}-{kind}") if kind in FOLDERS else path.with_suffix(f".{kind}")


def _write_folder(folder: Path, texts: Mapping[str, str], archive: str, content: bytes) -> None:
    """Write the texts of a folder by path, and an archive."""
    for name, data in {**{name: text.encode() for name, text in texts.items()}, archive: content}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with replacing(folder / name) as file:
            file.write(data)


def _proof(plan: LibraryPlan, entry: EntryPlan, code: LlvmModule, machine: Target) -> RealtimeReport:
    function, arena = plan.symbol(entry.name), None if is_size(entry.arena) else int(entry.arena)
    data = [datum.symbol for datum in data_of(plan)]
    return prove_modules([code], machine, function, name=function, arena=arena, data=data)


def _facts(plan: LibraryPlan, entry: EntryPlan) -> EntryFacts:
    arena = str(entry.arena) if is_size(entry.arena) else int(entry.arena)
    return EntryFacts(plan.symbol(entry.name), arena, entry.programs[0].manifest.nanoseconds)


def _code(built: Built) -> LlvmModule:
    """Return the functions of a library and of its programs."""
    return joined([emit_functions(built.plan), declared_data(built.plan), *built.modules])


def _objects(built: Built, code: LlvmModule, system: System) -> tuple[bytes, ...]:
    """Compile all object files of a library."""
    plan, machine = built.plan, built.least
    detections = [target.detection(plan.detection(number)) for number, target in enumerate(built.targets)]
    data = build_object("".join([emit_data(plan, system.fill is not None), *detections]), machine)
    if system.fill is not None and not plan.is_beside:
        data = system.fill(data, weights_section(plan), built.weights)
    pool = [build_object(emit_pool(machine, plan.inner("")), machine)] if plan.threads else []
    return (*split_objects(build_object(code, machine)), data, *pool)
