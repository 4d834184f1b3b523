"""Transformations of loop nests: merge, split into blocks, sort, hoist loop-invariant code."""

from __future__ import annotations

from dataclasses import replace

from graphc.base.sizes.size import always, hint, is_one, is_size
from graphc.codegen.machine.costs import LoopCosts
from graphc.ir.kernel.index import Axis, Div, Dynamic, Index, Mod, as_index, atoms, axes_of
from graphc.ir.kernel.map import BodyCopier, Names, indices_of, is_leaf, map_statements, names_given
from graphc.ir.kernel.statements import IndexLet, Let, Load, Loop, Stmt, Store, walk

# ---- merging


def drop_trivial(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Replace loops of one iteration by their body, and drop empty ones; keep loops whose extent varies by call."""

    def enter(loop: Loop) -> tuple[Stmt, ...] | None:
        if is_one(loop.axis.extent) and not loop.until:
            return drop_trivial(BodyCopier(names, {loop.axis: 0}).body(loop.body), names)
        return None if is_size(loop.axis.extent) or loop.axis.extent else ()

    return map_statements(body, enter=enter)


def merge_loops(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Merge adjacent nested loops of one kind wherever every index treats them as one axis."""

    def leave(loop: Loop) -> tuple[Stmt, ...]:
        inner = loop.body[0] if len(loop.body) == 1 else None
        if isinstance(inner, Loop) and inner.kind == loop.kind and _mergeable(loop, inner):
            return (_merged(loop.axis, inner, names),)
        return (loop,)

    return map_statements(body, leave=leave)


def _mergeable(loop: Loop, inner: Loop) -> bool:
    outer = loop.axis
    if loop.until or inner.until:
        return False
    for stmt, _ in walk(inner.body):
        pending = list(indices_of(stmt))
        while pending:
            index = pending.pop()
            if index.coefficient(outer) != index.coefficient(inner.axis) * inner.axis.extent:
                return False
            pending += [atom.operand for atom, _ in index.terms if isinstance(atom, (Div, Mod))]
        if isinstance(stmt, (Load, Store)) and any(axes_of(b.index) & {outer, inner.axis} for b in stmt.guard):
            return False
    return True


def _merged(outer: Axis, inner: Loop, names: Names) -> Loop:
    axis = names.axis("m", outer.extent * inner.axis.extent)
    copier = BodyCopier(names, {outer: 0, inner.axis: axis})
    return Loop(axis, inner.kind, copier.body(inner.body))


# ---- splitting and ordering


def split_loops(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Split each loop whose axis an index divides by a constant, so that quotient and remainder become axes."""

    def enter(loop: Loop) -> tuple[Stmt, ...] | None:
        divisor = _divisor(loop)
        if not divisor:
            return None
        outer, inner = names.axis("d", loop.axis.extent // divisor), names.axis("d", divisor)
        index = block_index(0, (outer, divisor), (inner, 1))
        copied = BodyCopier(names, {loop.axis: index}).body(loop.body)
        return split_loops((Loop(outer, loop.kind, (Loop(inner, loop.kind, copied),)),), names)

    return map_statements(body, enter=enter) if has_divisor(body) else body


def has_divisor(body: tuple[Stmt, ...]) -> bool:
    """Check whether ``split_loops`` would split a loop (merging may create such loops)."""
    for stmt, loops in walk(body):
        for index in indices_of(stmt):
            for atom, _ in index.terms:
                if isinstance(atom, (Div, Mod)) and any(
                    atom.operand == as_index(loop.axis) and _splits(loop.axis.extent, atom.divisor) for loop in loops
                ):
                    return True
    return False


def _divisor(loop: Loop) -> int:
    """Return the smallest number by which an index divides the axis alone and which divides its extent; 0 if none.

    Sizes known only at run time are compared by their expected values.
    """
    divisors: set[int] = set()
    for stmt, _ in walk(loop.body):
        for index in indices_of(stmt):
            for atom, _ in index.terms:
                if isinstance(atom, (Div, Mod)) and atom.operand == as_index(loop.axis):
                    divisors.add(atom.divisor)
    usable = [d for d in divisors if not loop.until and _splits(loop.axis.extent, d)]
    return min(usable, default=0, key=lambda d: (hint(d), str(d)))


def _splits(extent: int, divisor: int) -> bool:
    if is_size(extent) or is_size(divisor):
        return always("==", extent % divisor, 0) and not (is_one(divisor) or always("==", divisor, extent))
    return extent % divisor == 0 and 1 < divisor < extent


def sort_loops(body: tuple[Stmt, ...], strict_order: bool = False) -> tuple[Stmt, ...]:
    """Interchange perfectly nested parallel or reduce loops: the smallest strides in memory go innermost.

    In ``strict_order`` only parallel loops are interchanged.
    """
    kinds = ("parallel",) if strict_order else ("parallel", "reduce")
    return map_statements(body, enter=lambda loop: _sorted_loops(loop, kinds))


def _sorted_loops(loop: Loop, kinds: tuple[str, ...]) -> tuple[Stmt, ...]:
    axes, inner = [loop.axis], loop.body
    while loop.kind in kinds and len(inner) == 1 and not loop.until:
        nested = inner[0]
        if not isinstance(nested, Loop) or nested.kind != loop.kind or nested.until:
            break
        axes.append(nested.axis)
        inner = nested.body
    if len(axes) == 1:
        return (replace(loop, body=map_statements(inner, enter=lambda x: _sorted_loops(x, kinds))),)
    steps = {a: _step(a, inner) for a in axes}
    axes.sort(key=lambda a: -steps[a])
    return wrap([(a, loop.kind) for a in axes], map_statements(inner, enter=lambda x: _sorted_loops(x, kinds)))


def _step(axis: Axis, body: tuple[Stmt, ...]) -> int:
    """Return the largest stride between iterations, in elements: of stores, else of loads."""
    stores = [abs(hint(s.index.coefficient(axis))) for s, _ in walk(body) if isinstance(s, Store)]
    loads = [abs(hint(s.index.coefficient(axis))) for s, _ in walk(body) if isinstance(s, Load)]
    return max(stores, default=0) or max(loads, default=0)


# ---- invariants


def hoist(body: tuple[Stmt, ...], stored: set[str]) -> tuple[Stmt, ...]:
    """Move scalar operations, and loads of read-only buffers, out of loops on which they do not depend.

    ``stored`` are the buffers that the kernel writes. Loads stay in loops that may be empty, as the element may not
    exist then.
    """

    def leave(loop: Loop) -> tuple[Stmt, ...]:
        varying: set[str] = set()
        varying_stmts: list[Stmt] = []
        invariant: list[Stmt] = []
        runs = always("<=", 1, loop.axis.extent)
        for s in loop.body:
            if depends(s, loop.axis, varying, stored) or (isinstance(s, Load) and not runs):
                varying.update(names_given((s,)))
                varying_stmts.append(s)
            else:
                invariant.append(s)
        return (*invariant, replace(loop, body=tuple(varying_stmts)) if invariant else loop)

    return map_statements(body, leave=leave)


def depends(s: Stmt, axis: Axis, varying: set[str], stored: set[str]) -> bool:
    """Check whether a statement varies between iterations over ``axis``, given the ``varying`` scalars."""
    if isinstance(s, Let):
        return any(isinstance(a, str) and a in varying for a in s.args)
    if isinstance(s, (IndexLet, Load)):
        if isinstance(s, Load) and (s.buffer in stored or s.guard):
            return True
        return any(a == axis or (isinstance(a, Dynamic) and a.name in varying) for i in indices_of(s) for a in atoms(i))
    return True


# ---- blocks


def write_out(body: tuple[Stmt, ...], names: Names, k: LoopCosts) -> tuple[Stmt, ...]:
    """Unroll short innermost reduce loops: a window of 3 or 5 then costs no loop."""

    def enter(loop: Loop) -> tuple[Stmt, ...] | None:
        if not is_leaf(loop) or loop.kind != "reduce" or not is_short(loop, k.written_out):
            return None
        copies = [BodyCopier(names, {loop.axis: i}).body(loop.body) for i in range(loop.axis.extent)]
        return tuple(s for copy in copies for s in copy)

    return map_statements(body, enter=enter)


def sums_in_turn(extent: int, most: int) -> int:
    """Return the number of sums, up to ``most``, to which ``extent`` numbers are added in turn."""
    return next((n for n in range(most, 1, -1) if extent % n == 0), 1)


def interleave(body: tuple[Stmt, ...], most: int, names: Names) -> tuple[Stmt, ...]:
    """Let the last reduce loop add to up to ``most`` sums in turn, so that additions do not wait for each other.

    A sum with weights ends after the last one that is not zero, and is left alone.
    """

    def enter(loop: Loop) -> tuple[Stmt, ...] | None:
        extent = loop.axis.extent
        if not is_leaf(loop) or loop.kind != "reduce" or loop.until or is_size(extent):
            return None
        if any(isinstance(s, Let) and s.op == "weigh" for s in loop.body):
            return None
        chains = sums_in_turn(extent, most)
        if chains == 1:
            return None
        outer, copy = names.axis("o", extent // chains), names.axis("u", chains)
        index = block_index(0, (outer, chains), (copy, 1))
        return wrap([(outer, "reduce"), (copy, "unroll")], BodyCopier(names, {loop.axis: index}).body(loop.body))

    return map_statements(body, enter=enter)


def is_short(loop: Loop, most: int) -> bool:
    """Check whether a loop can be unrolled: it has a constant number of iterations, at most ``most``."""
    return not is_size(loop.axis.extent) and loop.axis.extent <= most


def blocks(extent: int, largest: int) -> list[tuple[int, int, int]]:
    """Return (start, count, size) of runs of equal blocks that cover ``extent`` with blocks of at most ``largest``.

    49 by 14 is one block of 13 and three of 12. An extent known only at run time gives full blocks of ``largest`` and
    one block for the remainder, which may be empty.
    """
    if is_size(extent) or is_size(largest):
        full, rest = extent // largest, extent % largest
        return [run for run in ((0, full, largest), (full * largest, 1, rest)) if run[1] and run[2]]
    if extent <= 0:
        return []
    number = -(-extent // largest)
    small, larger = divmod(extent, number)
    runs = []
    if larger:
        runs.append((0, larger, small + 1))
    if number - larger:
        runs.append((larger * (small + 1), number - larger, small))
    return runs


def full_blocks(extent: int, size: int) -> list[tuple[int, int, int]]:
    """Return (start, count, size) of full blocks, and of blocks of one for the remainder."""
    full = extent // size
    return [run for run in ((0, full, size), (full * size, extent - full * size, 1)) if run[1]]


def wrap(axes: list[tuple[Axis, str]], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return ``body`` inside loops over ``axes`` ((axis, kind), outermost first), without loops of one iteration.

    A vector loop of one lane stays: its updates of an accumulator with lanes belong to one lane only.
    """
    for axis, kind in reversed(axes):
        if not is_one(axis.extent) or kind == "vector":
            body = (Loop(axis, kind, body),)
    return body


def block_index(start: int, *terms: tuple[Axis, int]) -> Index:
    """Return ``start`` plus the sum of axis times step over ``terms``."""
    index = as_index(start)
    for axis, step in terms:
        index = index + as_index(axis) * step
    return index
