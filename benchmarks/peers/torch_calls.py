"""PyTorch, eager and with ``torch.compile`` (model and loss as one function); its optimizers in their fused form."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import framework as fw
from benchmarks.harness.prepared import NotProvidedError, Prepared
from benchmarks.workloads import LoopWorkload, Workload

_BLOCK = re.compile(r"Block|Bottleneck|Layer$")
"""Classes of modules whose calls the checkpoint goes around."""


def prepare_eager(workload: Workload | LoopWorkload, folder: Path, threads: int, variant: str) -> Prepared:
    """Build the model, or the usual training step or loop."""
    torch.set_num_threads(threads)
    loop = isinstance(workload, LoopWorkload)
    if variant not in ("", "bf16" if loop else "checkpoint" if workload.train else ""):
        raise NotProvidedError(f"no variant {variant} of this workload")
    if isinstance(workload, LoopWorkload):
        narrow = {"transform": torch.autocast("cpu", dtype=torch.bfloat16)} if variant else {}
        return fw.prepare_loop(torch, workload, folder, **narrow)
    return _prepare(workload, folder, lambda function: function, checkpoint_blocks if variant else lambda model: None)


def prepare_compiled(workload: Workload | LoopWorkload, folder: Path, threads: int, variant: str) -> Prepared:
    """Compile the model, the forward and backward of its training step, or the models of a loop."""
    del variant
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    if isinstance(workload, LoopWorkload):
        return fw.prepare_loop(torch, workload, folder, wrap=partial(torch.compile, dynamic=False))
    return _prepare(workload, folder, torch.compile, lambda model: None)


def _prepare(
    workload: Workload, folder: Path, transform: Callable[[Any], Any], change: Callable[[Any], Any]
) -> Prepared:
    if not workload.train:
        return fw.prepare_calls(torch, workload, folder, transform)

    def make_step(model: Any) -> fw.Step:
        change(model)
        return fw.make_eager_step(torch, workload, model, transform, fused=True)

    return fw.prepare_steps(torch, workload, folder, make_step)


def checkpoint_blocks(model: Any) -> int:
    """Put PyTorch's checkpoint around the calls of the blocks of a model; return how many there are."""
    blocks = [m for m in model.modules() if m is not model and _BLOCK.search(type(m).__name__)]
    for block in blocks:
        block.forward = partial(torch.utils.checkpoint.checkpoint, block.forward, use_reentrant=False)
    return len(blocks)
