"""``graphc doctor``: report usable and missing features of this machine, and whether compiled code is right.

It inspects the processor, packages, threads, the cache and GPUs, compiles and runs a small program, and prints a
verdict. The exit code is 6 if something is wrong.
"""

from __future__ import annotations

import argparse
import os
import platform
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
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
from graphc.files.cache_folders import cache_folders
from graphc.runtime import devices
from graphc.runtime.devices import cublaslt, cuda, emulated_build
from graphc.runtime.threads import available_cores, get_num_threads
from graphc.tensors.creation import from_numpy

EXAMPLES = ("graphc doctor", "graphc doctor --measure", "graphc doctor --json")
JSON = (
    Field("machine.*", "string", "version and source of graphc, interpreter, processor, threads, native calls"),
    Field("packages.*", "string", "version of each package; for a missing one, its purpose"),
    Field("cache.*", "string", "folder of the cache, its permissions and size"),
    Field("measured.*", "string", "with --measure: peak of one core and bandwidth of a copy", optional=True),
    Field("cuda.*", "string", "version of each component that GPUs need, or why it is missing"),
    Field("check.*", "string", "result of compiling and running a small program"),
    Field("faults[]", "string", "what is wrong", optional=True),
    Field("good", "boolean", "whether nothing is wrong"),
)
NEVER_RUN = "this version of graphc was never run on a GPU: its kernels were executed by the emulated device only"
"""Printed while no result of tools/gpu_suite is committed (TESTED_ON is empty)."""
TESTED_ON = ""
"""GPU and commit of the committed run of tools/gpu_suite; empty without one."""
NEEDED = ("numpy", "llvmlite", "networkx")
OPTIONAL = {
    "onnx": "read and write ONNX models (extra onnx)",
    "pillow": "read images for graphc run (extra images)",
    "safetensors": "read weights files (extra interop)",
    "torch": "torch.compile(backend='graphc'), and graphc bench --compare torch (extra torch)",
    "onnxruntime": "graphc bench --compare onnxruntime",
    "openvino": "graphc bench --compare openvino",
    "rich": "show the monitor in a terminal (extra monitor)",
    "tensorboardX": "write the monitor's files for TensorBoard (extra monitor)",
    "cupy-cuda13x": "run on NVIDIA GPUs (extra cuda)",
}
"""Optional packages, and the feature that needs each one."""
_LISTED_FEATURES = (
    *("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512bf16", "avx512vnni", "avx512fp16"),
    *("amx-tile", "amx-bf16", "amx-int8", "neon", "fullfp16", "dotprod", "i8mm", "bf16", "sve"),
)
"""Processor features that change the generated code."""


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure the peak of one core and the bandwidth of a copy (takes about a second)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    report = {"machine": machine(), "packages": packages(), "cache": cache()}
    if options.measure:
        report["measured"] = measured()
    report |= {"cuda": gpus(), "check": check()}
    faults = list(faults_of(report))
    if options.json:
        console.emit_json({**report, "faults": faults, "good": not faults})
        return console.WRONG if faults else console.OK
    width = max(len(name) for section in report.values() for name in section)
    for title, section in report.items():
        console.emit(f"{title}:")
        for name, value in section.items():
            first, *more = str(value).splitlines() or [""]
            console.emit(f"  {name:<{width}}  {first}")
            for line in more:
                console.emit(f"  {'':<{width}}  {line.strip()}")
    console.emit("verdict: " + ("; ".join(faults) if faults else "compiled code runs on this machine and is right"))
    return console.WRONG if faults else console.OK


def machine() -> dict[str, str]:
    """Describe graphc, interpreter, processor and threads."""
    target = host_target()
    on = [name for name in _LISTED_FEATURES if f"+{name}" in target.features.split(",")]
    return {
        "graphc": VERSION,
        "installed": f"{DISTRIBUTION}, {installation()}; an extra: {install_command('EXTRA')}",
        "python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "processor": f"{target.cpu or 'unknown'}, vectors of {8 * target.vector_bytes} bits"
        + (", tiles of bf16" if target.tile_rows else ""),
        "features": " ".join(on) or "none that graphc uses",
        "threads": f"{get_num_threads()} per call, of {available_cores()} cores"
        + (" (GRAPHC_THREADS)" if config.read().threads else ""),
        "native calls": "yes" if caller() is not None else "no: calls go through Python with this interpreter",
    }


def packages() -> dict[str, str]:
    """Return the version of each package; for a missing one, its purpose."""
    versions_by_name = {name: metadata.version(name) for name in NEEDED}
    versions_by_name["LLVM"] = versions()["llvm"]
    for name, purpose in OPTIONAL.items():
        try:
            versions_by_name[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions_by_name[name] = f"missing: {purpose}"
    return versions_by_name


def cache() -> dict[str, str]:
    """Describe the cache of compiled programs."""
    settings = config.read()
    disk = Cache(cache_folders()[0], settings.cache_size)
    facts = {"folder": str(disk.folder), "used": "yes" if settings.cache else "no (GRAPHC_CACHE=off)"}
    fault = disk.fault() if settings.cache else ""
    if disk.folder.exists():
        status = disk.folder.stat()
        facts["permissions"] = f"{stat.filemode(status.st_mode)}, owner {status.st_uid}, this is user {os.geteuid()}"
    if fault:
        return {**facts, "used": "no", "state": f"wrong: {fault}"}
    usage = disk.usage()
    size = f"{console.bytes_text(usage.bytes)} of {console.bytes_text(usage.limit)}"
    return {**facts, "state": f"{usage.entries} programs, {size}"}


def measured() -> dict[str, str]:
    """Measure the peak of one core and the bandwidth of a copy."""
    rates = measure_machine()
    return {
        "peak": f"{rates.flops / 1e9:.1f} GFLOP/s of f32 on one core",
        "copy": f"{rates.bandwidth / 1e9:.1f} GB/s read and written on one core",
    }


def check() -> dict[str, str]:
    """Compile and run a small program, and compare its result with numpy's."""
    start = time.perf_counter()
    values = np.linspace(-2, 2, 64, dtype=np.float32)
    try:
        result = compile(lambda x: (x * 2 + 1).relu().sum(), tier="full")(from_numpy(values))
        seconds = time.perf_counter() - start
        expected = float(np.maximum(values * 2 + 1, 0).sum())
        good = abs(float(result.item()) - expected) <= 1e-5 * expected
        return {
            "program": f"{'right' if good else f'wrong: {result.item()} instead of {expected}'}, in {seconds:.2f} s"
        }
    except (GraphcError, OSError) as error:
        return {"program": f"wrong: {type(error).__name__}: {error}"}


def faults_of(report: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield every fault of the report; missing optional components are not faults."""
    for title, section in report.items():
        for name, value in section.items():
            if value.startswith("wrong: "):
                yield f"{title}, {name}: {value.removeprefix('wrong: ').splitlines()[0]}"


def gpus() -> dict[str, str]:
    """Return the version of each component that GPUs need, or why it is missing."""
    return {
        "cupy": _try_query(lambda: cuda.cupy().__version__),
        "driver": _try_query(lambda: devices.device_named("cuda").properties()["driver"]),
        "devices": _try_query(_devices),
        "NVRTC": _try_query(lambda: ".".join(map(str, nvrtc.version()))),
        "cublasLt": _try_query(lambda: cublaslt.library()._name),
        "C++ compiler": _try_query(lambda: f"{emulated_build.compiler()}, for device='cuda-emu'"),
        "tested": TESTED_ON or NEVER_RUN,
    }


def _devices() -> str:
    properties = [devices.device_named(f"cuda:{i}").properties() for i in range(devices.count())]
    if not properties:
        devices.device_named("cuda")
    return "\n".join(f"cuda:{i} {p['name']}, {p['capability']}" for i, p in enumerate(properties))


def _try_query(query: Callable[[], Any]) -> str:
    """Return the value that ``query`` computes, or why it fails and what helps."""
    try:
        return str(query())
    except GraphcError as error:
        return f"missing: {error.what}" + (f"\ntry {error.remedy}" if error.remedy else "")
    except (ImportError, OSError, RuntimeError) as error:
        return f"missing: {type(error).__name__}: {error}"
