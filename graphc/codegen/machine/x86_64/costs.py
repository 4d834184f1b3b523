"""Costs on x86-64, by vector width."""

from __future__ import annotations

from dataclasses import replace

from graphc.codegen.machine.costs import DEFAULT, ContractionCosts, Costs, FusionCosts, LaneCosts, MemoryCosts

SSE2 = DEFAULT
"""Not measured: as with AVX-512, on which the numbers were found."""
AVX2 = Costs(
    contraction=ContractionCosts(
        step_cycles=0.8, strided_wait=0.6, pack_element=0.86, windows_conflict=True, far_segment=6.0
    ),
    lanes=LaneCosts(column_vectors=8),
    fusion=FusionCosts(batch_last_gain=1.02),
)
"""Measured on an AVX-512 core that runs AVX2 code: per multiply-add, blocks of 3 by 3 vectors take 1.04 times, and
those of 4 by 2 or 2 by 4 take 1.07 times as long as one of 6 by 2. Measured on Zen 3, which has a smaller L1 cache of
fewer ways: windows, strided panels, packing, results beyond L2, sums of columns. All else is as with AVX-512."""
AVX512 = Costs(memory=MemoryCosts(non_temporal_bytes=24 << 20, narrow_load_bytes=32))
"""Measured on a server core with an L2 cache of its own and a share in a large LLC: from 24 MiB on, non-temporal stores
are faster, and sums over data in the LLC read half a vector at a time."""


PAIR_SPEED = 1.6
"""Multiply-adds of pairs of widened bytes in the time of one of f32. Measured on Zen 5, products of 512x512: 1.7 with
AVX2, 1.8 with AVX-512, 2.0 with SSE2; convolutions of ResNet-50 and U-Net with AVX2: 1.3 to 1.7."""


def with_pairs(costs: Costs) -> Costs:
    """Return the costs of a machine without VNNI."""
    return replace(costs, rewrites=replace(costs.rewrites, byte_pairs=True, byte_speed=PAIR_SPEED))
