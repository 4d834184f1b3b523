"""Hardware tiles: sums of products of bf16 pairs in matrix registers (such as AMX tiles)."""

from __future__ import annotations

from graphc.base.dtypes import bfloat16x2, float32
from graphc.base.sizes.size import is_size
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.match import Contraction
from graphc.codegen.schedule.loops.transform import block_index, is_leaf, wrap
from graphc.ir.kernel.access import UNIFORM, UNIT, access
from graphc.ir.kernel.index import Axis, atoms, axes_of
from graphc.ir.kernel.map import BodyCopier, Names, map_statements
from graphc.ir.kernel.statements import Acc, Const, Load, Loop, Stmt

_LEAST_STEPS = 8
"""Least number of steps of a sum in a product of tiles: half of the largest."""


def tile_steps(c: Contraction, a: Load, b: Load, axis: Axis, target: Target) -> int:
    """Return the steps of the sum in one product of tiles, with rows of ``a`` and a panel of ``b`` along ``axis``.

    This is the largest possible divisor of the sum's innermost axis; 0 if it is small, or if tiles are impossible.
    """
    pairs = a.dtype is bfloat16x2 and b.dtype is bfloat16x2 and c.dtype is float32 and a.name != b.name
    if not target.tile_rows or not pairs or c.unpacked or a.guard or b.guard:
        return 0
    if any(is_size(x.extent) for x in (*c.outer, *c.reduced)) or not _is_plain(c, a, b):
        return 0
    if access(a.index, axis) != UNIFORM or not all(set(c.reduced) <= axes_of(x.index) for x in (a, b)):
        return 0
    extent = c.reduced[-1].extent
    most = max(n for n in range(1, target.tile_rows + 1) if extent % n == 0)
    return most if most >= _LEAST_STEPS else 0


def _is_plain(c: Contraction, a: Load, b: Load) -> bool:
    """Check whether sums start at 0 and indices are affine."""
    starts = [s.init for s in c.body if isinstance(s, Acc)]
    zero = all(isinstance(x, Const) and x.value == 0 for x in starts)
    return zero and all(isinstance(x, Axis) for load in (a, b) for x in atoms(load.index))


def rows_are_packed(c: Contraction, a: Load, row: Axis) -> bool:
    """Check whether rows must be packed for tiles, which need contiguous elements along the sum."""
    return access(a.index, c.reduced[-1]) != UNIT or not access(a.index, row).stride


def in_tiles(axes: tuple[Axis, Axis, Axis], core: tuple[Stmt, ...], steps: int, names: Names) -> tuple[Stmt, ...]:
    """Wrap the sums of a block in ``tile`` loops over its rows, vectors and lanes.

    The loops represent whole tiles: each iteration of the innermost reduce loop takes ``steps`` steps of the sum.
    """

    def enter(loop: Loop) -> tuple[Stmt, ...] | None:
        if loop.kind != "reduce" or not is_leaf(loop):
            return None
        step, inner = names.axis("o", loop.axis.extent // steps), names.axis("t", steps)
        body = BodyCopier(names, {loop.axis: block_index(0, (step, steps), (inner, 1))}).body(loop.body)
        return wrap([(step, "reduce")], (Loop(inner, "reduce", body),))

    body = map_statements(core, enter=enter)
    for axis in reversed(axes):
        body = (Loop(axis, "tile", body),)
    return body
