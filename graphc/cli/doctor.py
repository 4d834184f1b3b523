"""``graphc doctor``: what of this machine graphc can use, and what is missing for GPUs."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from importlib import metadata
from typing import Any

from graphc.base.errors import GraphcError
from graphc.base.version import VERSION
from graphc.cli import console
from graphc.codegen.cuda import nvrtc
from graphc.codegen.machine.target import host_target
from graphc.compiler.native_call import caller
from graphc.runtime import devices
from graphc.runtime.devices import cublaslt, cuda, emulated_build

NEVER_RUN = "this version of graphc was never run on a GPU: its kernels were executed by the emulated device only"
"""Said until the result of tools/gpu_suite of a commit is part of graphc (TESTED_ON)."""
TESTED_ON = ""
"""GPU and commit of the run of tools/gpu_suite that is committed; empty while there is none."""
PACKAGES = ("numpy", "llvmlite", "networkx")

EXAMPLES = ("graphc doctor",)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    found = {"machine": machine(), "cuda": gpus()}
    if options.json:
        console.emit_json(found)
        return console.OK
    width = max(len(name) for part in found.values() for name in part)
    for title, part in found.items():
        console.emit(f"{title}:")
        for name, value in part.items():
            first, *more = str(value).splitlines() or [""]
            console.emit(f"  {name:<{width}}  {first}")
            for line in more:
                console.emit(f"  {'':<{width}}  {line.strip()}")
    return console.OK


def machine() -> dict[str, str]:
    """Interpreter, packages and processor."""
    target = host_target()
    return {
        "graphc": VERSION,
        "python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        **{name: metadata.version(name) for name in PACKAGES},
        "processor": f"{target.cpu or 'unknown'}, vectors of {8 * target.vector_bytes} bits"
        + (", tiles of bf16" if target.tile_rows else ""),
        "native calls": "yes" if caller() is not None else "no: calls go through Python with this interpreter",
    }


def gpus() -> dict[str, str]:
    """What GPUs need, each part with its version or with what is missing."""
    return {
        "cupy": _asked(lambda: cuda.cupy().__version__),
        "driver": _asked(lambda: devices.device_named("cuda").properties()["driver"]),
        "devices": _asked(_devices),
        "NVRTC": _asked(lambda: ".".join(map(str, nvrtc.version()))),
        "cublasLt": _asked(lambda: cublaslt.library()._name),
        "C++ compiler": _asked(lambda: f"{emulated_build.compiler()}, for device='cuda-emu'"),
        "tested": TESTED_ON or NEVER_RUN,
    }


def _devices() -> str:
    properties = [devices.device_named(f"cuda:{i}").properties() for i in range(devices.count())]
    if not properties:
        devices.device_named("cuda")
    return "\n".join(f"cuda:{i} {p['name']}, {p['capability']}" for i, p in enumerate(properties))


def _asked(question: Callable[[], Any]) -> str:
    """The answer, or why there is none and what helps."""
    try:
        return str(question())
    except GraphcError as error:
        return f"missing: {error.what}" + (f"\ntry {error.remedy}" if error.remedy else "")
    except (ImportError, OSError, RuntimeError) as error:
        return f"missing: {type(error).__name__}: {error}"
