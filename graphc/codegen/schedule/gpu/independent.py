"""Loop interchange of serial loops around parallel ones whose iterations access disjoint elements."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from graphc.base.sizes.size import is_size
from graphc.ir.kernel.index import Axis, Index, axes_of, bounds
from graphc.ir.kernel.statements import OWN_ROLES, IndexLet, Kernel, Let, Load, Loop, Stmt, Store, walk


def independent_outside(kernel: Kernel) -> Kernel:
    """Move parallel loops out of serial ones.

    Needs: a lowered kernel. Does: interchanges a serial loop with a parallel loop inside it, if there are only scalars
    besides; every iteration then computes these. Leaves: an equivalent kernel.

    ``for i serial: for j parallel: y[8 * p[i] + j] += x[i, j]`` -> ``for j parallel: for i serial: ...``.
    """
    if any(b.role in OWN_ROLES for b in kernel.buffers):
        return kernel
    body = tuple(_outside(s) for s in kernel.body)
    return kernel if body == kernel.body else replace(kernel, body=body)


def _outside(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, Loop) or stmt.kind not in ("serial", "parallel"):
        return stmt
    stmt = replace(stmt, body=tuple(_outside(s) for s in stmt.body))
    inner = stmt.body[-1]
    if stmt.kind != "serial" or not isinstance(inner, Loop) or inner.kind != "parallel":
        return stmt
    written = {s.buffer for s, _ in walk((inner,)) if isinstance(s, Store)}
    scalars = stmt.body[:-1]
    if not all(_is_scalar(s, written) for s in scalars) or not _are_disjoint(inner, written):
        return stmt
    return replace(inner, body=(_outside(replace(stmt, body=(*scalars, *inner.body))),))


def _is_scalar(stmt: Stmt, written: Set[str]) -> bool:
    return isinstance(stmt, Let | IndexLet) or (isinstance(stmt, Load) and stmt.buffer not in written)


def _are_disjoint(loop: Loop, written: Set[str]) -> bool:
    """Check whether different iterations of a loop access disjoint elements, for all iterations of outer loops."""
    uses: dict[str, set[int]] = {}
    for stmt, _ in walk((loop,)):
        if isinstance(stmt, Load | Store) and stmt.buffer in written:
            uses.setdefault(stmt.buffer, set()).add(_step(stmt.index, loop.axis))
    return all(len(steps) == 1 and 0 not in steps for steps in uses.values())


def _step(index: Index, axis: Axis) -> int:
    """Return the step along an axis if ``index // step % extent`` is the iteration, else 0."""
    step = index.coefficient(axis)
    numbers = (step, axis.extent, index.constant, *(factor for _, factor in index.terms))
    if any(is_size(n) for n in numbers) or step <= 0:
        return 0
    turn = step * axis.extent
    rest = index - Index(((axis, step),))
    below = Index(tuple((atom, factor) for atom, factor in rest.terms if factor % turn)) + rest.constant % turn
    if axis in axes_of(rest):
        return 0
    low, high = bounds(below)
    constant = not is_size(low) and not is_size(high)
    return step if constant and low >= 0 and high < step else 0
