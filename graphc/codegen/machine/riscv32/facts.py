"""Facts of 32-bit RISC-V microcontrollers: 32 registers of an f32, or none, and no vectors.

Their costs are those of an unknown machine.
"""

from __future__ import annotations

from graphc.codegen.machine.target import Family, Target

_TRIPLE, _CPU = "riscv32-unknown-none-elf", "generic-rv32"
_FEATURES = {"rv32imc": "+m,+c", "rv32imafc": "+m,+a,+f,+c,+zicsr"}


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of a processor."""
    return Target(triple=triple, cpu=cpu, features=features, vector_bytes=8, registers=16, fma=True)


FAMILY = Family(
    architectures=("riscv32",),
    named={name: describe(_TRIPLE, _CPU, features) for name, features in _FEATURES.items()},
    describe=describe,
    relocation_model="static",
)
