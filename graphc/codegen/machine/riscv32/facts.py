"""Facts of 32-bit RISC-V microcontrollers: 32 registers of an f32, or none, and no vectors.

Their costs are those of an unknown machine.
"""

from __future__ import annotations

from graphc.codegen.machine.target import Family, Target

_TRIPLE, _CPU = "riscv32-unknown-none-elf", "generic-rv32"


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of a processor. Two neighbouring f32 count as two of its 32 registers, since LLVM unrolls vector
    code. Without f32, a multiply-add is one call of ``fmaf``, which keeps 12 registers of the caller. More sums than
    fit into them double the size of the code and save no instruction (measured under QEMU)."""
    registers = 16 if "+f" in features.split(",") else 6
    return Target(triple=triple, cpu=cpu, features=features, vector_bytes=8, registers=registers, fma=True)


FAMILY = Family(
    architectures=("riscv32",),
    named={
        "rv32imc": describe(_TRIPLE, _CPU, "+c,+m"),
        "rv32imfc": describe(_TRIPLE, _CPU, "+c,+f,+m,+zicsr"),
    },
    describe=describe,
    relocation_model="static",
)
