"""Facts of x86-64 processors: features of the named ones, and facts derived from features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphc.base.processor import LEVELS
from graphc.codegen.machine.denormals import FlushMode
from graphc.codegen.machine.linkage import is_macos, is_windows
from graphc.codegen.machine.target import Family, Target, Waits
from graphc.codegen.machine.tiles import SIDE
from graphc.codegen.machine.x86_64.costs import AVX2, AVX512, SSE2, with_pairs
from graphc.codegen.machine.x86_64.detection import emit_detection
from graphc.codegen.machine.x86_64.instructions import INSTRUCTIONS, QUADS
from graphc.codegen.machine.x86_64.linkage import LINKAGE
from graphc.codegen.machine.x86_64.stack_probe import FUNCTIONS
from graphc.codegen.machine.x86_64.steps import READER
from graphc.codegen.machine.x86_64.tiles import FEATURES as TILE_FEATURES
from graphc.codegen.machine.x86_64.tiles import TILES

_TRIPLES = {"": "x86_64-unknown-linux-gnu", "windows-": "x86_64-pc-windows-msvc"}
"""Triples by the prefix of the names of their targets."""
_MACOS = "x86_64-apple-macosx11.0.0"

_FLUSH = FlushMode(
    declarations=("declare void @llvm.x86.sse.stmxcsr(ptr)", "declare void @llvm.x86.sse.ldmxcsr(ptr)"),
    # Bits of MXCSR: 15 flushes results, 6 takes operands for zeros.
    set_mode=(
        "  %mode.p = alloca i32, align 4",
        "  %flush.p = alloca i32, align 4",
        "  call void @llvm.x86.sse.stmxcsr(ptr %mode.p)",
        "  %mode = load i32, ptr %mode.p, align 4",
        f"  %flush = or i32 %mode, {1 << 15 | 1 << 6}",
        "  store i32 %flush, ptr %flush.p, align 4",
        "  call void @llvm.x86.sse.ldmxcsr(ptr %flush.p)",
    ),
    restore_mode=("  call void @llvm.x86.sse.ldmxcsr(ptr %mode.p)",),
)
_LEVELS: tuple[tuple[frozenset[str], dict[str, Any]], ...] = (
    (
        frozenset({"+avx512f", "+avx512vl"}),
        {
            **{"vector_bytes": 64, "registers": 32, "streams": 32, "masked": True, "fma": True},
            **{"l1_bytes": 48 * 1024, "l2_bytes": 1024 * 1024, "llc_bytes": 24 << 20, "costs": AVX512},
        },
    ),
    (
        frozenset({"+avx2", "+fma"}),
        {"vector_bytes": 32, "masked": True, "part_stores": True, "fma": True, "costs": AVX2},
    ),
    (frozenset(), {"vector_bytes": 16, "costs": SSE2}),
)
"""Facts by required features, in addition to the common ones; the first match counts."""


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of a processor with these features."""
    on = set(features.split(","))
    level = next(facts for needed, facts in _LEVELS if needed <= on)
    common: dict[str, Any] = {
        "registers": 16,
        "streams": 16,
        "memory_operands": True,
        "waits": None if is_windows(triple) or is_macos(triple) else Waits(futex=202),
        "cycle_fence": "llvm.x86.sse2.lfence",
    }
    tiles = SIDE if on >= TILE_FEATURES and level is _LEVELS[0][1] else 0
    target = Target(triple=triple, cpu=cpu, features=features, tile_rows=tiles, **(common | level))
    has_quads = any(all(map(target.has, instruction.features)) for instruction in QUADS)
    return target if has_quads else replace(target, costs=with_pairs(target.costs))


def _level(triple: str, name: str) -> Target:
    return describe(triple, LEVELS[name].cpu, ",".join(f"+{feature}" for feature in LEVELS[name].features))


FAMILY = Family(
    architectures=("x86_64",),
    named={
        **{f"{prefix}{name}": _level(triple, name) for prefix, triple in _TRIPLES.items() for name in LEVELS},
        # NOTE: macOS saves registers of AVX-512 from their first use on, so that no program can detect them.
        "macos-avx2": _level(_MACOS, "avx2"),
    },
    describe=describe,
    instructions=INSTRUCTIONS,
    linkage=LINKAGE,
    reader=READER,
    flush_mode=_FLUSH,
    tiles=TILES,
    detection=emit_detection,
    windows_functions=FUNCTIONS,
    # A third of the code generator's time. Loops step through addresses in the form that loads take, and the processor
    # reorders instructions itself. AArch64 has none: without LSR, its register blocks of 4 x 6 vectors spill. The
    # machine combiner reorders sums of integers for shorter chains, until register blocks of bytes spill.
    llvm_switches=(
        "-disable-lsr",
        "-disable-cgp",
        "-disable-post-ra",
        "-disable-x86-domain-reassignment",
        "-x86-machine-combiner",
    ),
)
