"""Vectorising nests without register blocks: picks axes by cost and splits them into copies, lanes and a tail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphc.codegen.machine.costs import Costs, LaneCosts
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.loops.transform import block_index, depends, wrap, write_out
from graphc.ir.kernel.access import GATHERED, UNIFORM, UNIT, Access, access
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.map import BodyCopier, Names, indices_of, is_leaf, map_statements, names_given
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Acc, Let, Load, Loop, Read, Stmt, Store, Update, walk


@dataclass(frozen=True)
class Choice:
    """What to do with a loop: vectorise it (or leave it as it is), and what an execution then costs."""

    cost: float
    vectorise: bool


def vectorise(
    body: tuple[Stmt, ...], target: Target, names: Names, narrow: frozenset[Axis] = frozenset()
) -> tuple[Stmt, ...]:
    """Every loop nest of ``body`` with its cheapest axes split into lanes; those of ``narrow`` (see
    reduce.narrow_loads) into parts of a vector."""

    def enter(loop: Loop) -> tuple[Stmt, ...] | None:
        if choose(loop, target).vectorise:
            parts = target.vector_bytes // target.costs.memory.narrow_load_bytes if loop.axis in narrow else 1
            return split_lanes(loop, target, names, parts)
        if _runs(loop, target):
            return _pieces(loop, names, target, lanes_of(loop, target), 1)
        if _shares_work(loop, target):
            return (Loop(loop.axis, "unroll", vectorise(loop.body, target, names, narrow)),)
        if number := _chains(loop, target):
            outer, copy = names.axis("o", loop.axis.extent // number), names.axis("u", number)
            copied = BodyCopier(names, {loop.axis: block_index(0, (outer, number), (copy, 1))}).body(loop.body)
            return wrap([(outer, loop.kind), (copy, "unroll")], vectorise(copied, target, names, narrow))
        return None

    return map_statements(body, enter=enter)


def _runs(loop: Loop, target: Target) -> bool:
    """Whether a loop in order keeps running sums (or the like) of what it reads side by side, so that lanes can."""
    if loop.kind != "serial" or not 1 < lanes_of(loop, target) <= loop.axis.extent:
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
    """How many iterations are better done side by side: those around work that is shared, which is a long chain; 0 for
    other loops."""
    inner = loop.body[-1] if loop.body else None
    if loop.kind == "serial" or not isinstance(inner, Loop) or inner.kind != loop.kind:
        return 0
    number = next((n for n in target.costs.lanes.chains if loop.axis.extent % n == 0), 0)
    return number if number and _shares_work(inner, target) else 0


def _shares_work(loop: Loop, target: Target) -> bool:
    """Whether a short loop right around lanes is better written out, since most of what it does stays the same."""
    loops = [s for s in loop.body if isinstance(s, Loop)]
    if loop.axis.extent > target.costs.lanes.written_out or len(loops) != 1 or not isinstance(loop.body[-1], Loop):
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
    """The cheaper of: this loop across lanes, or this loop as it is with the loops inside vectorised."""
    inner, k = 0.0, target.costs.lanes
    for stmt in loop.body:
        inner += choose(stmt, target).cost if isinstance(stmt, Loop) else _scalar_cost(stmt, k)
    plain = loop.axis.extent * (inner + 1.0)
    inside = names_given((loop,))
    if not _legal(loop, inside):
        return Choice(plain, False)
    lanes = lanes_of(loop, target)
    if lanes == 1:
        return Choice(plain, False)
    width = min(lanes, loop.axis.extent)
    steps = -(-loop.axis.extent // lanes)
    across = steps * (_lane_cost(loop.body, loop.axis, width, inside, k) + 1.0)
    across += k.fold * sum(isinstance(s, Update) for s in loop.body)
    return Choice(across, True) if across < plain else Choice(plain, False)


def lanes_of(loop: Loop, target: Target) -> int:
    """Lanes that fit the widest element type computed with in the loop."""
    widest = 4
    for stmt, _ in walk(loop.body):
        if isinstance(stmt, (Let, Load, Acc)):
            widest = max(widest, stmt.dtype.itemsize)
    return max(1, target.vector_bytes // widest)


def _scalar_cost(stmt: Stmt, k: LaneCosts) -> float:
    return k.transcendental if isinstance(stmt, Let) and SCALAR_OPS[stmt.op].transcendental else 1.0


def _legal(loop: Loop, inside: set[str]) -> bool:
    leaf = is_leaf(loop)
    if loop.kind == "serial" or (loop.kind == "reduce" and not leaf):
        return False
    declared = {s.name for s, _ in walk(loop.body) if isinstance(s, Acc)}
    for stmt, _ in walk(loop.body):
        if isinstance(stmt, Store):
            found = access(stmt.index, loop.axis, inside)
            if found == UNIFORM or (stmt.combine and found == GATHERED):
                return False
        if isinstance(stmt, Update) and stmt.acc not in declared and loop.kind != "reduce":
            return False
    return True


def _lane_cost(body: tuple[Stmt, ...], axis: Axis, lanes: int, inside: set[str], k: LaneCosts) -> float:
    cost = 0.0
    for stmt in body:
        if isinstance(stmt, Loop) and _fills_gaps(stmt, axis, k):
            plain = tuple(s for s in stmt.body if not isinstance(s, Store))
            stores = len(stmt.body) - len(plain)
            cost += stmt.axis.extent * (_lane_cost(plain, axis, lanes, inside, k) + k.gap_store * stores)
        elif isinstance(stmt, Loop):
            cost += stmt.axis.extent * (_lane_cost(stmt.body, axis, lanes, inside, k) + 1.0)
        elif isinstance(stmt, (Load, Store)):
            found = [access(i, axis, inside) for i in indices_of(stmt)]
            cost += _access_cost(found, isinstance(stmt, Load), lanes, k)
        else:
            cost += _scalar_cost(stmt, k)
    return cost


def _access_cost(found: Sequence[Access], load: bool, lanes: int, k: LaneCosts) -> float:
    """Vector operations of one access with these indices; short strides of reads are whole vectors and shuffles."""
    if all(a.plain for a in found):
        return 1.0
    if load and all(a.plain or a.stride in k.shuffled_strides for a in found):
        return k.shuffled_read * max(a.stride for a in found)
    strides = [abs(a.stride) for a in found]
    conflict = max(strides) >= k.line_stride and any(s % k.conflict_stride == 0 for s in strides if s)
    return (k.gather if load else k.scatter) * lanes * (k.conflict if conflict else 1.0)


def split_lanes(loop: Loop, target: Target, names: Names, parts: int = 1) -> tuple[Stmt, ...]:
    """The loop as: blocks of several vectors, single vectors, and a tail of fewer lanes; with ``parts`` of each vector
    for itself."""
    lanes, extent = max(1, lanes_of(loop, target) // parts), loop.axis.extent
    return _pieces(loop, names, target, lanes, _copies(loop, extent // lanes, parts, target.costs.lanes))


def _is_long(body: tuple[Stmt, ...]) -> bool:
    """Whether values take so many operations, one after the other, that the machine sees few of them at a time."""
    sums = any(isinstance(s, Update) for s in body)
    return not sums and any(isinstance(s, Let) and SCALAR_OPS[s.op].transcendental for s in body)


def _pieces(loop: Loop, names: Names, target: Target, lanes: int, copies: int) -> tuple[Stmt, ...]:
    extent = loop.axis.extent
    full = extent // lanes // copies
    result: list[Stmt] = []
    done = full * copies * lanes
    if full:
        result += _piece(loop, names, target.costs, 0, full, copies, lanes)
    singles = (extent - done) // lanes
    if singles:
        result += _piece(loop, names, target.costs, done, singles, 1, lanes)
        done += singles * lanes
    for width in _tail(extent - done, target):
        result += _piece(loop, names, target.costs, done, 1, 1, width)
        done += width
    return tuple(result)


def _tail(rest: int, target: Target) -> list[int]:
    """Widths of the last vectors: one masked vector, or powers of two where masks are slow."""
    if not rest:
        return []
    if target.masked:
        return [rest]
    return [1 << bit for bit in reversed(range(rest.bit_length())) if rest >> bit & 1]


def _copies(loop: Loop, vectors: int, parts: int, k: LaneCosts) -> int:
    """Independent vectors in flight: enough to hide latency, few enough for the registers."""
    size = sum(1 for _ in walk(loop.body))
    most = parts * next((n for statements, n in k.copies if size <= statements), 1)
    most *= k.long_copies if _is_long(loop.body) else 1
    sums = sum(isinstance(s, Acc) for s in loop.body)
    if size <= k.small_sum * sums and any(isinstance(s, Loop) for s in loop.body):
        # NOTE: sums of columns read longer pieces of each row, which memory delivers faster.
        most = max(1, k.sum_copies >> (sums - 1).bit_length())
    while most > 1 and vectors < most:
        most //= 2
    return most


def _piece(
    loop: Loop, names: Names, costs: Costs, start: int, number: int, copies: int, lanes: int
) -> tuple[Stmt, ...]:
    if loop.kind == "serial" and number == lanes == 1:
        return BodyCopier(names, {loop.axis: start}).body(loop.body)
    outer, copy, lane = names.axis("o", number), names.axis("u", copies), names.axis("l", lanes)
    index = block_index(start, (outer, copies * lanes), (copy, lanes), (lane, 1))
    body = BodyCopier(names, {loop.axis: index}).body(loop.body)
    k = costs.lanes
    body = tuple(replace(s, kind="unroll") if isinstance(s, Loop) and _fills_gaps(s, lane, k) else s for s in body)
    if _windows_share(body, lane, k):
        body = write_out(body, names, costs.loops)
    return wrap([(outer, loop.kind), (copy, "unroll"), (lane, "vector")], body)


def _windows_share(body: tuple[Stmt, ...], vector: Axis, k: LaneCosts) -> bool:
    """Whether steps of a loop inside lanes read elements that lie between those of other steps: written out, they share
    what is read."""
    for stmt, around in walk(body):
        if not isinstance(stmt, Load) or not around or stmt.guard:
            continue
        stride = access(stmt.index, vector).stride
        if stride in k.shuffled_strides and around[-1].kind == "reduce":
            return 0 < abs(access(stmt.index, around[-1].axis).stride) < stride
    return False


def _fills_gaps(loop: Loop, vector: Axis, k: LaneCosts) -> bool:
    """Whether what the iterations of a loop inside lanes store lies side by side between the lanes."""
    stores = [s for s in loop.body if isinstance(s, Store)]
    if not is_leaf(loop) or loop.kind != "parallel" or loop.axis.extent not in k.shuffled_strides:
        return False
    return bool(stores) and all(_fills_gap(s, loop.axis, vector) for s in stores)


def _fills_gap(store: Store, axis: Axis, vector: Axis) -> bool:
    gap = access(store.index, vector).stride == axis.extent
    return gap and access(store.index, axis) == UNIT and not (store.guard or store.combine)
