"""What GPUs that run CUDA are, by compute capability."""

from __future__ import annotations

from graphc.codegen.machine.cuda.costs import CUDA
from graphc.codegen.machine.cuda.instructions import INSTRUCTIONS
from graphc.codegen.machine.target import Family, Target

TRIPLE = "nvptx64-nvidia-cuda"
NAMES = ("sm_80", "sm_90", "sm_90a", "sm_100")
"""Architectures that code is compiled for."""
SHARED_BYTES = 48 * 1024
"""Shared memory that a block has without asking for more. Documented: CUDA C++ programming guide, compute
capabilities."""


def describe(triple: str, cpu: str, features: str) -> Target:
    """The facts of a GPU; ``l2_bytes`` is what stays near all of its threads."""
    return Target(triple=triple, cpu=cpu, features=features, vector_bytes=16, registers=255, fma=True, costs=CUDA)


FAMILY = Family(
    architectures=("nvptx64",),
    named={name: describe(TRIPLE, name, "") for name in NAMES},
    describe=describe,
    instructions=INSTRUCTIONS,
)


def is_gpu(target: Target) -> bool:
    """Whether code for a target is CUDA C."""
    return target.triple == TRIPLE
