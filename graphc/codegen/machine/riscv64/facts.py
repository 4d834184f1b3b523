"""Facts of riscv64 processors: 32 registers of an f64, and with vectors 32 of at least 16 bytes."""

from __future__ import annotations

from graphc.codegen.machine.riscv64.costs import SCALAR, VECTOR
from graphc.codegen.machine.riscv64.instructions import INSTRUCTIONS
from graphc.codegen.machine.riscv64.linkage import LINKAGE
from graphc.codegen.machine.riscv64.steps import READER
from graphc.codegen.machine.target import Family, Target, Waits

_TRIPLE, _CPU = "riscv64-unknown-linux-gnu", "generic-rv64"
_GENERAL = "+m,+a,+f,+d,+c,+zicsr,+zifencei"
"""Features of the general-purpose instruction set, RV64GC."""


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of a processor with f64. Without vectors, two neighbouring f32 count as two of its 32 registers,
    since LLVM unrolls vector code. With vectors, the least length named by the features counts, 16 bytes."""
    vectors = "+v" in features.split(",")
    return Target(
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bytes=16 if vectors else 8,
        registers=32 if vectors else 16,
        masked=vectors,
        fma=True,
        waits=Waits(futex=98),
        costs=VECTOR if vectors else SCALAR,
    )


FAMILY = Family(
    architectures=("riscv64",),
    named={
        "rv64gc": describe(_TRIPLE, _CPU, _GENERAL),
        "rv64gcv": describe(_TRIPLE, _CPU, f"{_GENERAL},+v"),
    },
    describe=describe,
    instructions=INSTRUCTIONS,
    linkage=LINKAGE,
    reader=READER,
)
