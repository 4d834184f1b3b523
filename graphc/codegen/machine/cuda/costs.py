"""What things cost on GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.codegen.machine.costs import DEFAULT

CUDA = DEFAULT
"""Costs from which fusion and graph passes choose: not measured, as on CPUs."""


@dataclass(frozen=True)
class GpuCosts:
    """Thresholds of the schedule for GPUs. None was measured: no GPU was at hand."""

    threads: int = 256
    """Threads of a block: a multiple of the warp of which a multiprocessor holds several, whatever it is."""
    warp_row: int = 1024
    """Elements of a row up to which a warp works on it, 32 for each of its threads at most."""
    short_sum: int = 32
    """Terms from which on a sum over neighbouring elements is shared by threads."""
    private_rounds: int = 16
    """Elements of a row that a thread keeps in registers at most, of its 255."""
    resident: int = 1 << 17
    """Threads that keep the memory of a GPU busy: about half of the 2048 that each of 132 multiprocessors of an H200
    holds."""
    long_sum: int = 64
    """Terms that a thread adds in order from which on it is worth a second kernel to add fewer: some 6 microseconds at
    100 ns a term, of which several are read ahead. A guess."""
    stretch_steps: int = 8
    """Terms that each thread of a stretch adds at least."""
    most_stretches: int = 2048
    """Stretches of one sum at most, which a block adds in 8 steps."""
    product_work: int = 1 << 21
    """Multiply-adds from which on a product is the library's: below, a kernel takes about as long as its launch."""
    product_side: int = 8
    """Rows and columns of such a product at least: of fewer, each factor is read about once whoever does it."""
    product_split: int = 64
    """Terms from which on a product is worth a kernel of its own for what the library does not do with it. On paper:
    the sums are written and read once more, 8 bytes at 4 TB/s, while a multiply-add takes 0.03 ps less at 45 instead of
    20 TFLOP/s."""


@dataclass(frozen=True)
class TileCosts:
    """From which the tiles of contractions are chosen. Facts of Hopper are from NVIDIA's tuning and programming guides;
    nothing was measured."""

    processors: int = 132
    """Streaming multiprocessors of an H200 and of an H100 SXM."""
    loaded: float = 32.0
    """Words of shared memory that a processor reads in a cycle: its banks."""
    read_together: float = 4.0
    """Words of shared memory that a thread reads at a time."""
    multiplied: float = 128.0
    """Multiply-adds in f32 of a processor in a cycle."""
    overlap: float = 0.25
    """The part of reads or multiply-adds, whichever are fewer, that is not hidden behind the other ones. A guess."""
    wait: float = 400.0
    """Cycles from one step over the terms to the next of a processor that has one block: about its memory's latency."""
    resident_threads: int = 1024
    """Threads of blocks with tiles that a processor holds at a time, as their registers allow."""
    resident_blocks: int = 4
    """Blocks of these at most."""
    least_side: int = 4
    """Rows and columns from which on tiles are of use: with fewer, little of what is shared is used again."""
    least_results: int = 256
    """Results from which on they are."""
    wide_owned: int = 16
    """Results of a thread at most where they or the factors take 8 bytes, each of which is two registers."""
    padding: int = 4
    """Elements between the rows of a shared tile, so that writes along the terms do not meet in one bank and 16 bytes
    are still read at a time."""
    padded: int = 32
    """Rows of a tile from which on it has these."""
    launch: float = 4000.0
    """Cycles that one more kernel takes, in a recorded graph: about 2 microseconds."""
    most_parts: int = 64
    """Into how many stretches long sums with few results are cut at most: each stores all results."""
    part_terms: int = 256
    """Terms of a stretch at least."""
    part_bytes: float = 30.0
    """Bytes that a processor writes or reads of sums of stretches in a cycle: its part of 4 TB/s at 1 GHz."""


GPU = GpuCosts()
TILES = TileCosts()
