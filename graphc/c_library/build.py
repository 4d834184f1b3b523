"""``build_library``: compile a model to the files of a C library, without a toolchain."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Any

from graphc.base.dtypes import BY_NAME, bfloat16
from graphc.base.errors import ArgumentError, CompileError
from graphc.base.host_parts import check_numeric
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.c_library.bare import bare_archive, check_bare_choices
from graphc.c_library.bindings import shape_equations
from graphc.c_library.c_demo import c_demo
from graphc.c_library.c_header import c_header
from graphc.c_library.cpp_header import cpp_header
from graphc.c_library.entries import Built, Choices, build
from graphc.c_library.fmu import FMI_EXPORTS, emit_fmu, fmu_archive, fmu_plan
from graphc.c_library.functions import declared_data, emit_functions
from graphc.c_library.go_package import go_package
from graphc.c_library.html_demo import html_demo
from graphc.c_library.identifiers import identifier
from graphc.c_library.js_loader import js_loader, js_types
from graphc.c_library.plan import BESIDE, CODES, HEADER_BYTES, INSIDE, MACHINE, EntryPlan, LibraryArgument, LibraryPlan
from graphc.c_library.rust_crate import rust_crate
from graphc.c_library.sections import WEIGHTS_MAGIC, data_of, emit_data, fill, header, weights_section
from graphc.c_library.sources import changing, sources_of
from graphc.c_library.wasm import WASM_KINDS, check_wasm_choices, wasm_code_bytes, wasm_module
from graphc.c_library.windows import WINDOWS_KINDS, check_windows_choices, windows_code_bytes, windows_files
from graphc.calls.machine import strict_name
from graphc.codegen.link.archive import write_archive
from graphc.codegen.link.coff_reader import fill_coff
from graphc.codegen.link.elf32 import is_elf32, read_contents
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.reader import read_object
from graphc.codegen.link.relocatable import merge_objects
from graphc.codegen.link.shared import link_shared
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.module import LlvmModule, joined
from graphc.codegen.llvm.thread_pool import emit_pool
from graphc.codegen.machine.cuda.facts import is_gpu
from graphc.codegen.machine.target import Target, target_named, without_tiles
from graphc.compiler.linking import builtins_for
from graphc.compiler.realtime import RealtimeReport, prove_modules
from graphc.files import model_content
from graphc.files.container import ALIGNMENT, replacing
from graphc.files.model_content import Artifact
from graphc.files.object_archive import split_objects
from graphc.models.formats import read_text_parts
from graphc.models.model_export import ContentOptions, content_of, wanted_entries
from graphc.passes.base import Pass
from graphc.passes.pipeline import Arranged, arrange
from graphc.passes.precision import check_precision

_TEXT = Template('''\
"""$name without graphc: its library through ctypes, with numpy alone. Written by graphc $version."""

import ctypes
import os
import threading

import numpy as np

ENTRIES = {}  # types of inputs and outputs, how sizes follow from the shapes of inputs, and the sizes that C takes
$entries


def aligned(size):
    return (memory := np.empty(size + $alignment, np.uint8))[-memory.ctypes.data % $alignment :][:size]


class Model:
    def __init__(self, folder=os.path.dirname(os.path.abspath(__file__))):
        self.c = ctypes.CDLL(f"{folder}/$library")
        self.c.${name}_digest.restype = self.c.${name}_error_text.restype = ctypes.c_char_p
        if self.c.${name}_digest() != b"$digest":
            raise RuntimeError("the library and this file are of different builds")
        self.context, self.arena, self.lock = aligned($context), aligned(0), threading.Lock()
$init
        for entry in ENTRIES:
            setattr(self, entry, lambda *arrays, entry=entry, **named: self.run_entry(entry, arrays, named))
            getattr(self.c, f"${name}_{entry}_arena_size").restype = ctypes.c_size_t

    def call(self, function, *arguments):
        given = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments]
        if code := getattr(self.c, f"${name}_{function}")(*given):
            kind = {$size_code: ValueError, $index_code: IndexError}.get(code, RuntimeError)
            raise kind(self.c.${name}_error_text(code).decode())

    def run_entry(self, entry, arrays, named):
        (inputs, outputs, rules, sizes), named = ENTRIES[entry], {**dict(zip(ENTRIES[entry][0], arrays)), **named}
        if len(arrays) > len(inputs) or not {*inputs} <= {*named} <= {*inputs, *rules}:
            raise TypeError(f"{entry} takes {', '.join([*inputs, *rules])}")
        given = {name: np.asarray(named.pop(name), order="C") for name in inputs}
        known = {"shapes": {name: (*array.shape, *[0] * $rank) for name, array in given.items()}}
        for name, rule in rules.items():
            named[name] = named[name] if name in named else eval(rule, known, named)
        for name, (kind, shape) in inputs.items():
            if given[name].dtype != kind or given[name].shape != eval(shape, {}, named):
                raise ValueError(f"{entry}: {name} is {kind} {shape}, not {given[name].dtype} {given[name].shape}")
        results = [np.empty(eval(shape, {}, named), kind) for kind, shape in outputs.values()]
        sizes = [ctypes.c_int64(named[name]) for name in sizes]
        need = getattr(self.c, f"${name}_{entry}_arena_size")(*sizes)
        with self.lock:  # states and arena are those of this object
            self.arena = aligned(need) if self.arena.size < need < 2**63 else self.arena
            arena = self.arena, ctypes.c_size_t(self.arena.size)
            self.call(entry, self.context, *sizes, *given.values(), *results, *arena)
        return results[0] if len(results) == 1 else tuple(results)

    def save_state(self):
        self.call("save_state", self.context, state := np.empty($state, np.uint8), ctypes.c_size_t($state))
        return state.tobytes()

    def load_state(self, state):
        self.call("load_state", self.context, np.frombuffer(state, np.uint8), ctypes.c_size_t(len(state)))
''')
_INSIDE = Template('self.call("init", self.context, ctypes.c_size_t($context))')
_BESIDE = Template("""\
self.weights = np.memmap(f"{folder}/$weights", np.uint8, "r")
        self.call("init", self.context, ctypes.c_size_t($context), self.weights, ctypes.c_size_t(self.weights.size))""")


def python_loader(plan: LibraryPlan, library: str, weights: str) -> str:
    """Return the file's text; ``library`` and ``weights`` are the names of files in the same folder."""
    init = (_BESIDE if plan.is_beside else _INSIDE).substitute(context=plan.context_bytes, weights=weights)
    return _TEXT.substitute(
        name=plan.name,
        version=plan.version,
        entries="\n".join(map(_entry, plan.entries)),
        alignment=ALIGNMENT,
        library=library,
        digest=plan.digest.hex(),
        context=plan.context_bytes,
        init=" " * 8 + init,
        size_code=CODES["ERROR_SIZE"],
        index_code=CODES["ERROR_INDEX"],
        rank=max((len(a.spec.shape) for e in plan.entries for a in e.inputs), default=0),
        state=HEADER_BYTES + plan.state_bytes,
    )


def _entry(entry: EntryPlan) -> str:
    types = [", ".join(f"{a.spec.name!r}: {_type(entry, a)}" for a in group) for group in (entry.inputs, entry.outputs)]
    rules = ", ".join(f"{name!r}: {rule!r}" for name, rule in _rules(entry).items())
    sizes = [*_dim_names(entry).values()]
    return f"ENTRIES[{entry.name!r}] = ({{{types[0]}}}, {{{types[1]}}}, {{{rules}}}, {sizes!r})"


def _type(entry: EntryPlan, argument: LibraryArgument) -> str:
    dtype = BY_NAME[argument.spec.dtype]
    name = "uint16" if dtype is bfloat16 else dtype.numpy.name  # numpy has no bf16, so arrays hold its bits
    return repr((name, f"({''.join(f'{_size(entry, size)}, ' for size in argument.spec.shape).rstrip()})"))


def _dim_names(entry: EntryPlan) -> dict[str, str]:
    """Return a Python variable for each dimension, by the dimension's text in sizes, where unusual names have quotes.

    A dimension keeps its name if expressions of the loader can use it.
    """
    variables = {}
    for dimension, name in zip(entry.dims, entry.dim_identifiers, strict=True):
        if str(dimension) != dimension.name:
            variables[str(dimension)] = name
        else:
            variables[dimension.name] = f"{name}_" if iskeyword(name) or name == "shapes" else dimension.name
    return variables


def _size(entry: EntryPlan, size: Any) -> str:
    """Format a size as an expression of Python."""
    names = _dim_names(entry)
    return re.sub(r"`[^`]*`|[^\W\d]\w*", lambda match: names.get(match[0], match[0]), str(size))


def _rules(entry: EntryPlan) -> dict[str, str]:
    """Return, for each dimension, a rule that computes it from ``shapes`` and those before it.

    The rule of a dimension that no shape determines is its own name: the caller must pass it by keyword.
    """
    names, rules = _dim_names(entry), {}
    for number, axis, dimension, factor, rest in shape_equations(entry):
        size = f"shapes[{entry.inputs[number].spec.name!r}][{axis}]"
        numerator = f"({size} - ({_size(entry, rest)}))" if str(rest) != "0" else size
        rules[names[str(dimension)]] = numerator if factor == 1 else f"{numerator} // {factor}"
    return {**{name: name for name in names.values() if name not in rules}, **rules}


KINDS = ("so", "a", "o", "h", "c", "py", "hpp", "rs", "go", "fmu", *WASM_KINDS, *WINDOWS_KINDS)
"""Kinds of files: libraries, object file, header, demo, loader, C++ header, Rust crate, Go package, FMI unit; and those
of WebAssembly and Windows."""
FOLDERS = {"rs": rust_crate, "go": go_package}
"""Kinds that are folders, named ``STEM-KIND``: the function that returns their texts by path. Each has an archive."""
_THREADS = ("libpthread.so.0", "libc.so.6")
"""Libraries with the functions of a thread pool. They are one from glibc 2.34 on, and musl takes either name for its
own."""
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
            other languages ``hpp``, ``rs``, ``go``, ``fmu`` (FMI 3.0); for Windows ``dll``, ``lib``; for WebAssembly
            ``wasm``, ``js``, ``d.ts``, ``html``. Default: that of ``path``, and ``h``; or all of the last four.
        name: prefix of the functions (default: the name of the file).
        entries: names of the entries of a model file to include (default: all).
        weights: ``"inside"`` the library, or ``"beside"`` it in a file mapped by the caller.
        threads: include a pool of worker threads; ``NAME_set_threads`` chooses how many share a call.
        realtime: prove the absence of allocations, locks and system calls for each entry, and report its costs.
        target, strict_order, precision, passes, dims: as for ``export``.

    Returns:
        The Library: its files, entries and sizes.

    Raises:
        RealtimeError: a proof fails.
        CompileError: the model calls Python functions, no single program serves all sizes of its dimensions, or the
            target is a GPU; and the errors of ``export``.
        ArgumentError: a name that C cannot have.
        OSError: a file cannot be written.

    Example:
        >>> import graphc as gc
        >>> library = gc.build_library(gc.nn.ReLU(), gc.zeros(3), path="relu.o", emit=("o", "h"))
        >>> [str(path) for path in library.files.values()]
        ['relu.o', 'relu.h']
    """
    library_path = Path(path)
    kinds = _kinds(library_path, emit)
    machine = _machine(strict_name(target) if strict_order else target)
    _check_choices(kinds, weights, threads, realtime, machine)
    check_precision(precision)
    prefix = _prefix(library_path, name)
    stored = _without_texts(_content(model, examples, keyword_examples, dims, passes, precision, machine))
    sources = sources_of(stored, entries)
    library_code = build(sources, changing(stored, sources), Choices(prefix, machine, target, weights, threads))
    _check_size(library_code)
    return _write(library_code, machine, library_path, kinds, realtime)


def _check_size(built: Built) -> None:
    """Raise CompileError for weights inside a library that are too large for it."""
    weight_bytes = 0 if built.plan.is_beside else built.weights.nbytes
    if weight_bytes > LARGEST_INSIDE:
        raise CompileError(
            f"build_library: the weights take {weight_bytes} bytes, a library holds at most {LARGEST_INSIDE}",
            remedy=f"pass weights={BESIDE!r}",
        )


def _kinds(path: Path, emit: Sequence[str] | None) -> tuple[str, ...]:
    suffix = path.suffix[1:]
    if isinstance(emit, str):
        emit = emit.split(",")
    default = WASM_KINDS if suffix in WASM_KINDS else tuple(dict.fromkeys((suffix or "so", "h")))
    kinds = tuple(emit) if emit is not None else default
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise ArgumentError(
            f"build_library: unknown kind of file {unknown[0]!r}" if unknown else "build_library: emit is empty",
            remedy=f"choose from {', '.join(KINDS)}",
        )
    return kinds


def _machine(target: str) -> Target:
    machine = target_named(target)
    if is_gpu(machine):
        raise CompileError(
            f"a C library cannot contain code for {machine.cpu}", remedy="pass target='host', or another CPU"
        )
    if not ("linux" in machine.triple or machine.is_wasm or machine.is_windows or machine.is_bare):
        raise CompileError(
            f"build_library supports Linux, Windows, WebAssembly and microcontrollers only, not {machine.triple}"
        )
    return without_tiles(machine)


def _check_choices(kinds: Sequence[str], weights: str, threads: bool, realtime: bool, machine: Target) -> None:
    check_wasm_choices(kinds, machine, weights, realtime)
    check_bare_choices(kinds, machine, weights, realtime)
    check_windows_choices(kinds, machine, realtime)
    if threads and realtime:
        raise ArgumentError("threads wait for each other, which realtime=True forbids", remedy="pass threads=False")
    if weights not in (INSIDE, BESIDE):
        raise ArgumentError(f"weights must be {INSIDE!r} or {BESIDE!r}, got {weights!r}")
    if threads and not machine.has_pool:
        raise CompileError(f"there is no thread pool for {machine.triple}", remedy="pass threads=False")


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


def _write(built: Built, machine: Target, path: Path, kinds: Sequence[str], realtime: bool) -> Library:
    plan = built.plan
    files = {kind: _file(path, kind) for kind in kinds}
    weights = path.with_suffix(".weights")
    code = joined([emit_functions(plan), declared_data(plan), *built.modules])
    reports = {entry.name: _proof(plan, entry, code, machine) for entry in plan.entries if realtime}
    library = path.with_suffix(".dll" if machine.is_windows else ".so").name
    texts = {
        "h": lambda: c_header(plan),
        "c": lambda: c_demo(plan, path.stem, path.with_suffix(".h").name, library, weights.name),
        "py": lambda: python_loader(plan, library, weights.name),
        "hpp": lambda: cpp_header(plan, path.with_suffix(".hpp").name),
        "js": lambda: js_loader(plan, path.with_suffix(".wasm").name),
        "d.ts": lambda: js_types(plan),
        "html": lambda: html_demo(plan, path.with_suffix(".js").name),
    }
    contents = {kind: texts[kind]().encode() for kind in kinds if kind in texts}
    objects = _objects(built, code, machine)
    contents |= _linked(objects, built, machine, library, kinds)
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
        sum(map(_code_bytes_of(machine), objects)),
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
    return EntryFacts(plan.symbol(entry.name), arena, entry.manifest.nanoseconds)


def _objects(built: Built, code: LlvmModule, machine: Target) -> list[bytes]:
    """Compile all object files of a library."""
    plan = built.plan
    data = build_object(emit_data(plan, not machine.is_wasm) + machine.detection(plan.inner(MACHINE)), machine)
    if not plan.is_beside and not machine.is_wasm:
        fill_section = fill_coff if machine.is_windows else fill
        data = fill_section(data, weights_section(plan), built.weights)
    pool = [build_object(emit_pool(machine, plan.inner("")), machine)] if plan.threads else []
    return [*split_objects(build_object(code, machine)), data, *pool]


def _linked(
    objects: Sequence[bytes], built: Built, machine: Target, library: str, kinds: Sequence[str]
) -> dict[str, bytes]:
    """Link the object code of a library to files by kind."""
    plan, contents = built.plan, {}
    supply = builtins_for(machine, needs_libc=plan.threads)
    if machine.is_windows:
        return windows_files(objects, plan, library, supply, kinds)
    if "wasm" in kinds:
        contents["wasm"] = wasm_module(objects, plan, built.weights, supply)
    if "so" in kinds:
        contents["so"] = link_shared(objects, plan.exports, soname=library, needed=_THREADS, supply=supply)
    if machine.is_bare:
        contents["a"] = bare_archive(plan.name, objects, builtins_for(machine))
    elif {"o", "a", *FOLDERS} & {*kinds}:
        merged = merge_objects(objects, {name: name for name in plan.exports}, supply=supply)
        contents |= {"o": merged, "a": write_archive({f"{plan.name}.o": merged})}
    if "fmu" in kinds:
        fmu = fmu_plan(plan)
        functions = build_object(emit_fmu(fmu), machine)
        exports, needed = (*plan.exports, *FMI_EXPORTS), _THREADS if plan.threads else _THREADS[1:]
        unit = link_shared([*objects, functions], exports, soname=f"{plan.name}.so", needed=needed, supply=supply)
        contents["fmu"] = fmu_archive(fmu, unit)
    return contents


def _code_bytes_of(machine: Target) -> Callable[[bytes], int]:
    """Return the function that counts the bytes of machine code in an object file of a target."""
    if machine.is_wasm:
        return wasm_code_bytes
    return windows_code_bytes if machine.is_windows else _code_bytes


def _code_bytes(code: bytes) -> int:
    if is_elf32(code):
        return read_contents(code).code_bytes
    return sum(s.nbytes for s in read_object(code).sections if s.flags & SectionFlag.EXECUTE)
