"""What x86-64 processors are: features of the named ones, and facts that follow from features."""

from __future__ import annotations

from graphc.codegen.machine.target import Family, Target
from graphc.codegen.machine.x86_64.costs import AVX2, AVX512, SSE2

_TRIPLE = "x86_64-unknown-linux-gnu"
_V3 = "+avx2,+avx,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe,+popcnt,+sse4.1,+sse4.2,+ssse3"
"""Features of the level x86-64-v3."""
_V4 = f"+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,{_V3}"
"""Features of the level x86-64-v4."""


def describe(triple: str, cpu: str, features: str) -> Target:
    """The facts of a processor with these features."""
    on = set(features.split(","))
    half = bool(on & {"+f16c", "+avx512f"})
    if {"+avx512f", "+avx512vl"} <= on:
        return Target(
            triple=triple,
            cpu=cpu,
            features=features,
            vector_bytes=64,
            registers=32,
            streams=32,
            masked=True,
            fast_ldexp=True,
            fma=True,
            half=half,
            l1_bytes=48 * 1024,
            l2_bytes=1024 * 1024,
            costs=AVX512,
        )
    if {"+avx2", "+fma"} <= on:
        return Target(
            triple=triple,
            cpu=cpu,
            features=features,
            vector_bytes=32,
            registers=16,
            streams=16,
            masked=True,
            fma=True,
            half=half,
            costs=AVX2,
        )
    return Target(
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bytes=16,
        registers=16,
        streams=16,
        half=half,
        costs=SSE2,
    )


FAMILY = Family(
    architectures=("x86_64",),
    named={
        "sse2": describe(_TRIPLE, "x86-64", "+sse2"),
        "avx2": describe(_TRIPLE, "x86-64-v3", _V3),
        "avx512": describe(_TRIPLE, "x86-64-v4", _V4),
    },
    describe=describe,
)
