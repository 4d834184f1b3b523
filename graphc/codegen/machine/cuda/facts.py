"""Facts of CUDA GPUs, by compute capability."""

from __future__ import annotations

from graphc.codegen.machine.cuda.costs import CUDA
from graphc.codegen.machine.cuda.instructions import INSTRUCTIONS
from graphc.codegen.machine.target import Family, GpuFacts, Target

TRIPLE = "nvptx64-nvidia-cuda"
NAMES = ("sm_80", "sm_90", "sm_90a", "sm_100")
"""Supported architectures."""
SHARED_BYTES = 48 * 1024
"""Shared memory of a block without a request. Documented: CUDA C++ programming guide, compute capabilities."""

_A100 = GpuFacts(
    processors=108, processor_shared=164 * 1024, block_shared=163 * 1024, l2_bytes=40 << 20, memory_rate=2.0e12
)
_H200 = GpuFacts(
    processors=132, processor_shared=228 * 1024, block_shared=227 * 1024, l2_bytes=50 << 20, memory_rate=4.8e12
)
_B200 = GpuFacts(
    processors=148, processor_shared=228 * 1024, block_shared=227 * 1024, l2_bytes=126 << 20, memory_rate=8.0e12
)
GPUS = {"sm_80": _A100, "sm_90": _H200, "sm_90a": _H200, "sm_100": _B200}
"""GPU facts by architecture. Documented: threads, registers and shared memory in the CUDA C++ programming guide,
compute capabilities; the rest in NVIDIA's data sheets of A100 SXM 80 GB, H200 SXM and B200. Nothing was measured."""


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of a GPU; ``registers`` counts a thread's registers."""
    gpu = GPUS.get(cpu, _H200)
    return Target(
        triple=triple, cpu=cpu, features=features, vector_bytes=16, registers=255, fma=True, gpu=gpu, costs=CUDA
    )


FAMILY = Family(
    architectures=("nvptx64",),
    named={name: describe(TRIPLE, name, "") for name in NAMES},
    describe=describe,
    instructions=INSTRUCTIONS,
)


def is_gpu(target: Target) -> bool:
    """Return whether code for a target is CUDA C."""
    return target.triple == TRIPLE
