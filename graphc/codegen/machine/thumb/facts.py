"""Facts of microcontrollers: 32 registers of an f32 (Cortex-M4, M7), or 8 vectors of 16 bytes (Cortex-M55).

Their costs are those of an unknown machine.
"""

from __future__ import annotations

from graphc.codegen.machine.target import Family, Target

_PROCESSORS = {
    "cortex-m4": ("thumbv7em-unknown-none-eabihf", "+vfp4d16sp"),
    "cortex-m7": ("thumbv7em-unknown-none-eabihf", "+fp-armv8d16"),
    "cortex-m55": ("thumbv8.1m.main-unknown-none-eabihf", "+mve.fp"),
}
"""Triple, and unit of floating point, by name."""


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of a processor with f32. Without vectors, two neighbouring f32 count as two of its 32 registers,
    since LLVM unrolls vector code."""
    vectors = "+mve.fp" in features.split(",")
    return Target(
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bytes=16 if vectors else 8,
        registers=8 if vectors else 16,
        fma=True,
    )


FAMILY = Family(
    architectures=("thumb",),
    named={name: describe(triple, name, features) for name, (triple, features) in _PROCESSORS.items()},
    describe=describe,
    relocation_model="static",
)
