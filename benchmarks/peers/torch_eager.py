"""PyTorch without compilation, its optimizers in their fused form."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import torch

from benchmarks.harness import framework as fw
from benchmarks.harness.prepared import Prepared
from benchmarks.workloads import Workload

VERSION = torch.__version__


def prepare(workload: Workload, folder: Path, threads: int) -> Prepared:
    """Build the model, or the usual training step."""
    torch.set_num_threads(threads)
    if workload.train:
        make_step = partial(fw.make_eager_step, torch, workload, fused=True)
        return fw.prepare_steps(torch, workload, folder, make_step)
    model = fw.build_model(torch, workload, folder)
    inputs = fw.convert_inputs(torch, workload)

    def call() -> object:
        with torch.inference_mode():
            return model(*inputs)

    start = time.perf_counter()
    with torch.inference_mode():
        numbers = model(*inputs).numpy()
    return Prepared(call, numbers, time.perf_counter() - start)
