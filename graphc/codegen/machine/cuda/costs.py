"""Costs on GPUs."""

from __future__ import annotations

from graphc.base.records import dataclass
from graphc.codegen.machine.costs import DEFAULT

CUDA = DEFAULT
"""Costs for fusion and graph passes: not measured, as on CPUs."""


@dataclass(frozen=True)
class GpuCosts:
    """Thresholds of the schedule for GPUs. None was measured: no GPU was at hand."""

    threads: int = 256
    """Threads of a block: a multiple of the warp, and small enough for several blocks per multiprocessor on any GPU."""
    warp_row: int = 1024
    """Maximum elements of a row for which a warp works on it, 32 per thread."""
    short_sum: int = 32
    """Terms from which threads share a sum over neighbouring elements."""
    private_rounds: int = 16
    """Maximum elements of a row in the registers of a thread, of its 255."""
    resident: int = 1 << 17
    """Threads that keep the memory of a GPU busy: about half of an H200's 132 times 2048."""
    long_sum: int = 64
    """Terms per thread from which a second kernel pays that lets each add fewer: some 6 microseconds at 100 ns a term,
    with several reads in flight. A guess."""
    stretch_steps: int = 8
    """Minimum terms per thread of a segment."""
    most_stretches: int = 2048
    """Maximum segments of one sum, which a block adds in 8 steps."""
    product_work: int = 1 << 21
    """Multiply-adds from which the library computes a product: below, a kernel takes about as long as its launch."""
    product_side: int = 8
    """Minimum rows and columns of such a product. With fewer, each factor is read about once in any case."""
    product_split: int = 64
    """Terms from which a product gets a kernel of its own for the work that the library does not do with it. On paper:
    the sums are written and read once more, 8 bytes at 4 TB/s, while a multiply-add takes 0.03 ps less at 45 instead of
    20 TFLOP/s."""


@dataclass(frozen=True)
class TileCosts:
    """Costs that determine the tiles of contractions. Facts of Hopper are from NVIDIA's tuning and programming guides;
    nothing was measured."""

    processors: int = 132
    """Streaming multiprocessors of an H200 and of an H100 SXM."""
    loaded: float = 32.0
    """Words of shared memory that a processor reads per cycle: its banks."""
    read_together: float = 4.0
    """Words of shared memory per read of a thread."""
    multiplied: float = 128.0
    """f32 multiply-adds of a processor per cycle."""
    overlap: float = 0.25
    """Fraction of reads or multiply-adds, whichever are fewer, that does not overlap the others. A guess."""
    wait: float = 400.0
    """Cycles between two steps over the terms on a processor with one block: about its memory's latency."""
    resident_threads: int = 1024
    """Maximum resident threads of tiled blocks on a processor, as their registers allow."""
    resident_blocks: int = 4
    """Maximum resident tiled blocks on a processor."""
    least_side: int = 4
    """Rows and columns from which tiles pay: with fewer, little of the shared data is reused."""
    least_results: int = 256
    """Results from which tiles pay."""
    wide_owned: int = 16
    """Maximum results of a thread where results or factors take 8 bytes, which is two registers each."""
    padding: int = 4
    """Elements between the rows of a shared tile. They spread writes along the terms over the banks, and keep reads of
    16 bytes aligned."""
    padded: int = 32
    """Rows of a tile from which it is padded."""
    launch: float = 4000.0
    """Cycles of one more kernel in a recorded graph: about 2 microseconds."""
    most_parts: int = 64
    """Maximum segments of a long sum with few results; each stores all results."""
    part_terms: int = 256
    """Minimum terms of a segment."""
    part_bytes: float = 30.0
    """Bytes of segment sums that a processor writes or reads per cycle: its share of 4 TB/s at 1 GHz."""


GPU = GpuCosts()
TILES = TileCosts()
