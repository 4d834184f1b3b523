"""What things cost on a machine: every price and threshold by which ways to compile are chosen, with unit and source.

Unless a field says otherwise, its number was fitted to times measured with ``python -m benchmarks`` on one core of an
x86-64 with AVX-512. Cycles are those of one core; an operation is one on a whole vector register. ``python -m
benchmarks.machine`` prints what some of them are on the machine that it runs on, beside what is in use: a fitted number
holds for whole kernels, in which reads wait beside other work, and need not be equal to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class SpeedCosts:
    """What one core does at best: the speeds of ``machine.roofline``."""

    operations: float = 10.0
    """Operations on whole vector registers in a nanosecond, a multiply-add as one. Measured by ``python -m
    benchmarks.machine``."""
    l1: float = 64.0
    """Bytes in a nanosecond of what fits the L1 cache. Measured by ``python -m benchmarks.machine``."""
    l2: float = 64.0
    """The same of what fits the L2 cache. Measured by ``python -m benchmarks.machine``."""
    llc: float = 12.0
    """The same of what fits the last-level cache. Measured by ``python -m benchmarks.machine``."""
    memory: float = 12.0
    """The same of what does not. Measured by ``python -m benchmarks.machine``."""


@dataclass(frozen=True)
class MemoryCosts:
    """What goes past the caches, and what is tiled to stay in them."""

    non_temporal_bytes: int = 0
    """Bytes that a kernel touches from which results that are not read again are written past the caches, where they
    would not stay; 0 where that does not pay. About the share of the LLC that one core keeps. Measured by ``python -m
    benchmarks.machine``."""
    vast: float = 1.5
    """How many times ``non_temporal_bytes`` a buffer is of which nothing stays in the LLC."""
    non_temporal_part: int = 8
    """A buffer that is written past the caches has at least ``non_temporal_bytes`` divided by this: a smaller one
    beside larger ones stays near."""
    non_temporal_statements: int = 200
    """Statements of the longest kernel that is emitted twice: for results that start at a cache line, and for others.
    A bound on code size."""
    narrow_load_bytes: int = 0
    """Bytes that a loop which only reads takes from the LLC at a time, where that is faster than whole vectors, which
    cross two lines each where an array does not start at one; 0 where it is not."""
    narrow_load_operations: int = 4
    """Operations for each value read up to which a loop does nothing but wait for memory."""
    tile_step: float = 8.0
    """How many times smaller or larger than half of the L2 cache a tile of kernels that are fused may be."""
    tile_single: float = 4.0
    """How many times smaller than half of the L2 cache a tile may be that is one iteration of a loop whose number of
    iterations is known at run time: these go around calls as they are. Not measured by itself."""
    tile_dimension: int = 1024
    """The size of a dimension for which tiles are chosen, where its range goes as far and none larger is expected."""
    tile_calls: int = 32
    """Calls between the first and the last use of a temporary up to which kernels are tiled together: a bound on the
    time of the search."""
    skewed_bytes: int = 32 * 1024
    """Bytes from which a temporary is followed by ``skew_lines``. Not measured by itself."""
    skew_lines: int = 5
    """Cache lines after a large temporary, so that neighbours do not start at the same place of a page, where the cache
    mistakes one for the other. Measured: three times slower without."""
    arena_orders: int = 96
    """How often an order of temporaries is mended at most to find a smaller arena. A bound on the time of the search,
    as are the next three."""
    arena_placed: int = 8000
    """About how many temporaries are placed for that."""
    arena_proven: int = 500
    """The same where sizes are known at run time, so that it must be proven what fits."""
    arena_proofs: int = 200_000
    """What may be spent on such proofs, each as the cube of its terms: about two seconds where sizes have many."""
    arena_near: float = 1.01
    """Times the least size that an arena can have, up to which it is small enough."""


@dataclass(frozen=True)
class ContractionCosts:
    """Register blocks of products: from what the choice of a block is made, and the loops around it."""

    multiply_adds: float = 2.0
    """Multiply-adds of a vector in a cycle. Documented: two units in every x86-64 core with FMA, and in Neoverse.
    Measured by ``python -m benchmarks.machine``."""
    chain_cycles: float = 4.0
    """Cycles from the start of a multiply-add to that of another one that needs its result. Documented. Measured by
    ``python -m benchmarks.machine``."""
    step_cycles: float = 0.0
    """Cycles that a step of a sum takes beside its multiply-adds and reads: the more of them, the less it counts."""
    l1_read: float = 0.5
    """Cycles to read a vector from the L1 cache. Documented: two loads a cycle. Measured by ``python -m
    benchmarks.machine``."""
    l2_read: float = 1.5
    """Cycles to read a line of a panel that lies in the L2 cache. Measured by ``python -m benchmarks.machine``."""
    l2_row_read: float = 2.0
    """Cycles to read a line of rows that are read again and again and lie in the L2 cache."""
    llc_read: float = 5.0
    """Cycles to read a line from beyond the L2 cache. Measured by ``python -m benchmarks.machine``."""
    llc_page_read: float = 12.0
    """The same where each lies on another page. Measured by ``python -m benchmarks.machine``."""
    memory_read: float = 5.2
    """Cycles to read a line of what is read once, in order, from memory. Measured: 43 GB/s at 3.5 GHz."""
    prefetch_bytes: int = 16 * 1024
    """How far ahead of where it is read such an operand is prefetched, if it is packed. Measured: 4 and 8 rows with
    weights of 4096x4096; 8 KiB and 64 KiB are slower."""
    prefetched_lines: int = 8
    """Lines of such an operand in a step of the sum from which prefetches only cost time: reads of later steps are
    under way by themselves, unless each line is unpacked. Measured: one row with weights of 4096x4096, 8 vectors side
    by side; the weights of a decoder in 4 bits."""
    memory_rows: float = 1.2
    """Times as long takes what is read from memory as several rows side by side. Measured: products of one row with
    live weights."""
    l2_ways: int = 16
    """Lines of a set of the L2 cache. Documented: 1 MiB in 1024 sets, or more."""
    ways_used: float = 0.6
    """Part of the lines of a set that a panel can have for itself."""
    l1_ways_kept: int = 8
    """Lines of a set of the L1 cache that can be counted on: on older processors all that there are."""
    row_conflict: float = 1.3
    """Times as long as without it takes a block whose rows all lie in one set of the L1 cache, and are more than
    ``l1_ways_kept``."""
    row_conflict_far: float = 4.0
    """The same for more than twice as many rows."""
    page_miss: float = 3.0
    """Times as long takes a block of which every step reads other pages of an operand larger than the L2 cache."""
    far_rows: float = 1.06
    """Times as long takes a product whose rows come from beyond the L2 cache for each panel that is not packed. For
    packed ones they are put in groups."""
    far_row_caches: int = 4
    """L2 caches that all rows fill at least, to be taken as far."""
    block_vectors: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    """Vectors side by side of the register blocks that are compared. None of 5 or 7 was ever the fastest."""
    sized_vectors: int = 48
    """Most sums of all register blocks of a product together, where each call has its own number of rows and blocks of
    several sizes are needed for them."""
    dot_blocks: tuple[tuple[int, int], ...] = (
        *((1, 8), (8, 1), (2, 6), (6, 2), (3, 5), (4, 4)),
        *((4, 5), (1, 4), (4, 1), (2, 2), (1, 1)),
    )
    """(rows, columns) of the register blocks that are compared where lanes run along the sum: sums, rows and columns
    fill 32 registers, 16, or few where results are few."""
    fold: float = 5.0
    """Cycles to add up the lanes of a sum. Measured by ``python -m benchmarks.machine``."""
    transposed_access: float = 0.5
    """Cycles of an element beside the sum whose lanes lie apart, where rows are neighbours: by a register transpose.
    Measured by ``python -m benchmarks.machine``."""
    transposed_rows: int = 4
    """Rows from which such accesses become register transposes."""
    shared_line_access: float = 1.5
    """Cycles of an element beside the sum whose lanes lie apart on shared cache lines."""
    scattered_access: float = 4.0
    """The same where each has a cache line of its own."""
    shared_line_stride: int = 16
    """Elements of four bytes between lanes from which each has a cache line of its own."""
    pack_start: float = 200.0
    """Cycles that a call which packs an operand takes beside its elements, where these are copied as they lie."""
    pack_element: float = 0.6
    """Cycles to pack an element that is copied as it lies. Measured by ``python -m benchmarks.machine``."""
    rows_pack_gain: float = 2.0
    """Times as long as packing its rows a product waits for them, at least, for them to be packed. Measured: sums of
    1024 and 2048 products with 65 to 3072 rows and columns; what lies in L2 gains nothing."""
    pack_turned_start: float = 400.0
    """Cycles that a call takes which packs an operand whose lanes lie apart."""
    pack_turned_element: float = 1.2
    """Cycles to pack an element by register transposes. Measured by ``python -m benchmarks.machine``."""
    pack_gathered_element: float = 4.0
    """Cycles to pack an element by itself."""
    pack_turned_extent: int = 16
    """Neighbours along the sum from which an operand is packed by register transposes: a vector of floats."""
    tile_row_cycles: float = 1.0
    """Cycles that a product of tiles takes for each row of sums. Documented: 16 for all rows of a tile."""
    tile_row_read: float = 0.7
    """Cycles to read a row of a tile, a line. Two loads a cycle, at best."""
    tile_block_cycles: float = 300.0
    """Cycles of a block of tiles beside its products: sums are written to memory and read again."""
    tile_least_rows: int = 4
    """Rows from which they are summed in tiles."""
    as_fast: float = 1.05
    """Times the cycles of the best block for expected sizes that another one takes at most which may be taken instead,
    for the sake of smaller sizes."""
    clearly_less: float = 1.1
    """Times the cycles of such a block that the best one takes for smaller sizes, so that it is not taken."""
    poor_block: float = 4.0
    """Times the cycles of the multiply-adds alone that a block takes which may be worse than plain lanes."""
    plain_operation: float = 0.5
    """Cycles of an operation of a nest with plain lanes, of which two run at a time."""
    panel_turns: int = 256
    """Most blocks of rows that pass by a panel for which the next one is prefetched: one that is read more often takes
    little time to arrive."""
    panel_rows: int = 4
    """Blocks of rows that pass by a panel, at least, while the next one arrives."""
    panel_l1: Fraction = Fraction(2, 3)
    """Part of the L1 cache that a panel may fill, so that rows pass by it there."""
    panels_l2: Fraction = Fraction(1, 4)
    """Part of the L2 cache for the panels of short sums that are passed by together."""
    few_groups: int = 4
    """Groups of panels at most that are one instead, where the number of panels is known at run time. Measured: the
    convolutions of a small net whose images lie side by side take as long with 1 and with 4 groups in one."""
    rows_l2: Fraction = Fraction(3, 4)
    """Part of the L2 cache for a group of rows that pass by all panels."""
    prefetched_l2: Fraction = Fraction(1, 16)
    """Part of the L2 cache that a packed operand fills at least, for its panels to be prefetched."""
    panels_stay_rows: Fraction = Fraction(1, 4)
    """Rows for each column from which all panels stay in the L2 cache while blocks of rows pass by."""
    held_operations: int = 448
    """Operations after the sum, over all registers of a block, that are emitted with the sums in registers. A bound on
    code size: beyond it a loop over rows reads them from memory."""
    held_transcendental: int = 24
    """Operations that a transcendental function counts for there."""
    held_scattered: int = 8
    """Operations that an access counts for there whose lanes are not neighbours."""
    looped_rows: int = 4
    """Rows of a block from which what follows its sums may be a loop over rows, and windows that share elements are
    looped over. LLVM keeps what fewer rows need in registers."""
    window_registers: int = 5
    """Registers beside a block and its panel from which windows are written out where every load takes one. Found in
    the assembly for NEON: with fewer, sums are spilled."""


@dataclass(frozen=True)
class LaneCosts:
    """Nests with plain lanes: which axis runs across them, in operations."""

    gather: float = 1.5
    """Operations of one lane of a gathered read. Measured by ``python -m benchmarks.machine``."""
    scatter: float = 3.0
    """Operations of one lane of a scattered write."""
    transcendental: float = 10.0
    """Operations of a transcendental function. Measured by ``python -m benchmarks.machine``."""
    shuffled_read: float = 1.5
    """Operations of each of the vectors between which a read with a short stride shuffles."""
    shuffled_strides: tuple[int, ...] = (2, 3, 4)
    """Elements between lanes that are read, or written side by side, as whole vectors and shuffles."""
    line_stride: int = 16
    """Elements between lanes from which each has a cache line of its own."""
    conflict_stride: int = 512
    """Elements between lanes whose multiples share few sets of a cache."""
    conflict: float = 2.0
    """Times as long takes an access whose lanes do so."""
    fold: float = 8.0
    """Operations to fold the lanes of an accumulator. Measured by ``python -m benchmarks.machine``."""
    gap_store: float = 2.0
    """Operations of a vector that is written between others by shuffles."""
    written_out: int = 4
    """Iterations of a loop around lanes up to which it may be written out, where iterations share most of their
    work."""
    chains: tuple[int, ...] = (4, 2)
    """Iterations around long chains of operations that are done side by side, so that one runs while another waits."""
    copies: tuple[tuple[int, int], ...] = ((16, 4), (60, 2))
    """(statements of a body, vectors side by side up to there), else one: enough to hide latency, few enough for the
    registers."""
    long_copies: int = 2
    """Times as many where values take long chains of operations."""
    small_sum: int = 8
    """Statements for each sum in a loop around another one up to which it is nothing but sums."""
    sum_copies: int = 16
    """Vectors side by side of sums of columns, all sums together: longer pieces of each row come faster."""
    version_gain: float = 1.25
    """Times the cycles of a version of a kernel for the least sizes that the one for all sizes takes there, at
    least: what is chosen at the call costs code, and time to compile it."""
    version_saved: float = 200.0
    """Cycles that it saves at least."""
    version_weights: Fraction = Fraction(1, 4)
    """Part of the L2 cache that weights may take which only such a version reads."""
    transposed_lanes: int = 4
    """Fewest lanes for which a register transpose beats gathering."""
    transposed_statements: int = 16
    """Statements of the longest body that is written out once for each row of a register transpose."""
    transposed_blocks: tuple[int, ...] = (2, 4)
    """Blocks side by side in what is read that are turned one after the other: together they use whole lines."""


@dataclass(frozen=True)
class ReductionCosts:
    """Long reductions and sums of columns. The stretches decide in which order sums are rounded: they are the same on
    every machine and for every number of threads."""

    split_from: int = 1 << 18
    """Iterations from which a reduction is split."""
    stretch: int = 1 << 15
    """About how many iterations compute the partial results of one stretch."""
    few_results: int = 16
    """A kernel with more results than this has enough to share among threads without splitting."""
    rows_from: int = 1 << 20
    """Iterations from which rows are added up to a row of sums."""
    rows_stretch: int = 1 << 18
    """About how many of them compute one row of partial sums."""
    fewest_rows: int = 8
    """Rows that a row of partial sums is made of at least."""
    wide: int = 256
    """Columns up to which a block of accumulators in registers covers whole rows."""
    high: int = 64
    """Rows from which a row of sums in memory is worth its traffic."""
    row_bytes: int = 16 * 1024
    """Most bytes of sums that lie in scratch memory while rows pass by: half of a small L1 cache."""
    rows_together: tuple[int, ...] = (8, 4, 2)
    """Rows that are added at a time, the most first."""
    row_statements: int = 40
    """Most statements that are written out for all rows of a step."""
    longer_row: int = 2
    """How many times longer than a row of what is summed the loops of a row of the kernel before may be."""


@dataclass(frozen=True)
class LoopCosts:
    """Index sets that are split, and loops that are written out. Bounds on code size."""

    pieces: int = 5
    """A loop that would fall into so many pieces, or more, is left as it is."""
    lane_extent: int = 128
    """Iterations that a loop along neighbours in memory has at least to be split: cutting a short one only leaves
    shorter vectors."""
    window: int = 9
    """Steps of the longest sum of guarded reads that is written out: a window of 3 by 3."""
    statements: int = 400
    """Most statements that splitting may leave of one nest."""
    written_out: int = 8
    """A last reduced axis of at most this extent is written out instead of looped over."""


@dataclass(frozen=True)
class ThreadCosts:
    """When threads share kernels, by their estimated times."""

    split_ns: int = 2_000
    """A kernel that is expected to take less time is left to one thread: others would only fetch its data."""
    repeated_ns: int = 8_000
    """A kernel that runs in a loop over calls, where threads meet in each iteration, is left to one thread up to
    here."""
    team_ns: int = 50_000
    """A program of which less time can be shared is run by one thread."""
    part_ns: int = 25_000
    """A program gets so many threads that each has about this time to run."""
    most: int = 256
    """Most threads of one call, the caller's included."""
    grains: int = 64
    """Loops are opened until no iteration is longer than a kernel divided by this."""
    repeated: float = 1 / 32
    """Largest part of an opened loop's work that every thread may repeat for itself."""
    poll_ns: int = 1_000_000
    """Nanoseconds between two looks at Ctrl-C, or more where kernels take longer. Chosen: it is not felt."""


@dataclass(frozen=True)
class FusionCosts:
    """What is computed together, what lies in memory between, and how."""

    large_bytes: int = 256 * 1024
    """Bytes from which a value is likely to have left the L1 and L2 caches when it is read again."""
    longest: int = 128
    """Most nodes of a kernel. What a longer one would keep in registers is little beside what it computes, and the time
    to build one grows faster than its length."""
    single: int = 16
    """Most nodes of a kernel for single values. An optimizer computes the same few for each parameter: one kernel
    called for each takes as long to run as a kernel for all, and much less to build."""
    epilogue: int = 64
    """Operations that may follow a sum of products while its register block is held: each is emitted once per
    register."""
    cheap: int = 12
    """Operations per element that cost less than reading or writing it in memory."""
    streams: int = 12
    """Large values that one loop should read and write at most."""
    row_bytes: int = 128 * 1024
    """Bytes of a row that is read in several passes, or kept in scratch memory, without leaving the L2 cache."""
    row_element_bytes: int = 4
    """Bytes that an element of a row is taken to have where rows of different types are joined."""
    scratch_element_bytes: int = 8
    """The same where what a row keeps in scratch memory is bounded."""
    rows_across: int = 8
    """Rows side by side in memory from which lanes run over them."""
    batch_last: int = 8
    """Images of a batch from which it is worth a look whether lanes over the batch are faster."""
    view_depth: int = 64
    """Most views between a reader and what it reads in memory. A bound on compile time, as are the next three."""
    view_divisions: int = 6
    """Most of them that divide an index: behind each it may have twice as many terms."""
    view_reads: int = 256
    """Most reads behind one view."""
    parts: int = 32
    """Most operands side by side that readers look through: for each they ask whether it is the one."""
    kernels_apart: int = 32
    """Most kernels that are left as they are, though one would do that is told where to read: a kernel that knows it
    may be a bit better, and is not the reason for a long compile."""
    call_invariant_bytes: int = 1 << 20
    """Bytes up to which any result that stays the same for many calls is kept. A bound on memory."""
    call_invariant_growth: int = 4
    """How many times larger than its operands a larger one may be: transformed weights are."""


@dataclass(frozen=True)
class RewriteCosts:
    """Rewrites of graphs that do not always pay."""

    winograd_advantage: float = 1.05
    """How many times fewer multiply-adds than the direct sum a convolution by Winograd's method must be estimated to
    take."""
    winograd_transform: int = 20
    """Multiply-adds that take as long as one element of a transformed tile."""
    winograd_weight: int = 16
    """Multiply-adds that take as long as one weight from memory."""
    winograd_live_weight: int = 48
    """The same for a weight that is transformed by each call."""
    winograd_page_bytes: int = 4096
    """Bytes whose multiples the parts of a transformed tile must not lie apart, for they would meet in one set of a
    cache. Documented: a page."""
    rematerialized_bytes: int = 32 << 20
    """Bytes from which a value may be computed again instead of kept: about a last-level cache."""
    rematerialized_products: int = 128
    """Products of a sum that may be computed again."""
    rematerialized_smaller: int = 4
    """How many times smaller that must be from which a value is computed again."""
    folded_bytes: int = 1 << 20
    """Bytes up to which what is computed from constants may be larger than these and become one. A bound on the size
    of a program."""
    widened_elements: int = 64
    """Elements up to which a narrow constant may be made wider for good."""
    scaled_weights: int = 4
    """How many times larger than weights that may change with every call a result is from which it is not scaled
    itself, but its weights are."""


@dataclass(frozen=True)
class Costs:
    """All prices and thresholds of one target, and what may not be bought at any price."""

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
    """Whether every sum is added up term by term in the order in which it is written, each product and each sum rounded
    by itself. What would change that order is then no choice, whatever it saves."""


DEFAULT = Costs()
"""Those of a machine of which nothing is known."""
