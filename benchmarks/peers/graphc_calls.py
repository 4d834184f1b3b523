"""graphc as a program uses it (a model file called on numpy arrays, a compiled step), and as a notebook does."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import graphc
from benchmarks.harness import framework as fw
from benchmarks.harness.prepared import NotProvidedError, Prepared
from benchmarks.harness.process import TARGET as VARIABLE
from benchmarks.workloads import LoopWorkload, Workload

TARGET = os.environ.get(VARIABLE, "host")
OPTIONS: dict[str, Any] = {} if TARGET == "host" else {"target": TARGET}
"""Empty for this machine: older commits under comparison may lack the argument."""
NARROW = ("bf16", "f16", "int8", "int4", "bf16_dot", "int8_dot", "int4_dot")
"""Variants with narrow weights or products."""
BUDGETS = ("%", "B")
"""Ends of variants that are memory budgets, such as ``70%`` and ``500MB``."""


def prepare_file(workload: Workload | LoopWorkload, folder: Path, threads: int, variant: str) -> Prepared:
    """Export and load the model, or compile its training step or that of a loop."""
    del threads  # GRAPHC_THREADS is set for the whole process.
    if isinstance(workload, LoopWorkload):
        if variant == "eager":
            return fw.prepare_loop(graphc, workload, folder)
        return fw.prepare_loop(graphc, workload, folder, transform=_compile(variant))
    if workload.train:
        return _prepare_step(workload, folder, variant)
    path, arrays = folder / f"model{variant}.gcm", workload.draw_inputs()
    start = time.perf_counter()
    if variant == "onnx":
        module = graphc.from_onnx((folder / fw.ONNX).read_bytes())
        graphc.export(module, *module.examples(), path=path, dims=module.dims)
    else:
        model = fw.build_model(graphc, workload, folder)
        start = time.perf_counter()
        graphc.export(model, *fw.convert_inputs(graphc, workload), path=path, **_precision(variant))
    run = graphc.load(path, **OPTIONS)
    numbers = run(*arrays)
    facts = {"file MB": path.stat().st_size / 1e6}
    return Prepared(lambda: run(*arrays), numbers, time.perf_counter() - start, facts)


def prepare_compiled(workload: Workload | LoopWorkload, folder: Path, threads: int, variant: str) -> Prepared:
    """Compile the model on its first call with tensors, also in a training loop."""
    del threads
    compiled = _compile(variant)
    if isinstance(workload, LoopWorkload):
        return fw.prepare_loop(graphc, workload, folder, wrap=compiled)
    if workload.train:
        raise NotProvidedError("training is measured as graphc.compile_step")
    return fw.prepare_calls(graphc, workload, folder, compiled)


def _precision(variant: str) -> dict[str, Any]:
    if variant and variant not in NARROW:
        raise NotProvidedError(f"no variant {variant} of this workload")
    return {"precision": variant} if variant else {}


def _compile(variant: str) -> Any:
    return partial(graphc.compile, **_precision(variant), **OPTIONS)


def _prepare_step(workload: Workload, folder: Path, variant: str) -> Prepared:
    loss, steps = fw.make_loss(graphc, workload), []
    budget = {"memory": variant} if variant.endswith(BUDGETS) else {}
    options = budget or _precision(variant)

    def make_step(model: Any) -> fw.Step:
        optimizer = fw.make_optimizer(graphc, workload, model)
        steps.append(graphc.compile_step(model, loss, optimizer, **options, **OPTIONS))
        return steps[-1]

    prepared = fw.prepare_steps(graphc, workload, folder, make_step)
    if budget:
        (report,) = steps[-1].memory_report()
        again = sum(piece.nbytes for piece in report.again) / 1e6
        prepared.facts.update({"planned MB": steps[-1].plan()[0].arena / 1e6, "again MB": again})
    return prepared
