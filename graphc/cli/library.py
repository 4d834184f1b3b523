"""``graphc compile --emit so,h,...``: compile a model, or a model file, to a C library."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphc.base.lazy import deferred
from graphc.cli import console, targets
from graphc.files.container import is_container
from graphc.passes.pipeline import Arranged

WASM_KINDS = ("wasm", "js", "d.ts", "html")
"""Kinds of files that ``-o net.wasm`` writes."""
_TARGETS = {
    **dict.fromkeys((*WASM_KINDS, "relaxed", "scalar", "wasi"), "wasm"),
    **dict.fromkeys(("dll", "lib"), "windows-avx2"),
    "dylib": "macos-neon",
}
"""A target for each kind of file that needs one of its system."""
KINDS = ("so", "a", "o", "h", "c", "py", "hpp", "rs", "go", "fmu", *_TARGETS)
"""Suffixes of ``-o`` and names for ``--emit`` that mean a C library."""
build_library = deferred("graphc.c_library.build:build_library")
Prepared = tuple[Any, list[Any], Any, Arranged]
"""A model, examples, their named dimensions, and the user's passes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that only apply to libraries."""
    group = parser.add_argument_group("C libraries (-o net.so)")
    group.add_argument(
        "--emit",
        metavar="KINDS",
        help=f"files to write: some of {','.join(KINDS)} (default: the kind of -o, and h; for net.wasm "
        f"{','.join(WASM_KINDS)}); hpp is a C++ header, rs a Rust crate, go a Go package, fmu an FMI 3.0 co-simulation "
        "unit; those of WebAssembly need --target wasm: relaxed and scalar are modules for other engines, wasi is a "
        "command; dll, and lib, its import library, need --target windows-avx2; dylib needs --target macos-neon",
    )
    group.add_argument(
        "--entry",
        action="append",
        metavar="NAME",
        help="entry of a model file to include; once for each entry (default: all)",
    )
    group.add_argument("--name", metavar="NAME", help="prefix of function names (default: the name of the file)")
    group.add_argument(
        "--weights-beside", action="store_true", help="write the weights to a separate file, net.weights"
    )
    group.add_argument(
        "--flush-denormals", action="store_true", help="take denormal numbers for zeros, as filters reach in silence"
    )
    group.add_argument("--threads", action="store_true", help="include a thread pool, which splits long calls")
    group.add_argument(
        "--realtime",
        action="store_true",
        help="prove that no call allocates memory, takes a lock or makes a system call; exit code 6 if the proof fails",
    )


def is_requested(options: argparse.Namespace) -> bool:
    """Check whether the arguments ask for a library.

    Raises UsageError if an option does not fit the kind of output.
    """
    library = options.emit is not None or Path(options.output).suffix[1:] in KINDS
    own = ("emit", "entry", "name", "weights_beside", "flush_denormals", "threads", "realtime")
    option = next(
        (name for name in (("native", "device", "opset", "golden") if library else own) if getattr(options, name)), None
    )
    if option is not None:
        argument = f"--{option.replace('_', '-')}"
        rule = "does not apply to C libraries" if library else "applies only to C libraries"
        raise console.UsageError(f"{argument} {rule}, and {options.output} is {'one' if library else 'not one'}")
    unknown = [kind for kind in (options.emit or "so").split(",") if kind not in KINDS]
    if unknown:
        raise console.UsageError(
            f"--emit: unknown kind of file {unknown[0]!r}", remedy=f"choose from {','.join(KINDS)}"
        )
    kinds = (options.emit or Path(options.output).suffix[1:]).split(",")
    system: str = options.machine.partition(":")[0].partition("-")[0]
    for kind in kinds if library else ():
        if _TARGETS.get(kind, system).partition("-")[0] != system:
            fault = f"a file of kind {kind} is not for {options.machine}"
            raise console.UsageError(fault, remedy=f"pass --target {_TARGETS[kind]}")
    return library


def write(options: argparse.Namespace, prepare: Callable[[], Prepared]) -> int:
    """Write the files and report them; ``prepare`` returns the model if the target is not a model file."""
    settings: dict[str, Any] = {
        "path": options.output,
        "emit": options.emit.split(",") if options.emit else None,
        "target": options.machine,
        "name": options.name,
        "entries": options.entry,
        "weights": "beside" if options.weights_beside else "inside",
        "threads": options.threads,
        "strict_order": options.strict_order,
        "flush_denormals": options.flush_denormals,
        "realtime": options.realtime,
    }
    model, examples = options.target, []
    if not Path(options.target).is_file() or not is_container(options.target):
        model, examples, dims, passes = prepare()
        settings |= {"dims": dims, "passes": passes, "precision": options.precision}
    else:
        _check_types(options)
    with targets.compiling():
        built = targets.guarded(lambda: build_library(model, *examples, **settings), f"tracing {options.target}")
    _report(options, built)
    return console.OK


def _check_types(options: argparse.Namespace) -> None:
    for name in ("input", "weights", "train", "passes", "precision"):
        if getattr(options, name):
            raise console.UsageError(
                f"--{name} applies only to Python models, and {options.target} holds a graph with its weights"
            )


def _report(options: argparse.Namespace, built: Any) -> None:
    sizes = {kind: _bytes_of(path) for kind, path in built.files.items()}
    if options.json:
        entries = {
            name: {"function": e.function, "arena": e.arena, "nanoseconds": e.nanoseconds}
            for name, e in built.entries.items()
        }
        files = {kind: {"path": str(path), "bytes": sizes[kind]} for kind, path in built.files.items()}
        facts: dict[str, Any] = {
            "context": built.context_bytes,
            "code": built.code_bytes,
            "weights": built.weight_bytes,
        }
        proofs = {name: json.loads(report.to_json()) for name, report in built.realtime.items()}
        facts |= {"digest": built.digest, "realtime": proofs}
        console.emit_json({"name": built.name, "files": files, "entries": entries, **facts})
        return
    for kind, path in built.files.items():
        console.emit(f"{path}: {console.bytes_text(sizes[kind])}")
    for entry in built.entries.values():
        arena = entry.arena if isinstance(entry.arena, str) else console.bytes_text(entry.arena)
        console.emit(f"{entry.function}: arena {arena}")
    for report in built.realtime.values():
        console.emit(str(report))
    section_sizes = {"code": built.code_bytes, "weights": built.weight_bytes, "context": built.context_bytes}
    console.say(", ".join(f"{name} {console.bytes_text(size)}" for name, size in section_sizes.items()))


def _bytes_of(path: Path) -> int:
    """Return the size of a file, or of all files in a folder."""
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())
