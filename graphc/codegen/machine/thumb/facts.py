"""Facts of microcontrollers: 32 registers of an f32, 13 of an i32, no vectors."""

from __future__ import annotations

from graphc.codegen.machine.target import Family, Target
from graphc.codegen.machine.thumb.costs import DSP
from graphc.codegen.machine.thumb.instructions import INSTRUCTIONS
from graphc.codegen.machine.thumb.steps import READER

_PROCESSORS = {
    "cortex-m4": ("thumbv7em-unknown-none-eabihf", "+vfp4d16sp"),
    "cortex-m7": ("thumbv7em-unknown-none-eabihf", "+fp-armv8d16"),
    "cortex-m55": ("thumbv8.1m.main-unknown-none-eabihf", "+fp-armv8d16,-mve,-mve.fp"),
}
"""Triple and features by name.

NOTE: LLVM 22 compares a vector of MVE with a number in the wrong order, so that a comparison with NaN is true.
"""


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of a processor. Two neighbouring f32 count as two of its 32 registers, and two i32 as two of 12,
    since LLVM unrolls vector code."""
    return Target(
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bytes=8,
        registers=16,
        integer_registers=6,
        word_bits=32,
        fma=True,
        costs=DSP,
    )


FAMILY = Family(
    architectures=("thumb",),
    named={name: describe(triple, name, features) for name, (triple, features) in _PROCESSORS.items()},
    describe=describe,
    instructions=INSTRUCTIONS,
    reader=READER,
    relocation_model="static",
)
