"""Vectorisation of nests without register blocks: choose axes by cost; split them into copies, lanes and a tail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphc.base.records import dataclass
from graphc.base.sizes.size import bounds, hint, is_one, is_size
from graphc.codegen.machine.costs import Costs, LaneCosts
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.loops.transform import block_index, depends, full_blocks, is_short, wrap, write_out
from graphc.ir.kernel.access import GATHERED, UNIFORM, UNIT, Access, access
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.map import BodyCopier, Names, is_leaf, map_statements, names_given
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Acc, Const, IndexLet, Let, Load, Loop, Read, Stmt, Store, Update, walk


@dataclass(frozen=True)
class Choice:
    """Decision about a loop: whether to vectorise it, and the cost of one execution then."""

    cost: float
    vectorise: bool


def vectorise(
    body: tuple[Stmt, ...], target: Target, names: Names, narrow: frozenset[Axis] = frozenset()
) -> tuple[Stmt, ...]:
    """Split the cheapest axes of every loop nest of ``body`` into lanes; axes of ``narrow`` into fractions of a vector
    (see reduce.narrow_loads)."""

    def enter(loop: Loop) -> tuple[Stmt, ...] | None:
        if loop.until:
            return None
        if choose(loop, target).vectorise:
            fraction = target.vector_bytes // target.costs.memory.narrow_load_bytes if loop.axis in narrow else 1
            return split_lanes(loop, target, names, fraction)
        if _runs(loop, target):
            return _pieces(loop, names, target, lanes_of(loop, target), 1)
        if _shares_work(loop, target):
            return (Loop(loop.axis, "unroll", vectorise(loop.body, target, names, narrow)),)
        if number := _chains(loop, target):
            chained: list[Stmt] = []
            for start, count, copies in full_blocks(loop.axis.extent, number):
                outer, copy = names.axis("o", count), names.axis("u", copies)
                position = block_index(start, (outer, copies), (copy, 1))
                copied = BodyCopier(names, {loop.axis: position}).body(loop.body)
                chained += wrap([(outer, loop.kind), (copy, "unroll")], vectorise(copied, target, names, narrow))
            return tuple(chained)
        return None

    return map_statements(body, enter=enter)


def _runs(loop: Loop, target: Target) -> bool:
    """Check whether a serial loop computes running sums (or the like) of contiguous loads, as lanes can (a prefix
    sum)."""
    in_order = target.costs.strict_order and rounds(loop)
    if loop.kind != "serial" or in_order or not 1 < lanes_of(loop, target) <= hint(loop.axis.extent):
        return False
    updated: list[str] = []
    stored = {s.buffer for s in loop.body if isinstance(s, Store)}
    for stmt in loop.body:
        if isinstance(stmt, Update):
            updated.append(stmt.acc)
        elif isinstance(stmt, Read):
            if stmt.acc not in updated:
                return False
        elif isinstance(stmt, Load | Store):
            near = (UNIT,) if isinstance(stmt, Store) else (UNIFORM, UNIT)
            if stmt.guard or access(stmt.index, loop.axis) not in near:
                return False
            if stmt.buffer in stored and (isinstance(stmt, Load) or stmt.combine):
                return False
        elif not isinstance(stmt, Let):
            return False
    return 0 < len(updated) == len(set(updated))


def _chains(loop: Loop, target: Target) -> int:
    """Return the number of iterations to interleave in a loop around shared work with a long dependence chain; 0 for
    other loops."""
    inner = loop.body[-1] if loop.body else None
    if loop.kind == "serial" or not isinstance(inner, Loop) or inner.kind != loop.kind:
        return 0
    extent, chains = loop.axis.extent, target.costs.lanes.chains
    number = max(chains) if is_size(extent) else next((n for n in chains if extent % n == 0), 0)
    return number if number and _shares_work(inner, target) else 0


def _shares_work(loop: Loop, target: Target) -> bool:
    """Check whether to unroll a short loop right around lanes, because its iterations share most of their work."""
    loops = [s for s in loop.body if isinstance(s, Loop)]
    short = is_short(loop, target.costs.lanes.written_out)
    in_order = target.costs.strict_order and loop.kind == "reduce" and rounds(loop)
    if in_order or not short or len(loops) != 1 or not isinstance(loop.body[-1], Loop):
        return False
    (inner,) = loops
    flat = is_leaf(inner)
    if not flat or loop.kind == "serial" or inner.kind != loop.kind or not choose(inner, target).vectorise:
        return False
    varying: set[str] = set()
    different = 0
    for stmt in (*loop.body[:-1], *inner.body):
        if depends(stmt, loop.axis, varying, set()):
            varying |= names_given((stmt,))
            different += 1
    return 2 * different < len(inner.body)


def choose(loop: Loop, target: Target) -> Choice:
    """Return the cheaper of vectorising this loop and vectorising the loops inside, for expected sizes."""
    inner, k, extent = 0.0, target.costs.lanes, hint(loop.axis.extent)
    for stmt in loop.body:
        inner += choose(stmt, target).cost if type(stmt) is Loop else _scalar_cost(stmt, k)
    plain = extent * (inner + 1.0)
    inside = names_given((loop,))
    if not _legal(loop, inside):
        return Choice(plain, False)
    lanes = lanes_of(loop, target)
    if lanes == 1:
        return Choice(plain, False)
    width = min(lanes, extent)
    steps = -(-extent // lanes)
    across = steps * (_lane_cost(loop.body, loop.axis, width, inside, k) + 1.0)
    updates = sum(isinstance(s, Update) for s in loop.body)
    in_order = target.costs.strict_order and loop.kind == "reduce" and rounds(loop)
    across += extent * updates if in_order else k.fold * updates
    return Choice(across, True) if across < plain else Choice(plain, False)


def lanes_of(loop: Loop, target: Target) -> int:
    """Return the number of lanes for the widest element type in the loop (at least 4 bytes)."""
    widest = 4
    for dtype in {s.dtype for s, _ in walk(loop.body) if type(s) is Let or type(s) is Load or type(s) is Acc}:
        widest = max(widest, dtype.itemsize)
    return max(1, target.vector_bytes // widest)


def _scalar_cost(stmt: Stmt, k: LaneCosts) -> float:
    return k.transcendental if isinstance(stmt, Let) and SCALAR_OPS[stmt.op].transcendental else 1.0


def _legal(loop: Loop, inside: set[str]) -> bool:
    leaf = is_leaf(loop)
    if loop.kind == "serial" or (loop.kind == "reduce" and not leaf):
        return False
    statements = [s for s, _ in walk(loop.body) if isinstance(s, (Store, Acc, Update))]
    declared = {s.name for s in statements if isinstance(s, Acc)}
    for stmt in statements:
        if isinstance(stmt, Store):
            pattern = access(stmt.index, loop.axis, inside)
            if pattern == UNIFORM or (stmt.combine and pattern == GATHERED):
                return False
        if isinstance(stmt, Update) and stmt.acc not in declared and loop.kind != "reduce":
            return False
    return True


def rounds(loop: Loop) -> bool:
    """Check whether the order of a loop's updates matters: for all types but integers and booleans."""
    types = {s.name: s.dtype for s, _ in walk(loop.body) if isinstance(s, Let | IndexLet | Load)}
    values = [s.value for s, _ in walk(loop.body) if isinstance(s, Update)]
    dtypes = [v.dtype if isinstance(v, Const) else types.get(v) for v in values]
    return any(dtype is None or dtype.kind not in "iub" for dtype in dtypes)


def _lane_cost(body: tuple[Stmt, ...], axis: Axis, lanes: int, inside: set[str], k: LaneCosts) -> float:
    cost = 0.0
    for stmt in body:
        if type(stmt) is Let:
            cost += _scalar_cost(stmt, k)
        elif isinstance(stmt, Loop) and _fills_gaps(stmt, axis, k):
            plain = tuple(s for s in stmt.body if not isinstance(s, Store))
            stores = len(stmt.body) - len(plain)
            cost += stmt.axis.extent * (_lane_cost(plain, axis, lanes, inside, k) + k.gap_store * stores)
        elif isinstance(stmt, Loop):
            cost += hint(stmt.axis.extent) * (_lane_cost(stmt.body, axis, lanes, inside, k) + 1.0)
        elif isinstance(stmt, (Load, Store)):
            first = access(stmt.index, axis, inside)
            if first.kind == "unit" and not stmt.guard:
                cost += 1.0
                continue
            accesses = [first, *[access(b.index, axis, inside) for b in stmt.guard]]
            cost += _access_cost(accesses, isinstance(stmt, Load), lanes, k)
        else:
            cost += _scalar_cost(stmt, k)
    return cost


def _access_cost(accesses: Sequence[Access], load: bool, lanes: int, k: LaneCosts) -> float:
    """Return the vector operations of one access; loads with short strides are whole vectors and shuffles."""
    if all(a.plain for a in accesses):
        return 1.0
    if load and all(a.plain or a.stride in k.shuffled_strides for a in accesses):
        return k.shuffled_read * max(a.stride for a in accesses)
    strides = [abs(hint(a.stride)) for a in accesses]
    conflict = max(strides) >= k.line_stride and any(s % k.conflict_stride == 0 for s in strides if s)
    return (k.gather if load else k.scatter) * lanes * (k.conflict if conflict else 1.0)


def split_lanes(loop: Loop, target: Target, names: Names, fraction: int = 1) -> tuple[Stmt, ...]:
    """Split a loop into blocks of several vectors, single vectors, and a tail of fewer lanes.

    Vectors have 1 / ``fraction`` of the target's lanes. An extent known only at run time gets as many copies as the
    longest one; short ones then run as single vectors.
    """
    lanes = max(1, lanes_of(loop, target) // fraction)
    most = bounds(loop.axis.extent)[1]
    return _pieces(loop, names, target, lanes, _copies(loop, most // lanes, fraction, target.costs.lanes))


def _is_long(body: tuple[Stmt, ...]) -> bool:
    """Check whether values have such long dependence chains (transcendental operations) that few are in flight."""
    sums = any(isinstance(s, Update) for s in body)
    return not sums and any(isinstance(s, Let) and SCALAR_OPS[s.op].transcendental for s in body)


def _pieces(loop: Loop, names: Names, target: Target, lanes: int, copies: int) -> tuple[Stmt, ...]:
    extent, costs = loop.axis.extent, target.costs
    full = extent // lanes // copies
    end = full * copies * lanes
    singles = (extent - end) // lanes
    result = list(_piece(loop, names, costs, 0, full, copies, lanes)) if full else []
    if singles:
        result += _piece(loop, names, costs, end, singles, 1, lanes)
        end = end + singles * lanes
    for start, number, width in tail(end, extent - end, lanes, target.masked):
        result += _piece(loop, names, costs, start, number, 1, width)
    return tuple(result)


def tail(start: int, rest: int, lanes: int, masked: bool) -> list[tuple[int, int, int]]:
    """Return (start, count, lanes) of the last vectors: one masked vector, or vectors of powers of two.

    A remainder known only at run time is less than ``lanes``, and each count is then 0 or 1.
    """
    if not is_size(rest):
        widths = [rest] if masked else [1 << bit for bit in reversed(range(rest.bit_length())) if rest >> bit & 1]
        return [(start + sum(widths[:i]), 1, width) for i, width in enumerate(widths) if width]
    if masked:
        return [(start, (rest + lanes - 1) // lanes, rest)]
    vectors: list[tuple[int, int, int]] = []
    for width in (lanes >> bit for bit in range(1, lanes.bit_length())):
        number = rest // width - rest // (2 * width) * 2
        if number:
            vectors.append((start, number, width))
            start = start + number * width
    return vectors


def _copies(loop: Loop, vectors: int, fraction: int, k: LaneCosts) -> int:
    """Return the number of independent vectors in flight: enough to hide latency, few enough for the registers."""
    size = sum(1 for _ in walk(loop.body))
    most = fraction * next((n for statements, n in k.copies if size <= statements), 1)
    most *= k.long_copies if _is_long(loop.body) else 1
    sums = sum(isinstance(s, Acc) for s in loop.body)
    if size <= k.small_sum * sums and any(isinstance(s, Loop) for s in loop.body):
        # NOTE: with more copies, sums of columns read longer pieces of each row, which memory delivers faster.
        most = max(1, k.sum_copies >> (sums - 1).bit_length())
    elif sums and any(isinstance(s, Loop) for s in loop.body):
        most = max(most, k.column_vectors)
    while most > 1 and vectors < most:
        most //= 2
    return most


def _piece(
    loop: Loop, names: Names, costs: Costs, start: int, number: int, copies: int, lanes: int
) -> tuple[Stmt, ...]:
    if loop.kind == "serial" and is_one(lanes):
        step = names.axis("o", number) if is_size(number) else None
        position = start if step is None else block_index(start, (step, 1))
        single = BodyCopier(names, {loop.axis: position}).body(loop.body)
        return single if step is None else wrap([(step, "serial")], single)
    outer, copy, lane = names.axis("o", number), names.axis("u", copies), names.axis("l", lanes)
    around = [] if is_size(lanes) else [(outer, copies * lanes)]
    index = block_index(start, *around, (copy, lanes), (lane, 1))
    body = BodyCopier(names, {loop.axis: index}).body(loop.body)
    k = costs.lanes
    body = tuple(replace(s, kind="unroll") if isinstance(s, Loop) and _fills_gaps(s, lane, k) else s for s in body)
    if _windows_share(body, lane, k):
        body = write_out(body, names, costs.loops)
    return wrap([(outer, loop.kind), (copy, "unroll"), (lane, "vector")], body)


def _windows_share(body: tuple[Stmt, ...], vector: Axis, k: LaneCosts) -> bool:
    """Check whether steps of a reduce loop inside lanes read interleaved elements, so that unrolled steps share
    loads."""
    for stmt, around in walk(body):
        if not isinstance(stmt, Load) or not around or stmt.guard:
            continue
        stride = access(stmt.index, vector).stride
        if stride in k.shuffled_strides and around[-1].kind == "reduce":
            return 0 < abs(hint(access(stmt.index, around[-1].axis).stride)) < stride
    return False


def _fills_gaps(loop: Loop, vector: Axis, k: LaneCosts) -> bool:
    """Check whether the stores of a loop inside lanes fill the gaps between lanes contiguously."""
    stores = [s for s in loop.body if isinstance(s, Store)]
    if not is_leaf(loop) or loop.kind != "parallel" or not is_short(loop, max(k.shuffled_strides)):
        return False
    if loop.axis.extent not in k.shuffled_strides:
        return False
    return bool(stores) and all(_fills_gap(s, loop.axis, vector) for s in stores)


def _fills_gap(store: Store, axis: Axis, vector: Axis) -> bool:
    gap = access(store.index, vector).stride == axis.extent
    return gap and access(store.index, axis) == UNIT and not (store.guard or store.combine)
