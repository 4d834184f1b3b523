"""Transposing nests: tile them so that strided loads become register transposes."""

from __future__ import annotations

from graphc.base.sizes.size import hint, is_size
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.lanes.choose import lanes_of, split_lanes, tail
from graphc.codegen.schedule.loops.transform import block_index, wrap
from graphc.ir.kernel.access import GATHERED, UNIT, access
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.map import BodyCopier, Names
from graphc.ir.kernel.statements import Load, Loop, Stmt, Store


def transposed_tiles(loop: Loop, target: Target, names: Names) -> tuple[Stmt, ...] | None:
    """Return the nest in square blocks whose strided loads become register transposes; None for other nests.

    The nest must be a perfect nest of parallel loops with all stores contiguous along one axis, and some loads
    contiguous along another.
    """
    form = _form(loop, target)
    if form is None:
        return None
    axes, body, (along, across) = form
    lanes = lanes_of(loop, target)
    rest = [a for a in axes if a not in (along, across)]
    result: list[Stmt] = []
    full_rows = across.extent // lanes
    near = max((n for n in target.costs.lanes.transposed_blocks if full_rows % n == 0), default=1)
    full = along.extent // lanes
    # NOTE: the last columns of a size known only at run time are transposed by powers of two: a masked transpose would
    # read masked rows.
    last = tail(full * lanes, along.extent % lanes, lanes, masked=not is_size(along.extent))
    for start, number, size in ((0, full, lanes), *last):
        if number:
            block, next_block, copy = names.axis("o", full_rows // near), names.axis("o", near), names.axis("u", lanes)
            outer, lane = names.axis("o", number), names.axis("l", size)
            mapping = {
                across: block_index(0, (block, near * lanes), (next_block, lanes), (copy, 1)),
                along: block_index(start, (outer, size), (lane, 1)),
            }
            inner = BodyCopier(names, mapping).body(body)
            order = [(block, "parallel"), (outer, "parallel"), (next_block, "parallel")]
            result += wrap([*order, (copy, "unroll"), (lane, "vector")], inner)
    if across.extent % lanes:
        row = names.axis("o", across.extent % lanes)
        inner = BodyCopier(names, {across: block_index(full_rows * lanes, (row, 1))}).body(body)
        result += wrap([(row, "parallel")], split_lanes(Loop(along, "parallel", inner), target, names))
    return wrap([(a, "parallel") for a in rest], tuple(result))


def holds_transposed(loop: Loop, target: Target) -> bool:
    """Check whether a parallel loop contains, among others, a nest for ``transposed_tiles``.

    An example is a transposed image whose rows are padded with zeros.
    """
    inner = [s for s in loop.body if isinstance(s, Loop)] if loop.kind == "parallel" else []
    return any(_form(s, target) is not None or holds_transposed(s, target) for s in inner)


def _form(loop: Loop, target: Target) -> tuple[list[Axis], tuple[Stmt, ...], tuple[Axis, Axis]] | None:
    """Return the axes and body of a transposable nest, with the axis of its stores and the axis of its strided loads;
    None for other nests."""
    axes, body = _perfect(loop)
    lanes, k = lanes_of(loop, target), target.costs.lanes
    fits = lanes >= k.transposed_lanes and len(body) <= k.transposed_statements
    pair = _axes(axes, body, lanes) if fits else None
    return None if pair is None else (axes, body, pair)


def _perfect(loop: Loop) -> tuple[list[Axis], tuple[Stmt, ...]]:
    axes: list[Axis] = []
    body: tuple[Stmt, ...] = (loop,)
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "parallel":
        axes.append(body[0].axis)
        body = body[0].body
    return axes, body


def _axes(axes: list[Axis], body: tuple[Stmt, ...], lanes: int) -> tuple[Axis, Axis] | None:
    """Return (axis along which all stores are contiguous, axis along which the strided loads are), or None."""
    stores = [s for s in body if isinstance(s, Store)]
    loads = [s for s in body if isinstance(s, Load)]
    if (
        any(isinstance(s, Loop) for s in body)
        or any(s.guard for s in (*stores, *loads))
        or any(s.combine for s in stores)
    ):
        return None
    for along in axes:
        if hint(along.extent) < lanes // 2 or not all(access(s.index, along) == UNIT for s in stores):
            continue
        accesses = [access(s.index, along) for s in loads]
        strided = [s for s, a in zip(loads, accesses, strict=True) if not a.plain]
        if not strided or GATHERED in accesses:
            continue
        for across in axes:
            if (
                across != along
                and hint(across.extent) >= lanes
                and all(access(s.index, across) == UNIT for s in strided)
            ):
                return along, across
    return None
