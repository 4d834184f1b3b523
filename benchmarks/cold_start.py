"""Cold starts: from a new process to the printed result of a model file, beside other runtimes with the same task.

Each program starts the interpreter, imports its library, reads the input and the model file, calls the model once and
prints the result. All programs run in turns. The table shows medians of wall and CPU seconds, and the ratio of wall
time to that of ``graphc.load``, whose disk cache holds the program. Files and byte code are in the page cache, as from
the second start on.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import graphc as gc
from benchmarks.harness.framework import build_model, convert_inputs
from benchmarks.harness.process import ROOT
from benchmarks.harness.results import Result, cell, format_table
from benchmarks.harness.sweep import make_parser, print_json, select, tell
from benchmarks.workloads import WORKLOADS

DEFAULT = ("net_b1", "resnet50_b1")
_BEGIN = "import numpy as np; x = np.load('x.npy'); "
_CODE = {
    "python": ("", "print(1)"),
    "python, numpy, input": ("", _BEGIN + "print(x.shape)"),
    "graphc.load": ("", _BEGIN + "import graphc as gc; print(gc.load('net.gcm')(x))"),
    "graphc.load, code in the file": ("", _BEGIN + "import graphc as gc; print(gc.load('native.gcm', trust=True)(x))"),
    "onnxruntime": (
        "onnxruntime",
        f"{_BEGIN}import onnxruntime as o; s = o.InferenceSession('net.onnx'); "
        "print(s.run(None, {s.get_inputs()[0].name: x}))",
    ),
    "openvino": (
        "openvino",
        _BEGIN + "import openvino as ov; print(ov.Core().compile_model('net.onnx', 'CPU')(x)[0])",
    ),
    "torch.jit.load": (
        "torch",
        _BEGIN + "import torch; print(torch.jit.load('net.pt')(torch.from_numpy(x)).detach().numpy())",
    ),
}
PROGRAMS = {name: (package, ["-c", code]) for name, (package, code) in _CODE.items()}
PROGRAMS["graphc run"] = ("", ["-m", "graphc", "run", "net.gcm", "--input", "x=@x.npy"])
"""Required package and interpreter arguments of each program, by name."""
OWN = "graphc.load"


def write_files(name: str, folder: Path, programs: Sequence[str]) -> None:
    workload = WORKLOADS[name]
    model, inputs = build_model(gc, workload), convert_inputs(gc, workload)
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
    command = [sys.executable, *arguments]
    begin = time.perf_counter()
    child = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime


def measure(name: str, rounds: int) -> Result:
    """Return the times of the programs for a workload, whose packages are installed; each is started once before."""
    names = [n for n, (package, _) in PROGRAMS.items() if not package or importlib.util.find_spec(package)]
    result = Result(name, {"cpu_s": {program: [] for program in names}})
    with tempfile.TemporaryDirectory() as folder:
        write_files(name, Path(folder), names)
        for turn in range(rounds + 1):
            for program in names:
                wall, cpu = start(PROGRAMS[program][1], Path(folder))
                if turn:
                    result.rounds_ms.setdefault(program, []).append(1000 * wall)
                    result.facts["cpu_s"][program].append(cpu)
    return result


def format_rows(results: Sequence[Result]) -> str:
    rows = []
    for r in results:
        for program, times in r.facts["cpu_s"].items():
            wall, own = (r.ms(name) or 0.0 for name in (program, OWN))
            cells = [f"{wall / 1000:.3f}", cell(statistics.median(times), ".3f"), f"{wall / own:.2f}"]
            rows.append([r.name, program, *cells])
    return format_table(["workload", "program", "wall s", "CPU s", f"wall / {OWN}"], rows)


def main(argv: Sequence[str] | None = None) -> int:
    options = select(make_parser("benchmarks.cold_start", __doc__, rounds=9), list(WORKLOADS), argv, DEFAULT)
    results = []
    for name in options.cases:
        tell(name)
        results.append(measure(name, options.rounds))
    print_json(results) if options.json else print(format_rows(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
