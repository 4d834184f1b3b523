"""Strided copies between arrays as CUDA C: the only kernels that no program generates."""

from __future__ import annotations

from graphc.codegen.cuda.prelude import PRELUDE

RANK = 6
"""Maximum number of axes after merging contiguous ones."""
THREADS = 256
"""Threads of a block; each moves one element."""
TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}
"""Type of the moved elements, by their bytes."""


def symbol(itemsize: int) -> str:
    """Return the symbol of the kernel for elements of ``itemsize`` bytes.

    Its parameters: the lowest element of the source and of the target; the numbers of elements from there on; the
    number of elements to copy, and the offsets of the first one in both; and for each of RANK axes, outermost first,
    its size and its strides in source and target, in elements.
    """
    return f"gc_strided_copy_{itemsize}"


def strided_copies() -> str:
    """Return the text of all kernels."""
    return PRELUDE + "".join(_kernel(itemsize, name) for itemsize, name in TYPES.items())


def _kernel(itemsize: int, name: str) -> str:
    axes = ", ".join(f"long long n{i}, long long s{i}, long long t{i}" for i in range(RANK))
    steps = "".join(
        f"  place = rest % n{i}; rest /= n{i}; from += place * s{i}; to += place * t{i};\n"
        for i in reversed(range(RANK))
    )
    return (
        f'extern "C" __global__ void __launch_bounds__({THREADS}) {symbol(itemsize)}(GC_IN({name}) source,'
        f" GC_OUT({name}) target, long long sources, long long targets, long long n, long long from, long long to,"
        f" {axes}) {{\n"
        "  GC_EXTENT(source, sources);\n"
        "  GC_EXTENT(target, targets);\n"
        f"  long long rest = blockIdx.x * {THREADS}ll + threadIdx.x, place;\n"
        "  if (rest >= n) return;\n"
        f"{steps}"
        "  target[to] = source[from];\n"
        "}\n"
    )
