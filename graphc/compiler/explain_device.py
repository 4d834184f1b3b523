"""Execution of a scheduled program's kernels on a GPU: by the library, in tiles, by threads, warps or blocks."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.base.sizes.size import hint
from graphc.compiler.stages import Stages
from graphc.ir.kernel.statements import Call, Kernel, Loop, Read, walk

PATHS = {
    "library": "product of the library",
    "tiles": "tiled contraction",
    "block": "block per row",
    "warp": "warp per row",
    "thread": "map",
    "alone": "one block",
}
"""Execution paths of kernels: a cublasLt product (with the kernel as fallback), a contraction with tiles of its factors
in shared memory, a block or a warp per row, a thread per iteration, one block.
"""


@dataclass(frozen=True)
class KernelExecution:
    """The execution of one call of a kernel, for the expected sizes."""

    path: str
    """One of PATHS."""
    blocks: int
    threads: int
    """Threads of a block."""
    shared: int
    """Bytes of shared memory of a block."""

    def __str__(self) -> str:
        if self.path == "library":
            return PATHS[self.path]
        return f"{PATHS[self.path]}: {self.blocks} blocks of {self.threads} threads, {self.shared} shared bytes"


def run_of(stages: Stages, call: Call) -> KernelExecution:
    """Return the execution of a call."""
    program = stages.scheduled
    kernel, launch = program.kernel(call.kernel), stages.source.launches[call.kernel]
    static = sum(hint(b.size) * b.dtype.itemsize for b in kernel.buffers if b.role == "shared")
    path = "library" if call.kernel in stages.execution.products else _path(kernel)
    # The launch allocates dynamic bytes for buffers whose size the kernel's text does not state.

    return KernelExecution(path, hint(call.size(launch.grid)), launch.threads, max(static, launch.dynamic))


def _path(kernel: Kernel) -> str:
    loops = [s for s, _ in walk(kernel.body) if isinstance(s, Loop)]
    kinds = {loop.kind for loop in loops}
    if not kinds & {"grid", "block", "warp"}:
        return "alone"
    if "warp" in kinds:
        return "warp"
    if "block" in kinds:
        return "tiles" if _is_tiled(kernel) else "block"
    return "thread"


def _is_tiled(kernel: Kernel) -> bool:
    """Return whether several buffers have tiles in shared memory, and no sum runs over the threads of a block."""
    shared = sum(b.role == "shared" for b in kernel.buffers)
    return shared > 1 and not any(isinstance(s, Read) and s.over for s, _ in walk(kernel.body))
