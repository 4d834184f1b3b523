"""``graphc targets``: list the machines that graphc compiles for, and where their code can run."""

from __future__ import annotations

import argparse
import os
import shutil
from dataclasses import replace
from typing import Any

from graphc.cli import console
from graphc.cli.fields import Field
from graphc.codegen.machine.target import Target, architecture, host_target, named_targets
from graphc.compiler.ready import target_spec
from graphc.runtime.loader import host, runs_here

EXAMPLES = ("graphc targets", "graphc targets --json")
JSON = (
    Field("targets[]", "object", "a target, this machine first"),
    Field("targets[].name", "string", "its name, for --target"),
    Field("targets[].triple", "string", "architecture and operating system, as LLVM writes them"),
    Field("targets[].cpu", "string", "processor whose instructions are scheduled"),
    Field("targets[].features[]", "string", "instruction set extensions that its code needs"),
    Field("targets[].vector", "integer", "size of a vector register; 0 for GPUs", "B"),
    Field("targets[].runs", "boolean", "whether its code runs on this machine"),
    Field("targets[].emulator", "string", "installed program that runs its code here; empty for none"),
    Field("targets[].reason", "string", "why its code does not run here; empty if it does"),
)
WINE = ("wine64", "/usr/lib/wine/wine64", "wine")
"""Names of Wine; Debian's package wine64 has no link to it in the search path."""
_SHOWN = 6
"""Extensions that the table shows of each target."""


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    rows = [described(name, target) for name, target in {"host": host_target(), **named_targets()}.items()]
    if options.json:
        console.emit_json({"targets": rows})
        return console.OK
    table = [["target", "processor", "vector", "needs", "code runs"]]
    for row in rows:
        vector = f"{row['vector']} B" if row["vector"] else "-"
        table.append([row["name"], row["cpu"], vector, _needs(row["features"]), _state(row)])
    console.emit(console.table(table))
    return console.OK


def described(name: str, target: Target) -> dict[str, Any]:
    """Return the fields of a target."""
    gpu, spec, here = target.gpu is not None, target_spec(target), host().triple
    if architecture(target) == here.partition("-")[0] and not (target.is_windows or target.is_macos):
        spec = replace(spec, triple=here)  # fixed triples name no vendor and C library
    reason = "it is for a GPU: pass --device cuda" if gpu else runs_here(spec)
    return {
        "name": name,
        "triple": target.triple,
        "cpu": target.cpu,
        "features": [feature.removeprefix("+") for feature in target.features.split(",") if feature.startswith("+")],
        "vector": 0 if gpu else target.vector_bytes,
        "runs": not reason,
        "emulator": "" if gpu or not reason else _emulator(target),
        "reason": reason,
    }


def _emulator(target: Target) -> str:
    """Return the installed program that runs code of a target; empty for none."""
    name = architecture(target)
    programs: tuple[str, ...] = (f"qemu-{name}",)
    if target.is_bare:
        programs = (f"qemu-system-{'arm' if name.startswith('thumb') else name}",)
    elif target.is_windows:
        programs = WINE
    elif target.is_wasm:
        programs = ("node",)
    elif target.is_macos:
        programs = ()
    return next((os.path.basename(program) for program in programs if shutil.which(program)), "")


def _needs(features: list[str]) -> str:
    more = len(features) - _SHOWN
    return ", ".join(features[:_SHOWN]) + (f" and {more} more" if more > 0 else "") or "-"


def _state(row: dict[str, Any]) -> str:
    if row["runs"]:
        return "here"
    if not row["vector"]:
        return "on a GPU"
    return f"by {row['emulator']}" if row["emulator"] else "elsewhere"
