"""Runs a scheduled program for GPUs on a device, with memory of its own for every storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.sizes.size import at
from graphc.codegen.cuda.angle import angle_text
from graphc.codegen.cuda.emit import CudaSource, emit_kernel
from graphc.codegen.cuda.prelude import PRELUDE
from graphc.ir.kernel.dims import dims_of_kernel
from graphc.ir.kernel.repeat import executions, position
from graphc.ir.kernel.statements import Kernel, Program, Storage


def run_on(device: Any, program: Program, source: CudaSource, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs; params and states are changed in the caller's arrays."""
    module = device.load(source.text)
    memory, bound = _placed(device, program, arguments)
    for call, where in executions(program.calls):
        kernel, launch = program.kernel(call.kernel), source.launches[call.kernel]
        words = [
            memory[name].address + position(call.offset(i), where) * buffer.dtype.itemsize
            for i, (buffer, name) in enumerate(zip(kernel.arguments, call.args, strict=True))
        ]
        device.launch(module.function(launch.symbol), int(launch.grid), launch.threads, launch.dynamic, words)
    results = []
    for s in program.storages:
        if s.cls == "output":
            array = np.empty(s.shape, s.dtype.numpy)
            device.copy_out(memory[s.name].address, array)
            results.append(array)
    for s, array in bound:
        if s.cls in ("param", "state"):
            device.copy_out(memory[s.name].address, array)
    return results


def _placed(
    device: Any, program: Program, arguments: Sequence[np.ndarray]
) -> tuple[dict[str, Any], list[tuple[Storage, np.ndarray]]]:
    """Return the memory of all storages, and the arrays of the arguments."""
    memory: dict[str, Any] = {}
    given = iter(arguments)
    bound = []
    for s in program.storages:
        if s.alias:
            continue
        memory[s.name] = device.allocate(max(1, s.nbytes))
        if s.cls in ("input", "param", "state", "weight"):
            array = next(given)
            bound.append((s, array))
            device.copy_in(memory[s.name].address, array)
        elif s.cls == "constant":
            device.copy_in(memory[s.name].address, np.ascontiguousarray(s.data))
        elif s.cls == "status":
            device.fill(memory[s.name].address, 0, 1)
    for s in program.storages:
        root = s
        while root.alias:
            root = program.storage(root.alias)
        memory[s.name] = memory[root.name]
    return memory, bound


def launch_kernels(
    device: Any, kernels: Sequence[Kernel], arguments: Sequence[dict[str, np.ndarray]], *dims: int
) -> list[dict[str, np.ndarray]]:
    """Return the buffers after a launch of kernels built as one source; ``dims`` holds the sizes of dimensions."""
    parts = [emit_kernel(kernel, f"k{i}") for i, kernel in enumerate(kernels)]
    angles = [angle_text()] if any("gc_reduce_large" in text for text, _ in parts) else []
    module = device.load("\n".join([PRELUDE, *angles, *(text for text, _ in parts)]))
    results = []
    for (_, launch), kernel, arrays in zip(parts, kernels, arguments, strict=True):
        memory = {b.name: device.allocate(max(1, arrays[b.name].nbytes)) for b in kernel.arguments}
        for name, held in memory.items():
            device.copy_in(held.address, arrays[name])
        words = [*(memory[b.name].address for b in kernel.arguments), *dims]
        grid = at(launch.grid, dict(zip(dims_of_kernel(kernel).values(), dims, strict=True)))
        device.launch(module.function(launch.symbol), int(grid), launch.threads, launch.dynamic, words)
        left = {name: np.empty_like(arrays[name]) for name in memory}
        for name, held in memory.items():
            device.copy_out(held.address, left[name])
        results.append(left)
    return results
