"""``build_library``: a model to the files of a C library, without a toolchain."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError, CompileError
from graphc.base.sizes.size import is_size
from graphc.c_library.c_demo import c_demo
from graphc.c_library.c_header import c_header
from graphc.c_library.entries import Built, Choices, build
from graphc.c_library.functions import declared_data, emit_functions
from graphc.c_library.identifiers import identifier
from graphc.c_library.plan import BESIDE, INSIDE, MACHINE, EntryPlan, LibraryPlan
from graphc.c_library.python_loader import python_loader
from graphc.c_library.sections import WEIGHTS_MAGIC, data_of, emit_data, fill, header, weights_section
from graphc.c_library.sources import changing, sources_of
from graphc.calls.machine import strict_name
from graphc.codegen.link.archive import write_archive
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.reader import read_object
from graphc.codegen.link.relocatable import merge_objects
from graphc.codegen.link.shared import link_shared
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.module import Module, joined
from graphc.codegen.llvm.thread_pool import emit_pool
from graphc.codegen.machine.cuda.facts import is_gpu
from graphc.codegen.machine.target import Target, target_named, without_tiles
from graphc.compiler.linking import builtins_for
from graphc.compiler.realtime import RealtimeReport, prove_modules
from graphc.files.container import replacing
from graphc.files.model_content import Artifact
from graphc.files.object_archive import split_objects
from graphc.models.model_export import content_of, wanted_entries
from graphc.models.model_read import read_model
from graphc.passes.base import Pass
from graphc.passes.pipeline import Arranged, arrange
from graphc.passes.precision import check_precision

KINDS = ("so", "a", "o", "h", "c", "py")
"""What can be written: shared library, archive, object file, header, demo, loader. Each is a suffix."""
LARGEST_INSIDE = 1 << 30
"""Bytes of weights that a library may hold: code reaches two gigabytes from where it is."""


@dataclass(frozen=True)
class EntryFacts:
    """What a caller has to know of an entry."""

    function: str
    """Its name in C."""
    arena: int | str
    """Bytes of the arena of a call; the formula where it depends on named dimensions."""
    nanoseconds: int
    """Expected time of a call on one core, roughly."""


@dataclass(frozen=True)
class Library:
    """What has been built."""

    name: str
    """What the names of its functions begin with."""
    files: Mapping[str, Path]
    """By kind; ``weights`` where they lie in a file of their own."""
    entries: Mapping[str, EntryFacts]
    context_bytes: int
    code_bytes: int
    """Bytes of machine code."""
    weight_bytes: int
    digest: str
    realtime: Mapping[str, RealtimeReport] = field(default_factory=dict)
    """What was proven of each entry, if that was asked for."""


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
    realtime: bool = False,
    precision: str | None = None,
    passes: Sequence[Pass] | Arranged = (),
    dims: Any = None,
    **keyword_examples: Any,
) -> Library:
    """Compiles a module or function, traced on examples as ``export`` does, entries by name (``gc.Entry``), or a model
    file, to a C library.

    ``path`` names one of the files, ``emit`` what is written under that name with other suffixes: ``so`` (a shared
    library that needs libc alone), ``a``, ``o``, ``h`` (the header), ``c`` (a program that calls and measures it) and
    ``py`` (``net_loader.py``, which needs numpy alone); the kind that ``path`` ends in and the header where nothing is
    said. Functions begin with ``name``, by default the name of the file. ``entries`` are those of a file with several.
    ``weights`` lie ``"inside"``, or ``"beside"`` in a file that the caller maps. One thread runs a call unless
    ``threads``: then a pool of worker threads is part of the library, and ``NAME_set_threads`` says how many share a
    call. ``target``, ``precision``, ``strict_order``, ``passes`` and ``dims`` are those of ``export``. ``realtime``
    proves of each entry that it reaches no allocation, lock or system call, and tells what it takes.

    Raises what ``export`` raises; RealtimeError where the proof fails; CompileError where the model calls Python
    functions, where there is no one program for all sizes of its dimensions, and for GPUs; ArgumentError for names that
    C cannot have; OSError.
    """
    place = Path(path)
    kinds = _kinds(place, emit)
    machine = _machine(strict_name(target) if strict_order else target)
    _check_choices(weights, threads, realtime, machine)
    check_precision(precision)
    prefix = _prefix(place, name)
    stored = _content(model, examples, keyword_examples, dims, passes, precision, machine)
    sources = sources_of(stored, entries)
    built = build(sources, changing(stored, sources), Choices(prefix, machine, target, weights, threads))
    if weights == INSIDE and built.weights.nbytes > LARGEST_INSIDE:
        raise CompileError(
            f"the weights take {built.weights.nbytes} bytes, a library holds at most {LARGEST_INSIDE}",
            remedy=f"weights={BESIDE!r}",
        )
    return _write(built, machine, place, kinds, realtime)


def _kinds(place: Path, emit: Sequence[str] | None) -> tuple[str, ...]:
    suffix = place.suffix[1:]
    if isinstance(emit, str):
        emit = emit.split(",")
    found = tuple(emit) if emit is not None else tuple(dict.fromkeys((suffix or "so", "h")))
    unknown = [kind for kind in found if kind not in KINDS]
    if unknown or not found:
        raise ArgumentError(
            f"a library has no file of the kind {unknown[0]!r}" if unknown else "nothing is to be written",
            remedy=f"of {', '.join(KINDS)}",
        )
    return found


def _machine(target: str) -> Target:
    machine = target_named(target)
    if is_gpu(machine):
        raise CompileError(f"a C library has no code for {machine.cpu}", remedy="target='host', or another CPU")
    if "linux" not in machine.triple:
        raise CompileError(f"libraries are made for Linux, not for {machine.triple}")
    return without_tiles(machine)


def _check_choices(weights: str, threads: bool, realtime: bool, machine: Target) -> None:
    if threads and realtime:
        raise ArgumentError("threads wait for each other, which realtime=True excludes", remedy="threads=False")
    if weights not in (INSIDE, BESIDE):
        raise ArgumentError(f"weights lie {INSIDE!r} or {BESIDE!r}, not {weights!r}")
    if threads and not machine.has_pool:
        raise CompileError(f"there is no thread pool for {machine.triple}", remedy="threads=False")


def _prefix(place: Path, name: str | None) -> str:
    if name is None:
        return identifier(place.stem.removeprefix("lib"))
    if name != identifier(name):
        raise ArgumentError(f"functions of C cannot begin with {name!r}", remedy=f"name={identifier(name)!r}")
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
    """What a model file holds, or would hold of a model."""
    if not isinstance(model, str | os.PathLike):
        arranged = passes if isinstance(passes, Arranged) else arrange(passes)
        return content_of(wanted_entries(model, examples, named, dims), None, arranged, precision, machine.costs)
    if examples or named or dims is not None or passes not in ((), Arranged()) or precision is not None:
        raise ArgumentError(f"{os.fspath(model)} holds a graph with its types and weights", remedy="no examples")
    return read_model(model)


def _write(built: Built, machine: Target, place: Path, kinds: Sequence[str], realtime: bool) -> Library:
    plan = built.plan
    files = {kind: _file(place, kind) for kind in kinds}
    weights = place.with_suffix(".weights")
    code = joined([emit_functions(plan), declared_data(plan), *built.modules])
    reports = {entry.name: _proof(plan, entry, code, machine) for entry in plan.entries if realtime}
    library = place.with_suffix(".so").name
    texts = {
        "h": lambda: c_header(plan),
        "c": lambda: c_demo(plan, place.stem, place.with_suffix(".h").name, library, weights.name),
        "py": lambda: python_loader(plan, library, weights.name),
    }
    contents = {kind: texts[kind]().encode() for kind in kinds if kind in texts}
    objects = _objects(built, code, machine)
    contents |= _linked(objects, plan, machine, library, kinds)
    for kind, content in contents.items():
        with replacing(files[kind]) as file:
            file.write(content)
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
        sum(map(_code_bytes, objects)),
        plan.weight_bytes,
        plan.digest.hex(),
        reports,
    )


def _file(place: Path, kind: str) -> Path:
    """Where a kind is written. Python would take ``net.so`` for the module that ``net.py`` shall be."""
    if kind == "py" and place.suffix != ".py":
        return place.with_name(f"{place.stem}_loader.py")
    return place.with_suffix(f".{kind}")


def _proof(plan: LibraryPlan, entry: EntryPlan, code: Module, machine: Target) -> RealtimeReport:
    function, arena = plan.symbol(entry.name), None if is_size(entry.arena) else int(entry.arena)
    data = [datum.symbol for datum in data_of(plan)]
    return prove_modules([code], machine, function, name=function, arena=arena, data=data)


def _facts(plan: LibraryPlan, entry: EntryPlan) -> EntryFacts:
    arena = str(entry.arena) if is_size(entry.arena) else int(entry.arena)
    return EntryFacts(plan.symbol(entry.name), arena, entry.manifest.nanoseconds)


def _objects(built: Built, code: Module, machine: Target) -> list[bytes]:
    """All object code of a library."""
    plan = built.plan
    data = build_object(emit_data(plan) + machine.detection(plan.inner(MACHINE)), machine)
    if not plan.is_beside:
        data = fill(data, weights_section(plan), built.weights)
    pool = [build_object(emit_pool(machine, plan.inner("")), machine)] if plan.threads else []
    return [*split_objects(build_object(code, machine)), data, *pool]


def _linked(
    objects: Sequence[bytes], plan: LibraryPlan, machine: Target, library: str, kinds: Sequence[str]
) -> dict[str, bytes]:
    """What is made of the object code of a library, by kind."""
    found, supply = {}, builtins_for(machine)
    if "so" in kinds:
        found["so"] = link_shared(objects, plan.exports, soname=library, supply=supply)
    if "o" in kinds or "a" in kinds:
        whole = merge_objects(objects, {name: name for name in plan.exports}, supply=supply)
        found |= {"o": whole, "a": write_archive({f"{plan.name}.o": whole})}
    return {kind: found[kind] for kind in kinds if kind in found}


def _code_bytes(code: bytes) -> int:
    return sum(s.nbytes for s in read_object(code).sections if s.flags & SectionFlag.EXECUTE)
