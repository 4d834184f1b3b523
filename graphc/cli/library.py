"""What ``graphc compile --emit so,h,...`` does: a model, or a model file, to a C library."""

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

KINDS = ("so", "a", "o", "h", "c", "py")
"""Suffixes that ask for a library."""
build_library = deferred("graphc.c_library.build:build_library")
Prepared = tuple[Any, list[Any], Any, Arranged]
"""A model, examples, their named dimensions, and passes of a user."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that only libraries have."""
    group = parser.add_argument_group("C libraries (-o net.so)")
    group.add_argument(
        "--emit", metavar="KINDS", help=f"which files to write, of {','.join(KINDS)} (default: that of -o, and h)"
    )
    group.add_argument(
        "--entry", action="append", metavar="NAME", help="an entry of a model file; once per entry (default: all)"
    )
    group.add_argument("--name", metavar="NAME", help="what functions begin with (default: the name of the file)")
    group.add_argument("--weights-beside", action="store_true", help="weights in a file of their own, net.weights")
    group.add_argument("--threads", action="store_true", help="with a pool of threads, which share long calls")
    group.add_argument(
        "--realtime",
        action="store_true",
        help="prove that no call reaches an allocation, lock or system call; exit code 6 where that fails",
    )


def is_wanted(options: argparse.Namespace) -> bool:
    """Whether the arguments ask for a library. Raises UsageError for those that only other files or only libraries
    have."""
    wanted = options.emit is not None or Path(options.output).suffix[1:] in KINDS
    own = ("emit", "entry", "name", "weights_beside", "threads", "realtime")
    wrong = next(
        (name for name in (("native", "device", "opset", "golden") if wanted else own) if getattr(options, name)), None
    )
    if wrong is not None:
        argument = f"--{wrong.replace('_', '-')}"
        what = "is for no C library" if wanted else "is for C libraries"
        raise console.UsageError(f"{argument} {what}, and {options.output} is {'one' if wanted else 'none'}")
    if wanted and "," in options.machine:
        raise console.UsageError("a C library is for one machine", remedy="--target avx2, and another file each")
    unknown = [kind for kind in (options.emit or "so").split(",") if kind not in KINDS]
    if unknown:
        raise console.UsageError(f"--emit: there is no file of the kind {unknown[0]!r}", remedy=f"of {','.join(KINDS)}")
    return wanted


def write(options: argparse.Namespace, prepare: Callable[[], Prepared]) -> int:
    """Writes the files and says what they are; ``prepare`` gives what stands in the place of a model file."""
    given: dict[str, Any] = {
        "path": options.output,
        "emit": options.emit.split(",") if options.emit else None,
        "target": options.machine,
        "name": options.name,
        "entries": options.entry,
        "weights": "beside" if options.weights_beside else "inside",
        "threads": options.threads,
        "strict_order": options.strict_order,
        "realtime": options.realtime,
    }
    model, examples = options.target, []
    if not Path(options.target).is_file() or not is_container(options.target):
        model, examples, dims, passes = prepare()
        given |= {"dims": dims, "passes": passes, "precision": options.precision}
    else:
        _check_types(options)
    with targets.compiling():
        found = targets.guarded(lambda: build_library(model, *examples, **given), f"tracing {options.target}")
    _tell(options, found)
    return console.OK


def _check_types(options: argparse.Namespace) -> None:
    for name in ("input", "weights", "train", "passes", "precision"):
        if getattr(options, name):
            raise console.UsageError(f"--{name} is for models, and {options.target} holds a graph with its weights")


def _tell(options: argparse.Namespace, found: Any) -> None:
    sizes = {kind: path.stat().st_size for kind, path in found.files.items()}
    if options.json:
        entries = {
            name: {"function": e.function, "arena": e.arena, "nanoseconds": e.nanoseconds}
            for name, e in found.entries.items()
        }
        files = {kind: {"path": str(path), "bytes": sizes[kind]} for kind, path in found.files.items()}
        facts: dict[str, Any] = {
            "context": found.context_bytes,
            "code": found.code_bytes,
            "weights": found.weight_bytes,
        }
        proofs = {name: json.loads(report.to_json()) for name, report in found.realtime.items()}
        facts |= {"digest": found.digest, "realtime": proofs}
        console.emit_json({"name": found.name, "files": files, "entries": entries, **facts})
        return
    for kind, path in found.files.items():
        console.emit(f"{path}: {console.bytes_text(sizes[kind])}")
    for entry in found.entries.values():
        arena = entry.arena if isinstance(entry.arena, str) else console.bytes_text(entry.arena)
        console.emit(f"{entry.function}: arena {arena}")
    for report in found.realtime.values():
        console.emit(str(report))
    parts = {"code": found.code_bytes, "weights": found.weight_bytes, "context": found.context_bytes}
    console.say(", ".join(f"{name} {console.bytes_text(size)}" for name, size in parts.items()))
