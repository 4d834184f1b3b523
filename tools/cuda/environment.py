"""Environment of a run on a GPU: machine, driver, versions, clocks, commit: ``python -m tools.cuda.environment``."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphc.base.installation import DISTRIBUTION
from graphc.runtime.devices import device_named
from tools.cuda.device_check import reason_without

PACKAGES = (
    *(
        DISTRIBUTION,
        "numpy",
        "llvmlite",
        "networkx",
        "cupy-cuda13x",
        "cupy-cuda12x",
        "nvidia-cuda-nvrtc",
        "nvidia-cublas",
    ),
    *("nvidia-cuda-runtime", "nvidia-cudnn-cu13", "torch", "triton", "jax", "jaxlib"),
)
"""Packages whose versions matter."""
SMI = (
    *(
        "name",
        "driver_version",
        "compute_cap",
        "memory.total",
        "memory.used",
        "clocks.sm",
        "clocks.mem",
        "clocks.max.sm",
    ),
    *("clocks.max.mem", "temperature.gpu", "power.limit", "persistence_mode", "mig.mode.current", "ecc.mode.current"),
    *("clocks_throttle_reasons.active", "utilization.gpu"),
)
"""Fields that nvidia-smi is queried for."""
ROOT = Path(__file__).resolve().parents[2]


def report(device: str) -> dict[str, Any]:
    """Return the whole environment; an entry that cannot be queried holds the reason."""
    environment = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": _attempt(commit),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": {"cores": os.cpu_count(), "name": _attempt(cpu_name)},
        "packages": versions(),
        "gpus": _attempt(gpus),
        "device": device,
        "missing": _attempt(lambda: reason_without(device)),
        "properties": _attempt(lambda: properties(device)),
        "tools": {name: shutil.which(name) for name in ("nvidia-smi", "compute-sanitizer", "nvcc", "g++", "clang++")},
        "variables": {k: v for k, v in os.environ.items() if k.startswith(("CUDA_", "GRAPHC_", "NVIDIA_VISIBLE"))},
    }
    return environment


def _attempt(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:  # a report goes on whatever one question raises
        return f"{type(error).__name__}: {error}".splitlines()[0]


def commit() -> dict[str, Any]:
    """Return the commit of this tree, and whether files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    return {"id": git("rev-parse", "HEAD"), "changed": bool(git("status", "--porcelain", "--untracked-files=no"))}


def cpu_name() -> str:
    """Return the processor's name from Linux."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def versions() -> dict[str, str]:
    """Return the versions of the installed packages."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def gpus() -> list[dict[str, str]] | str:
    """Return the answer of nvidia-smi, one entry per GPU, or the reason why there is none."""
    if shutil.which("nvidia-smi") is None:
        return "no nvidia-smi"
    command = ["nvidia-smi", f"--query-gpu={','.join(SMI)}", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if done.returncode:
        return (done.stdout + done.stderr).strip().splitlines()[0]
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]
    return [dict(zip(SMI, row, strict=False)) for row in rows]


def properties(device: str) -> dict[str, Any]:
    """Return the runtime's properties of the device."""
    accelerator = device_named(device)
    return {"name": accelerator.name, "target": accelerator.target, **accelerator.properties()}


if __name__ == "__main__":
    print(json.dumps(report(sys.argv[1] if len(sys.argv) > 1 else "cuda"), indent=1, default=str))
