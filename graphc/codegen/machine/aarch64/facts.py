"""Facts of aarch64 processors: 32 vector registers of 16 bytes."""

from __future__ import annotations

from graphc.codegen.machine.aarch64.costs import NEON
from graphc.codegen.machine.aarch64.instructions import INSTRUCTIONS
from graphc.codegen.machine.aarch64.linkage import LINKAGE
from graphc.codegen.machine.aarch64.steps import READER
from graphc.codegen.machine.target import Family, Target, Waits


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of a processor with NEON, which all have."""
    return Target(
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bytes=16,
        registers=32,
        fma=True,
        waits=Waits(futex=98),
        costs=NEON,
    )


FAMILY = Family(
    architectures=("aarch64", "arm64"),
    named={"neon": describe("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon")},
    describe=describe,
    instructions=INSTRUCTIONS,
    linkage=LINKAGE,
    reader=READER,
)
