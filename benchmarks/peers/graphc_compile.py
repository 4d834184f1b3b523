"""graphc as a notebook uses it: ``graphc.compile(model)`` called on tensors."""

from __future__ import annotations

import os
import time
from pathlib import Path

import graphc
from benchmarks.harness import framework as fw
from benchmarks.harness.prepared import NotProvidedError, Prepared
from benchmarks.harness.process import TARGET as VARIABLE
from benchmarks.workloads import Workload

VERSION = graphc.__version__
TARGET = os.environ.get(VARIABLE, "host")
OPTIONS = {} if TARGET == "host" else {"target": TARGET}
"""Empty for this machine: older commits under comparison may lack the argument."""


def prepare(workload: Workload, folder: Path, threads: int) -> Prepared:
    """Compile the model on its first call."""
    del threads  # GRAPHC_THREADS is set for the whole process.
    if workload.train:
        raise NotProvidedError("training is measured as graphc.compile_step")
    model = fw.build_model(graphc, workload, folder)
    inputs = fw.convert_inputs(graphc, workload)

    def call() -> object:
        with graphc.no_grad():
            return compiled(*inputs)

    start = time.perf_counter()
    compiled = graphc.compile(model, **OPTIONS)
    with graphc.no_grad():
        numbers = compiled(*inputs).numpy()
    return Prepared(call, numbers, time.perf_counter() - start)
