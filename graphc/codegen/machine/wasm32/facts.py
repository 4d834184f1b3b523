"""Facts of WebAssembly with SIMD128: vectors of 16 bytes, no multiply-add, 32-bit addresses.

The features are those of WebAssembly 2.0, which engines have had since 2021 (Safari since 16.4, 2023). Two variants
have the multiply-add of relaxed SIMD (WebAssembly 3.0), and no vectors at all. Their other facts are equal, so that
schedules, and hence packed weights, are the same.
"""

from __future__ import annotations

from graphc.codegen.machine.target import Family, Target
from graphc.codegen.machine.wasm32.costs import SIMD128
from graphc.codegen.machine.wasm32.instructions import INSTRUCTIONS, RELAXED

_TRIPLE, _CPU = "wasm32-unknown-unknown", "mvp"
_SCALAR = "+bulk-memory,+nontrapping-fptoint,+sign-ext"
_SIMD = f"{_SCALAR},+simd128"
_FUSED = f"{_SIMD},+{RELAXED}"


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of an engine.

    Code names any number of locals; engines map them to the registers of their processor. V8 keeps some of the 16 of
    x86-64 for itself and for operands: blocks of 12 were measured to be the fastest, blocks of 16 take 1.4 to 2.8 times
    as long.
    """
    return Target(
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bytes=16,
        registers=12,
        fma=f"+{RELAXED}" in features,
        converts_pairs="+simd128" in features,
        costs=SIMD128,
    )


FAMILY = Family(
    architectures=("wasm32",),
    named={
        "wasm": describe(_TRIPLE, _CPU, _SIMD),
        "wasm-relaxed": describe(_TRIPLE, _CPU, _FUSED),
        "wasm-scalar": describe(_TRIPLE, _CPU, _SCALAR),
    },
    describe=describe,
    instructions=INSTRUCTIONS,
    linked_features=frozenset({RELAXED}),
    relocation_model="static",
)
