"""``graphc doctor``: what of this machine graphc can use, what is missing, and whether compiled code is right here.

It looks at the processor, packages, threads, the cache and GPUs, compiles and runs a small program, and ends with a
verdict: exit code 6 where something is wrong.
"""

from __future__ import annotations

import argparse
import os
import platform
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base import config
from graphc.base.errors import GraphcError
from graphc.base.installation import DISTRIBUTION, install_command, installation
from graphc.base.version import VERSION
from graphc.calls.function import compile
from graphc.cli import console
from graphc.cli.fields import Field
from graphc.codegen.cuda import nvrtc
from graphc.codegen.machine.target import host_target
from graphc.compiler.cache import Cache, versions
from graphc.compiler.native_call import caller
from graphc.compiler.profile import measure_machine
from graphc.runtime import devices
from graphc.runtime.devices import cublaslt, cuda, emulated_build
from graphc.runtime.threads import available_cores, get_num_threads
from graphc.tensors.creation import from_numpy

EXAMPLES = ("graphc doctor", "graphc doctor --measure", "graphc doctor --json")
JSON = (
    Field("machine.*", "string", "version and source of graphc, interpreter, processor, threads, native calls"),
    Field("packages.*", "string", "version of each package, or that it is missing and what it is for"),
    Field("cache.*", "string", "where the cache lies, its permissions and size"),
    Field("measured.*", "string", "with --measure: peak of one core and bandwidth of a copy", optional=True),
    Field("cuda.*", "string", "each part that GPUs need, with its version or what is missing"),
    Field("check.*", "string", "a small program, compiled and run"),
    Field("faults[]", "string", "what is wrong", optional=True),
    Field("good", "boolean", "whether nothing is wrong"),
)
NEVER_RUN = "this version of graphc was never run on a GPU: its kernels were executed by the emulated device only"
"""Said until the result of tools/gpu_suite of a commit is part of graphc (TESTED_ON)."""
TESTED_ON = ""
"""GPU and commit of the run of tools/gpu_suite that is committed; empty while there is none."""
NEEDED = ("numpy", "llvmlite", "networkx")
OPTIONAL = {
    "onnx": "models of ONNX, in and out (extra onnx)",
    "pillow": "images as inputs of graphc run (extra images)",
    "safetensors": "files of weights (extra interop)",
    "torch": "torch.compile(backend='graphc'), and graphc bench --compare torch (extra torch)",
    "onnxruntime": "graphc bench --compare onnxruntime",
    "openvino": "graphc bench --compare openvino",
    "rich": "the monitor in a terminal (extra monitor)",
    "tensorboardX": "the monitor's files for TensorBoard (extra monitor)",
    "cupy-cuda13x": "GPUs of NVIDIA (extra cuda)",
}
"""Packages that something needs, and what."""
_LISTED_FEATURES = (
    *("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512bf16", "avx512vnni", "avx512fp16"),
    *("amx-tile", "amx-bf16", "amx-int8", "neon", "fullfp16", "dotprod", "bf16", "sve"),
)
"""Those of a processor that change what code is made."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    parser.add_argument(
        "--measure", action="store_true", help="measure one core's peak and the bandwidth of a copy (about a second)"
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    found = {"machine": machine(), "packages": packages(), "cache": cache()}
    if options.measure:
        found["measured"] = measured()
    found |= {"cuda": gpus(), "check": check()}
    faults = list(faults_of(found))
    if options.json:
        console.emit_json({**found, "faults": faults, "good": not faults})
        return console.WRONG if faults else console.OK
    width = max(len(name) for part in found.values() for name in part)
    for title, part in found.items():
        console.emit(f"{title}:")
        for name, value in part.items():
            first, *more = str(value).splitlines() or [""]
            console.emit(f"  {name:<{width}}  {first}")
            for line in more:
                console.emit(f"  {'':<{width}}  {line.strip()}")
    console.emit("verdict: " + ("; ".join(faults) if faults else "compiled code runs here, and is right"))
    return console.WRONG if faults else console.OK


def machine() -> dict[str, str]:
    """Interpreter, processor and threads."""
    target = host_target()
    on = [name for name in _LISTED_FEATURES if f"+{name}" in target.features.split(",")]
    return {
        "graphc": VERSION,
        "installed": f"{DISTRIBUTION}, {installation()}; an extra: {install_command('EXTRA')}",
        "python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "processor": f"{target.cpu or 'unknown'}, vectors of {8 * target.vector_bytes} bits"
        + (", tiles of bf16" if target.tile_rows else ""),
        "features": " ".join(on) or "none that code is made for",
        "threads": f"{get_num_threads()} per call, of {available_cores()} cores"
        + (" (GRAPHC_THREADS)" if config.read().threads else ""),
        "native calls": "yes" if caller() is not None else "no: calls go through Python with this interpreter",
    }


def packages() -> dict[str, str]:
    """Versions of packages, and what those are for that are missing."""
    found = {name: metadata.version(name) for name in NEEDED}
    found["LLVM"] = versions()["llvm"]
    for name, purpose in OPTIONAL.items():
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = f"missing: {purpose}"
    return found


def cache() -> dict[str, str]:
    """The cache of compiled programs."""
    settings = config.read()
    disk = Cache(Path(settings.cache_dir).expanduser(), settings.cache_size)
    fault = disk.fault()
    found = {"folder": str(disk.folder), "used": "yes" if settings.cache else "no (GRAPHC_CACHE=off)"}
    if not disk.folder.exists():
        return {**found, "state": "is made when the first program is kept"}
    status = disk.folder.stat()
    found["permissions"] = f"{stat.filemode(status.st_mode)}, of user {status.st_uid}, this is user {os.geteuid()}"
    if fault:
        return {**found, "state": f"wrong: {fault}"}
    usage = disk.usage()
    size = f"{console.bytes_text(usage.bytes)} of {console.bytes_text(usage.limit)}"
    return {**found, "state": f"{usage.entries} programs, {size}"}


def measured() -> dict[str, str]:
    """What one core does at best."""
    found = measure_machine()
    return {
        "peak": f"{found.flops / 1e9:.1f} GFLOP/s of f32 on one core",
        "copy": f"{found.bandwidth / 1e9:.1f} GB/s read and written on one core",
    }


def check() -> dict[str, str]:
    """A small program: whether it compiles, and computes what numpy does."""
    start = time.perf_counter()
    values = np.linspace(-2, 2, 64, dtype=np.float32)
    try:
        result = compile(lambda x: (x * 2 + 1).relu().sum())(from_numpy(values))
        seconds = time.perf_counter() - start
        wanted = float(np.maximum(values * 2 + 1, 0).sum())
        good = abs(float(result.item()) - wanted) <= 1e-5 * wanted
        return {"program": f"{'right' if good else f'wrong: {result.item()} instead of {wanted}'}, in {seconds:.2f} s"}
    except (GraphcError, OSError) as error:
        return {"program": f"wrong: {type(error).__name__}: {error}"}


def faults_of(found: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """What is wrong, by part; what is only missing is not."""
    for title, part in found.items():
        for name, value in part.items():
            if value.startswith("wrong: "):
                yield f"{title}, {name}: {value.removeprefix('wrong: ').splitlines()[0]}"


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
