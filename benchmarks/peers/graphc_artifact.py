"""graphc as a program uses it: an exported artifact called on numpy arrays, and the compiled training step."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import graphc
from benchmarks.harness import framework as fw
from benchmarks.harness.prepared import Prepared
from benchmarks.harness.process import TARGET as VARIABLE
from benchmarks.workloads import Workload

VERSION = graphc.__version__
TARGET = os.environ.get(VARIABLE, "host")
OPTIONS = {} if TARGET == "host" else {"target": TARGET}
"""Empty for this machine: older commits under comparison may lack the argument."""


def prepare(workload: Workload, folder: Path, threads: int) -> Prepared:
    """Export and load the model, or compile its training step."""
    del threads  # GRAPHC_THREADS is set for the whole process.
    return _prepare_step(workload, folder) if workload.train else _prepare_artifact(workload, folder)


def _prepare_artifact(workload: Workload, folder: Path) -> Prepared:
    model = fw.build_model(graphc, workload, folder)
    path = folder / "model.gcm"
    arrays = workload.draw_inputs()
    start = time.perf_counter()
    graphc.export(model, *fw.convert_inputs(graphc, workload), path=path)
    run = graphc.load(path, **OPTIONS)
    numbers = run(*arrays)
    first_call_s = time.perf_counter() - start
    return Prepared(lambda: run(*arrays), numbers, first_call_s)


def _prepare_step(workload: Workload, folder: Path) -> Prepared:
    loss = fw.make_loss(graphc, workload)

    def make_step(model: Any) -> fw.Step:
        return graphc.compile_step(model, loss, fw.make_optimizer(graphc, workload, model), **OPTIONS)

    return fw.prepare_steps(graphc, workload, folder, make_step)
