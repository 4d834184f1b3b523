"""Facts of WebAssembly with SIMD128: vectors of 16 bytes, no multiply-add, 32-bit addresses.

The features are those of WebAssembly 2.0, which engines have had since 2021 (Safari since 16.4, 2023).
"""

from __future__ import annotations

from graphc.codegen.machine.target import Family, Target
from graphc.codegen.machine.wasm32.costs import SIMD128

_TRIPLE, _CPU = "wasm32-unknown-unknown", "mvp"
_FEATURES = "+bulk-memory,+nontrapping-fptoint,+sign-ext,+simd128"


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of an engine. Code names any number of locals; engines map them to the registers of their
    processor, at least 16 vectors on x86-64."""
    return Target(
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bytes=16,
        registers=16,
        converts_pairs=True,
        costs=SIMD128,
    )


FAMILY = Family(
    architectures=("wasm32",),
    named={"wasm": describe(_TRIPLE, _CPU, _FEATURES)},
    describe=describe,
    relocation_model="static",
)
