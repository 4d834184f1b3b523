"""Costs of a machine: every price and threshold that decides how code is compiled, with unit and source.

Unless a field says otherwise, its number was fitted to times measured with ``python -m benchmarks`` on one core of an
x86-64 with AVX-512. Cycles are those of one core; an operation is one on a whole vector register. ``python -m
benchmarks.machine`` measures some of them on the present machine, and prints them beside the numbers in use. The two
may differ: a fitted number holds for whole kernels, in which reads overlap other work.
"""

from __future__ import annotations

from fractions import Fraction

from graphc.base.records import dataclass


@dataclass(frozen=True)
class SpeedCosts:
    """Peak speeds of one core, for ``machine.roofline``."""

    operations: float = 10.0
    """Operations on whole vector registers per nanosecond; a multiply-add counts as one. Measured by ``python -m
    benchmarks.machine``."""
    l1: float = 64.0
    """Bytes per nanosecond from the L1 cache. Measured by ``python -m benchmarks.machine``."""
    l2: float = 64.0
    """Bytes per nanosecond from the L2 cache. Measured by ``python -m benchmarks.machine``."""
    llc: float = 12.0
    """Bytes per nanosecond from the last-level cache. Measured by ``python -m benchmarks.machine``."""
    memory: float = 12.0
    """Bytes per nanosecond from memory. Measured by ``python -m benchmarks.machine``."""


@dataclass(frozen=True)
class MemoryCosts:
    """Thresholds of non-temporal stores and cache tiling."""

    non_temporal_bytes: int = 0
    """Bytes that a kernel touches from which it writes results past the caches, if nothing reads them again; 0 where
    that does not pay. About the fraction of the LLC that one core keeps. Measured by ``python -m
    benchmarks.machine``."""
    vast: float = 1.5
    """Multiple of ``non_temporal_bytes`` from which nothing of a buffer stays in the LLC."""
    non_temporal_part: int = 8
    """Divisor of ``non_temporal_bytes``: a smaller buffer than the quotient stays in the caches, even beside larger
    ones."""
    non_temporal_statements: int = 200
    """Statements of the longest kernel that is emitted twice: for results that start at a cache line, and for others. A
    bound on code size."""
    narrow_load_bytes: int = 0
    """Bytes per load of a loop that only reads from the LLC, where that is faster than whole vectors, which may cross
    two lines each; 0 where it is not."""
    narrow_load_operations: int = 4
    """Maximum operations per value read in a loop that only waits for memory."""
    tile_step: float = 8.0
    """Maximum factor between the tile of fused kernels and half of the L2 cache, in both directions."""
    tile_single: float = 4.0
    """Maximum factor between half of the L2 cache and a smaller tile of one iteration, for loops whose number of
    iterations is known at run time: these go around calls unchanged. Not measured by itself."""
    tile_dimension: int = 1024
    """Size of a named dimension for which tiles are chosen, if its range allows and no larger one is expected."""
    tile_calls: int = 32
    """Maximum calls between the first and the last use of a temporary for which kernels are tiled together: a bound on
    the time of the search."""
    skewed_bytes: int = 32 * 1024
    """Bytes of a temporary from which ``skew_lines`` follow it. Not measured by itself."""
    skew_lines: int = 5
    """Cache lines after a large temporary. They keep neighbours from the same offset of a page, which the cache would
    mistake for each other (4K aliasing). Measured: three times slower without."""
    arena_orders: int = 96
    """Maximum changes to an order of temporaries in the search for a smaller arena. A bound on its time, like the next
    three."""
    arena_placed: int = 8000
    """Approximate number of temporaries placed in that search."""
    arena_proven: int = 500
    """The same where sizes are known at run time, so that fits must be proven."""
    arena_proofs: int = 200_000
    """Budget of such proofs; each costs the cube of its terms: about two seconds where sizes have many."""
    arena_near: float = 1.01
    """Multiple of the least possible arena size at which the search stops."""


@dataclass(frozen=True)
class ContractionCosts:
    """Costs that determine the register blocks of products and the loops around them."""

    multiply_adds: float = 2.0
    """Vector multiply-adds per cycle. Documented: two units in every x86-64 core with FMA, and in Neoverse. Measured by
    ``python -m benchmarks.machine``."""
    chain_cycles: float = 4.0
    """Latency of a multiply-add in cycles. Documented. Measured by ``python -m benchmarks.machine``."""
    step_cycles: float = 0.0
    """Cycles of a step of a sum besides its multiply-adds and reads; longer steps amortize it."""
    l1_read: float = 0.5
    """Cycles to read a vector from the L1 cache. Documented: two loads a cycle. Measured by ``python -m
    benchmarks.machine``."""
    l2_read: float = 1.5
    """Cycles to read a line of a panel in the L2 cache. Measured by ``python -m benchmarks.machine``."""
    strided_wait: float = 0.0
    """Cycles for which a step waits beside its multiply-adds for each line of an unpacked panel that L1 does not hold:
    its lines are apart, so no prefetcher has read them."""
    l2_row_read: float = 2.0
    """Cycles to read a line of repeatedly read rows in the L2 cache."""
    llc_read: float = 5.0
    """Cycles to read a line from beyond the L2 cache. Measured by ``python -m benchmarks.machine``."""
    llc_page_read: float = 12.0
    """The same for lines on different pages. Measured by ``python -m benchmarks.machine``."""
    memory_read: float = 5.2
    """Cycles to read a line from memory, in order and once. Measured: 43 GB/s at 3.5 GHz."""
    prefetch_bytes: int = 16 * 1024
    """Distance in bytes at which such an operand is prefetched, if it is packed. Measured: 4 and 8 rows with weights of
    4096x4096; 8 KiB and 64 KiB are slower."""
    prefetched_lines: int = 8
    """Lines of such an operand per step of the sum from which prefetches only cost time: later reads overlap by
    themselves, unless each line is unpacked. Measured: one row with weights of 4096x4096, 8 vectors side by side; the
    weights of a decoder in 4 bits."""
    memory_rows: float = 1.2
    """Slowdown of reads from memory when several rows are read concurrently. Measured: products of one row with live
    weights."""
    l2_ways: int = 16
    """Lines of a set of the L2 cache. Documented: 1 MiB in 1024 sets, or more."""
    ways_used: float = 0.6
    """Fraction of a set's lines available to a panel."""
    l1_ways_kept: int = 8
    """Lines of an L1 set that can be counted on: all of them on older processors."""
    row_conflict: float = 1.3
    """Slowdown of a block whose rows all map to one set of the L1 cache and are more than ``l1_ways_kept``."""
    row_conflict_far: float = 4.0
    """The same for more than twice as many rows."""
    windows_conflict: bool = False
    """Whether lines of windows count, together with those of rows, against ``l1_ways_kept``."""
    page_miss: float = 3.0
    """Slowdown of a block whose steps each read other pages of an operand larger than the L2 cache."""
    far_segment: float = 0.0
    """Cycles for each row of a block of its segment of an array beyond L2: a store, or a row that varies along the
    lanes. Wider blocks of fewer rows have fewer segments."""
    far_rows: float = 1.06
    """Slowdown of a product whose rows come from beyond the L2 cache for each panel, if panels are not packed. Packed
    ones are put in groups."""
    far_row_caches: int = 4
    """Size in L2 caches from which all rows together count as far."""
    block_vectors: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    """Vectors side by side of candidate register blocks. None of 5 or 7 was ever the fastest."""
    panel_lines: int = 4
    """Cache lines of a row of a constant operand, up to which blocks read it where it is. Products with rows of four
    took as long from packed copies (Zen 5, with AVX-512 and held to AVX2)."""
    sized_vectors: int = 60
    """Maximum sums of all register blocks of a product together, where each call has its own number of rows and needs
    blocks of several sizes."""
    dot_blocks: tuple[tuple[int, int], ...] = (
        *((1, 8), (8, 1), (2, 6), (6, 2), (3, 5), (4, 4)),
        *((4, 5), (1, 4), (4, 1), (2, 2), (1, 1)),
    )
    """(rows, columns) of the register blocks that are compared where lanes run along the sum: sums, rows and columns
    fill 32 registers, 16, or few where results are few."""
    fold: float = 5.0
    """Cycles to add up the lanes of a sum. Measured by ``python -m benchmarks.machine``."""
    transposed_access: float = 0.5
    """Cycles per element of an operand besides the sum with strided lanes and neighbouring rows: by a register
    transpose. Measured by ``python -m benchmarks.machine``."""
    transposed_rows: int = 4
    """Rows from which such accesses become register transposes."""
    shared_line_access: float = 1.5
    """Cycles per element of an operand besides the sum with strided lanes that share cache lines."""
    scattered_access: float = 4.0
    """The same if each lane has its own cache line."""
    shared_line_stride: int = 16
    """Stride between lanes, in elements of four bytes, from which each has its own cache line."""
    pack_start: float = 200.0
    """Fixed cycles of a call that packs an operand, if its elements are copied in order."""
    pack_element: float = 0.6
    """Cycles to pack an element that is copied in order. Measured by ``python -m benchmarks.machine``."""
    rows_pack_gain: float = 2.0
    """Rows are packed if the product waits for them at least this many times the packing time. Measured: sums of 1024
    and 2048 products with 65 to 3072 rows and columns; data in L2 gains nothing."""
    pack_turned_start: float = 400.0
    """Fixed cycles of a call that packs an operand with strided lanes."""
    pack_turned_element: float = 1.2
    """Cycles to pack an element by register transposes. Measured by ``python -m benchmarks.machine``."""
    pack_gathered_element: float = 4.0
    """Cycles to pack a single element."""
    pack_turned_extent: int = 16
    """Neighbours along the sum from which an operand is packed by register transposes: a vector of floats."""
    tile_row_cycles: float = 1.0
    """Cycles of a product of tiles per row of sums. Documented: 16 for all rows of a tile."""
    tile_row_read: float = 0.7
    """Cycles to read a row of a tile, which is a line. Two loads a cycle, at best."""
    tile_block_cycles: float = 300.0
    """Cycles of a block of tiles besides its products: sums are written to memory and read again."""
    tile_least_rows: int = 4
    """Minimum rows for sums in tiles."""
    as_fast: float = 1.05
    """Maximum slowdown, for expected sizes, of a block that may replace the best one for the sake of smaller sizes."""
    clearly_less: float = 1.1
    """Minimum speedup of such a block over the best one for smaller sizes."""
    poor_block: float = 4.0
    """Ratio to the cycles of the multiply-adds alone from which a block may be worse than plain lanes."""
    plain_operation: float = 0.5
    """Cycles of an operation of a nest with plain lanes, of which two run at a time."""
    panel_turns: int = 256
    """Maximum blocks of rows per panel for which the next panel is prefetched: for more, its arrival takes relatively
    little time."""
    panel_rows: int = 4
    """Minimum blocks of rows per panel while the next panel arrives."""
    panel_l1: Fraction = Fraction(2, 3)
    """Fraction of the L1 cache for a panel, so that it stays there for all rows."""
    panels_l2: Fraction = Fraction(1, 4)
    """Fraction of the L2 cache for the panels of short sums that form a group."""
    few_groups: int = 4
    """Maximum groups of panels that are merged into one, where the number of panels is known at run time. Measured: the
    convolutions of a small net with images side by side take as long with 1 and with 4 groups in one."""
    rows_l2: Fraction = Fraction(3, 4)
    """Fraction of the L2 cache for a group of rows that is multiplied with all panels."""
    prefetched_l2: Fraction = Fraction(1, 16)
    """Minimum size of a packed operand, as a fraction of the L2 cache, for its panels to be prefetched."""
    panels_stay_rows: Fraction = Fraction(1, 4)
    """Rows per column from which all panels stay in the L2 cache for all blocks of rows."""
    held_operations: int = 448
    """Operations after the sum, over all registers of a block, that are emitted with the sums in registers. A bound on
    code size: above it a loop over rows reads the sums from memory."""
    held_transcendental: int = 24
    """Weight of a transcendental function in ``held_operations``."""
    held_scattered: int = 8
    """Weight in ``held_operations`` of an access whose lanes are not neighbours."""
    looped_rows: int = 4
    """Rows of a block from which the epilogue may be a loop over rows, and windows that share elements are looped over.
    LLVM keeps the values of fewer rows in registers."""
    window_registers: int = 5
    """Registers beside a block and its panel from which windows are written out where every load takes one. Found in
    the assembly for NEON: with fewer, sums are spilled."""

    @property
    def busy_sums(self) -> int:
        """Sums that keep the units busy: each waits for its last multiply-add."""
        return int(self.chain_cycles * self.multiply_adds)


@dataclass(frozen=True)
class LaneCosts:
    """Costs that determine the vectorized axis of nests with plain lanes, in operations."""

    gather: float = 1.5
    """Operations per lane of a gathered read. Measured by ``python -m benchmarks.machine``."""
    scatter: float = 3.0
    """Operations per lane of a scattered write."""
    transcendental: float = 10.0
    """Operations of a transcendental function. Measured by ``python -m benchmarks.machine``."""
    shuffled_read: float = 1.5
    """Operations per vector of a strided read by shuffles."""
    shuffled_strides: tuple[int, ...] = (2, 3, 4)
    """Strides that are read, or written side by side, as whole vectors and shuffles."""
    line_stride: int = 16
    """Stride between lanes, in elements, from which each has its own cache line."""
    conflict_stride: int = 512
    """Stride between lanes, in elements, whose multiples map to few sets of a cache."""
    conflict: float = 2.0
    """Slowdown of an access with such a stride."""
    fold: float = 8.0
    """Operations to reduce the lanes of an accumulator. Measured by ``python -m benchmarks.machine``."""
    gap_store: float = 2.0
    """Operations of a vector that is interleaved with others by shuffles and stored."""
    written_out: int = 4
    """Maximum iterations of a loop around lanes that may be unrolled, if iterations share most of their work."""
    chains: tuple[int, ...] = (4, 2)
    """Iterations around long chains of operations that run interleaved, to hide latency."""
    copies: tuple[tuple[int, int], ...] = ((16, 4), (60, 2))
    """(maximum statements of a body, vectors side by side), else one vector: enough to hide latency, few enough for the
    registers."""
    long_copies: int = 2
    """Factor on the copies where values take long chains of operations."""
    small_sum: int = 8
    """Maximum statements per sum of a loop around another one that counts as sums only."""
    sum_copies: int = 16
    """Vectors side by side of sums of columns, all sums together: longer segments of each row load faster."""
    column_vectors: int = 1
    """Fewest vectors side by side of longer loops around sums of columns. Rows lie on different pages: the wider their
    pieces, the fewer page walks."""
    version_gain: float = 1.25
    """Minimum speedup of a kernel version for the least sizes over the general one: a choice at run time costs code and
    compile time."""
    version_saved: float = 200.0
    """Minimum cycles that such a version saves."""
    version_weights: Fraction = Fraction(1, 4)
    """Fraction of the L2 cache for weights that only such a version reads."""
    transposed_lanes: int = 4
    """Fewest lanes for which a register transpose beats gathering."""
    transposed_statements: int = 16
    """Maximum statements of a body that is unrolled once for each row of a register transpose."""
    transposed_blocks: tuple[int, ...] = (2, 4)
    """Blocks side by side in the source that are transposed one after the other: together they use whole lines."""


@dataclass(frozen=True)
class ReductionCosts:
    """Thresholds of long reductions and sums of columns. The segments determine the order in which sums are rounded, so
    they are the same on every machine and for every number of threads."""

    split_from: int = 1 << 18
    """Iterations from which a reduction is split."""
    stretch: int = 1 << 15
    """Approximate iterations of the partial results of one segment."""
    few_results: int = 16
    """Maximum results of a kernel that is split: with more, threads share enough work without splitting."""
    rows_from: int = 1 << 20
    """Iterations from which rows are added up to a row of sums."""
    rows_stretch: int = 1 << 18
    """Approximate iterations of one row of partial sums."""
    fewest_rows: int = 8
    """Minimum rows per row of partial sums."""
    wide: int = 256
    """Maximum columns for which a block of accumulators in registers covers whole rows."""
    high: int = 64
    """Rows from which a row of sums in memory is worth its traffic."""
    row_bytes: int = 16 * 1024
    """Maximum bytes of sums in scratch memory while rows are added: half of a small L1 cache."""
    rows_together: tuple[int, ...] = (8, 4, 2)
    """Numbers of rows added at a time, largest first."""
    row_statements: int = 40
    """Maximum statements that are unrolled for all rows of a step."""
    longer_row: int = 2
    """Maximum factor between the loops of a row of the previous kernel and a row of the summed operand."""


@dataclass(frozen=True)
class LoopCosts:
    """Thresholds of index-set splitting and unrolling. Bounds on code size."""

    pieces: int = 5
    """Number of segments from which a loop is not split."""
    lane_extent: int = 128
    """Minimum iterations of a split loop along neighbours in memory: cutting a shorter one only leaves shorter
    vectors."""
    window: int = 9
    """Steps of the longest sum of guarded reads that is unrolled: a window of 3 by 3."""
    statements: int = 400
    """Maximum statements of one nest after splitting."""
    kernel: int = 2000
    """Maximum statements of a loop around calls that becomes a kernel. A bound on compile time."""
    iterations: int = 1 << 16
    """Maximum iterations of such a loop in one call: about a millisecond, since Ctrl-C ends a program between calls."""
    carries: int = 64
    """Maximum carries of such a loop: twice the registers of AVX-512. Spilled ones gain nothing, and take long to
    compile."""
    written_out: int = 8
    """Maximum extent of a last reduced axis that is unrolled instead of looped over."""


@dataclass(frozen=True)
class ThreadCosts:
    """Thresholds of sharing kernels among threads, by estimated times."""

    split_ns: int = 2_000
    """Minimum time of a kernel that threads share: in a shorter one the others would only fetch its data."""
    repeated_ns: int = 8_000
    """Minimum time of a shared kernel in a loop over calls, where threads meet in each iteration."""
    team_ns: int = 50_000
    """Minimum sharable time of a program that several threads run."""
    part_ns: int = 25_000
    """Approximate time per thread, which determines the number of threads of a program."""
    most: int = 256
    """Maximum threads of one call, including the caller's."""
    grains: int = 64
    """Loops are opened until no iteration takes longer than the kernel's time divided by this."""
    repeated: float = 1 / 32
    """Largest fraction of an opened loop's work that every thread may repeat."""
    poll_ns: int = 1_000_000
    """Nanoseconds between two polls for Ctrl-C, or more where kernels take longer. Chosen below what people notice."""
    lost_ns: int = 100_000
    """Least time for which a yielded core counts as lost: longer than an interrupt, shorter than a slice of Linux."""
    alone_ns: int = 10_000_000
    """Time for which calls run alone after one that lost its cores; doubled by each such call in succession."""
    longest_alone_ns: int = 160_000_000
    """Longest such time: trying threads again costs a few slices of 3 ms."""


@dataclass(frozen=True)
class FusionCosts:
    """Thresholds of fusion: which values share a kernel, and which are stored in memory."""

    large_bytes: int = 256 * 1024
    """Bytes from which a value has probably left the L1 and L2 caches when it is read again."""
    longest: int = 128
    """Maximum nodes of a kernel. Beyond it, further values in registers save little compared with the computation, and
    build time grows faster than the length."""
    single: int = 16
    """Maximum nodes of a kernel for single values. An optimizer computes the same few for each parameter: calling one
    kernel for each runs as fast as one kernel for all, and builds much faster."""
    epilogue: int = 64
    """Maximum operations after a sum of products while its register block is held: each is emitted once per
    register."""
    cheap: int = 12
    """Operations per element that cost less than reading or writing it in memory."""
    streams: int = 12
    """Maximum large values that one loop should read and write."""
    row_bytes: int = 128 * 1024
    """Bytes of a row that is read in several passes, or kept in scratch memory, without leaving the L2 cache."""
    row_element_bytes: int = 4
    """Assumed bytes per element of a row where rows of different types are joined."""
    scratch_element_bytes: int = 8
    """Assumed bytes per element for the bound on a row's scratch memory."""
    rows_across: int = 8
    """Rows side by side in memory from which lanes run over them."""
    batch_last: int = 8
    """Images of a batch from which lanes over the batch are considered."""
    batch_last_gain: float = 1.0
    """Minimum estimated speedup by lanes over the batch."""
    view_depth: int = 64
    """Maximum views between a reader and the memory that it reads. A bound on compile time, like the next three."""
    view_divisions: int = 6
    """Maximum views of these that divide an index: each may double the number of terms."""
    view_reads: int = 256
    """Maximum reads through one view."""
    parts: int = 32
    """Maximum concatenated operands that readers look through: each read tests for every operand."""
    kernels_apart: int = 32
    """Maximum number of equal kernels that are not merged into one with offsets as arguments: a kernel that knows its
    offsets may be a bit better, and few of them compile quickly."""
    call_invariant_bytes: int = 1 << 20
    """Maximum bytes of a call-invariant result that is always kept. A bound on memory."""
    call_invariant_growth: int = 4
    """Maximum ratio of a larger call-invariant result to its operands: transformed weights are larger."""


@dataclass(frozen=True)
class RewriteCosts:
    """Thresholds of graph rewrites with a possible loss."""

    scalar_elements: int = 8
    """Maximum elements of an array in a scan's step that is split into scalars: about those of a vector, because each
    is computed by itself."""
    scalar_nodes: int = 600
    """Maximum nodes of such a step. A bound on compile time."""
    winograd_advantage: float = 1.05
    """Minimum estimated ratio of multiply-adds between a direct convolution and Winograd's method."""
    winograd_transform: int = 20
    """Cost of one element of a transformed tile, in multiply-adds."""
    winograd_weight: int = 16
    """Cost of one weight from memory, in multiply-adds."""
    winograd_live_weight: int = 48
    """Cost of one weight that each call transforms, in multiply-adds."""
    winograd_page_bytes: int = 4096
    """Stride in bytes whose multiples the components of a transformed tile avoid, because they would meet in one set of
    a cache. Documented: a page."""
    rematerialized_bytes: int = 32 << 20
    """Bytes from which a value may be recomputed instead of kept: about a last-level cache."""
    rematerialized_products: int = 128
    """Maximum products of a sum that may be recomputed."""
    rematerialized_smaller: int = 4
    """Minimum ratio between a recomputed value and the operands that are kept for it."""
    folded_growth: int = 2
    """Maximum ratio of a constant-folded result to its operands: pairs of bytes take twice the memory of the bytes."""
    folded_bytes: int = 1 << 20
    """Maximum bytes of a constant-folded result that grows by more. A bound on the size of a program."""
    widened_elements: int = 64
    """Maximum elements of a narrow constant that is widened at compile time."""
    byte_pairs: bool = False
    """Whether products of bytes widen them to pairs of 16 bits, for want of an instruction that multiplies quads."""
    paired_results: int = 8
    """Minimum results of each weight from which that is done: pairs take twice the memory. Measured with AVX2 on Zen 5:
    from 8 rows on, products of 1024x1024 and 4096x4096 gain 1.1 to 1.3 times; of 4 rows, the larger ones take 2.7 times
    as long."""
    byte_speed: float = 4.0
    """Multiply-adds of bytes in the time of one of f32. Measured by ``python -m benchmarks.machine``. The default is
    that of VNNI, so that unknown machines keep bytes."""
    scaled_weights: int = 4
    """Minimum ratio of a result to weights that may change with every call from which the weights are scaled
    instead."""


@dataclass(frozen=True)
class Costs:
    """All prices and thresholds of one target, and absolute restrictions."""

    speeds: SpeedCosts = SpeedCosts()
    memory: MemoryCosts = MemoryCosts()
    contraction: ContractionCosts = ContractionCosts()
    lanes: LaneCosts = LaneCosts()
    reduction: ReductionCosts = ReductionCosts()
    loops: LoopCosts = LoopCosts()
    threads: ThreadCosts = ThreadCosts()
    fusion: FusionCosts = FusionCosts()
    rewrites: RewriteCosts = RewriteCosts()
    strict_order: bool = False
    """Whether every sum is added in the order of the lowered program, with each product rounded together with the sum
    that it is added to. Transformations that would change that order are then not considered."""


DEFAULT = Costs()
"""Costs of an unknown machine."""
