"""Facts of aarch64 processors: 32 vector registers of 16 bytes."""

from __future__ import annotations

from graphc.codegen.machine.aarch64.costs import DOTPROD, I8MM, NEON
from graphc.codegen.machine.aarch64.detection import emit_detection
from graphc.codegen.machine.aarch64.instructions import INSTRUCTIONS
from graphc.codegen.machine.aarch64.linkage import LINKAGE
from graphc.codegen.machine.aarch64.steps import READER
from graphc.codegen.machine.denormals import FlushMode
from graphc.codegen.machine.linkage import is_macos
from graphc.codegen.machine.target import Family, Target, Waits

_TRIPLE, _CPU = "aarch64-unknown-linux-gnu", "neoverse-n1"
_MACOS, _MAC = "aarch64-apple-macosx11.0.0", "apple-m1"
"""The first macOS for Apple's own processors, and the first of these."""
_FLUSH = FlushMode(
    declarations=("declare i64 @llvm.aarch64.get.fpcr()", "declare void @llvm.aarch64.set.fpcr(i64)"),
    # Bit 24 of FPCR (FZ) is for operands and results.
    set_mode=(
        "  %mode = call i64 @llvm.aarch64.get.fpcr()",
        f"  %flush = or i64 %mode, {1 << 24}",
        "  call void @llvm.aarch64.set.fpcr(i64 %flush)",
    ),
    restore_mode=("  call void @llvm.aarch64.set.fpcr(i64 %mode)",),
)


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of a processor with NEON, which all have. Features name the products of bytes that it has."""
    on = set(features.split(","))
    return Target(
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bytes=16,
        registers=32,
        fma=True,
        waits=None if is_macos(triple) else Waits(futex=98),
        inherent="+dotprod" if is_macos(triple) else "",
        costs=I8MM if "+i8mm" in on else DOTPROD if "+dotprod" in on else NEON,
    )


FAMILY = Family(
    architectures=("aarch64", "arm64"),
    named={
        "neon": describe(_TRIPLE, _CPU, "+neon"),
        "neon-dotprod": describe(_TRIPLE, _CPU, "+dotprod,+neon"),
        "neon-i8mm": describe(_TRIPLE, _CPU, "+dotprod,+i8mm,+neon"),
        "macos-neon": describe(_MACOS, _MAC, "+dotprod,+neon"),
    },
    describe=describe,
    instructions=INSTRUCTIONS,
    linkage=LINKAGE,
    reader=READER,
    flush_mode=_FLUSH,
    detection=emit_detection,
)
