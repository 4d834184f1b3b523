"""Facts of x86-64 processors: features of the named ones, and facts derived from features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphc.base.processor import LEVELS
from graphc.codegen.machine.costs import Costs
from graphc.codegen.machine.target import Family, Target, Waits
from graphc.codegen.machine.tiles import SIDE
from graphc.codegen.machine.x86_64.costs import AVX2, AVX512, SSE2
from graphc.codegen.machine.x86_64.detection import emit_detection
from graphc.codegen.machine.x86_64.instructions import INSTRUCTIONS
from graphc.codegen.machine.x86_64.linkage import LINKAGE
from graphc.codegen.machine.x86_64.steps import READER
from graphc.codegen.machine.x86_64.tiles import FEATURES as TILE_FEATURES
from graphc.codegen.machine.x86_64.tiles import TILES

PAIR_SPEED = 1.6
"""Multiply-adds of widened bytes in the time of one of f32. Measured with AVX2 on Zen 5: 1.3 to 1.7."""
_TRIPLE = "x86_64-unknown-linux-gnu"

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
        {
            **{"vector_bytes": 32, "registers": 16, "streams": 16, "masked": True, "part_stores": True, "fma": True},
            "costs": AVX2,
        },
    ),
    (frozenset(), {"vector_bytes": 16, "registers": 16, "streams": 16, "costs": SSE2}),
)
"""Facts by required features, in addition to the common ones; the first match counts."""


def describe(triple: str, cpu: str, features: str) -> Target:
    """Return the facts of a processor with these features."""
    on = set(features.split(","))
    level = next(facts for needed, facts in _LEVELS if needed <= on)
    common: dict[str, Any] = {
        "memory_operands": True,
        "waits": Waits(futex=202),
        "cycle_fence": "llvm.x86.sse2.lfence",
    }
    costs: Costs = level["costs"]
    if not on & {"+avx512vnni", "+avxvnni"}:
        common["costs"] = replace(costs, rewrites=replace(costs.rewrites, byte_pairs=True, byte_speed=PAIR_SPEED))
    tiles = SIDE if on >= TILE_FEATURES and level is _LEVELS[0][1] else 0
    return Target(triple=triple, cpu=cpu, features=features, tile_rows=tiles, **(level | common))


FAMILY = Family(
    architectures=("x86_64",),
    named={
        name: describe(_TRIPLE, level.cpu, ",".join(f"+{feature}" for feature in level.features))
        for name, level in LEVELS.items()
    },
    describe=describe,
    instructions=INSTRUCTIONS,
    linkage=LINKAGE,
    reader=READER,
    tiles=TILES,
    detection=emit_detection,
    # A third of the code generator's time. Loops step through addresses in the form that loads take, and the processor
    # reorders instructions itself. AArch64 has none: without LSR, its register blocks of 4 x 6 vectors spill.
    llvm_switches=(
        "-disable-lsr",
        "-disable-cgp",
        "-disable-post-ra",
        "-disable-x86-domain-reassignment",
        "-x86-machine-combiner",
    ),
)
