"""PyTorch with ``torch.compile``: model and loss as one compiled function, backward with it; optimizer fused."""

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
    """Compile the model, or the forward and backward of its training step."""
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    if workload.train:
        make_step = partial(fw.make_eager_step, torch, workload, transform=torch.compile, fused=True)
        return fw.prepare_steps(torch, workload, folder, make_step)
    model = fw.build_model(torch, workload, folder)
    inputs = fw.convert_inputs(torch, workload)
    start = time.perf_counter()
    compiled = torch.compile(model)

    def call() -> object:
        with torch.inference_mode():
            return compiled(*inputs)

    with torch.inference_mode():
        numbers = compiled(*inputs).numpy()
    return Prepared(call, numbers, time.perf_counter() - start)
