"""Cold starts: from a new process to the printed result of a model file, beside other runtimes with the same task.

``python -m benchmarks.cold_start [WORKLOAD...] [--rounds R] [--json]``

Each program starts the interpreter, imports its library, reads the input and the model file, calls the model once and
prints the result. All programs run in turns. The table shows medians of wall and CPU seconds, and the ratio of wall
time to that of ``graphc.load``, whose disk cache holds the program. Files and byte code are in the page cache, as from
the second start on.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import graphc as gc
from benchmarks.harness.framework import build_model, convert_inputs
from benchmarks.harness.process import ROOT
from benchmarks.workloads import WORKLOADS

DEFAULT = ("net_b1", "resnet50_b1")
_BEGIN = "import numpy as np; x = np.load('x.npy'); "
_ONNX = "import onnxruntime as o; s = o.InferenceSession('net.onnx'); print(s.run(None, {s.get_inputs()[0].name: x}))"
PROGRAMS = {
    "python": ("", ["-c", "print(1)"]),
    "python, numpy, input": ("", ["-c", _BEGIN + "print(x.shape)"]),
    "graphc.load": ("", ["-c", _BEGIN + "import graphc as gc; print(gc.load('net.gcm')(x))"]),
    "graphc.load, code in the file": (
        "",
        ["-c", _BEGIN + "import graphc as gc; print(gc.load('native.gcm', trust=True)(x))"],
    ),
    "graphc run": ("", ["-m", "graphc", "run", "net.gcm", "--input", "x=@x.npy"]),
    "onnxruntime": (
        "onnxruntime",
        ["-c", _BEGIN + _ONNX],
    ),
    "openvino": (
        "openvino",
        ["-c", _BEGIN + "import openvino as ov; print(ov.Core().compile_model('net.onnx', 'CPU')(x)[0])"],
    ),
    "torch.jit.load": (
        "torch",
        ["-c", _BEGIN + "import torch; print(torch.jit.load('net.pt')(torch.from_numpy(x)).detach().numpy())"],
    ),
}
"""Required package and interpreter arguments of each program, by name."""
OWN = "graphc.load"


@dataclass
class Start:
    """Seconds of a program."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def write_files(name: str, folder: Path, programs: Sequence[str]) -> None:
    """Write the input files of the programs."""
    workload = WORKLOADS[name]
    model = build_model(gc, workload)
    inputs = convert_inputs(gc, workload)
    np.save(folder / "x.npy", inputs[0].numpy())
    gc.export(model, *inputs, path=folder / "net.gcm")
    gc.export(model, *inputs, path=folder / "native.gcm", native=True)
    if {"onnxruntime", "openvino"} & {*programs}:
        gc.export(model, *inputs, path=folder / "net.onnx")
    if "torch.jit.load" in programs:
        torch = importlib.import_module("torch")
        traced = torch.jit.trace(build_model(torch, workload), tuple(convert_inputs(torch, workload)))
        torch.jit.save(traced, str(folder / "net.pt"))


def start(arguments: Sequence[str], folder: Path) -> tuple[float, float]:
    """Return wall and CPU seconds of the interpreter with these arguments; raise RuntimeError where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GRAPHC_CACHE_DIR": str(folder / "cache")}
    environment |= {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.perf_counter()
    actions = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    command = [sys.executable, *arguments]
    here = os.getcwd()
    os.chdir(folder)
    try:
        child = os.posix_spawn(sys.executable, command, environment, file_actions=actions)
    finally:
        os.chdir(here)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime


def available() -> list[str]:
    """Return names of the programs whose package is installed."""
    return [name for name, (package, _) in PROGRAMS.items() if not package or importlib.util.find_spec(package)]


def measure(name: str, rounds: int) -> dict[str, Start]:
    """Return the times of the programs for a workload; each is started once before."""
    names = available()
    starts = {program: Start() for program in names}
    with tempfile.TemporaryDirectory() as folder:
        write_files(name, Path(folder), names)
        for turn in range(rounds + 1):
            for program, times in starts.items():
                wall, cpu = start(PROGRAMS[program][1], Path(folder))
                if turn:
                    times.wall.append(wall)
                    times.cpu.append(cpu)
    return starts


def format_table(starts: dict[str, dict[str, Start]]) -> str:
    """Return the table of workloads and programs."""
    lines = ["| workload | program | wall s | CPU s | wall / graphc.load |", "|---|---|---|---|---|"]
    for workload, programs in starts.items():
        own = statistics.median(programs[OWN].wall)
        for program, times in programs.items():
            wall, cpu = statistics.median(times.wall), statistics.median(times.cpu)
            lines.append(f"| {workload} | {program} | {wall:.3f} | {cpu:.3f} | {wall / own:.2f} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.cold_start", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"workloads (default: {' '.join(DEFAULT)})")
    parser.add_argument("--rounds", type=int, default=9, help="number of counted starts of each program (default: 9)")
    parser.add_argument("--json", action="store_true", help="print all times as JSON")
    options = parser.parse_args(argv)
    starts = {name: measure(name, options.rounds) for name in options.workloads or DEFAULT}
    if options.json:
        plain: Any = {name: {p: asdict(t) for p, t in programs.items()} for name, programs in starts.items()}
        print(json.dumps(plain))
    else:
        print(format_table(starts))


if __name__ == "__main__":
    main()
