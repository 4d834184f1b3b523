"""Facts of 32-bit RISC-V microcontrollers: 32 registers of an f32, or none, and no vectors."""

from __future__ import annotations

from graphc.codegen.machine.riscv32.costs import SCALAR, SOFT
from graphc.codegen.machine.riscv32.steps import READER
from graphc.codegen.machine.target import Family, Target

_TRIPLE, _CPU = "riscv32-unknown-none-elf", "generic-rv32"


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of a processor. Two neighbouring f32 count as two of its 32 registers, since LLVM unrolls vector
    code. Without f32, a multiply-add is one call of ``fmaf``, which keeps 12 registers of the caller. More sums than
    fit into them double the size of the code and save no instruction (measured under QEMU). Two i32 count as two of 14
    registers: with 12, 16 and more, nets in int8 take more instructions in all (measured too); the others hold
    addresses and counters."""
    has_floats = "+f" in features.split(",")
    return Target(
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bytes=8,
        registers=16 if has_floats else 6,
        integer_registers=7,
        word_bits=32,
        fma=True,
        costs=SCALAR if has_floats else SOFT,
    )


FAMILY = Family(
    architectures=("riscv32",),
    named={
        "rv32imc": describe(_TRIPLE, _CPU, "+c,+m"),
        "rv32imfc": describe(_TRIPLE, _CPU, "+c,+f,+m,+zicsr"),
    },
    describe=describe,
    reader=READER,
    relocation_model="static",
)
