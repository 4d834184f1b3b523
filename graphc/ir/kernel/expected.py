"""Kernels as they are when dimensions have the sizes that are expected: what estimates look at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from graphc.base.sizes.named_dims import dimensions
from graphc.base.sizes.size import Dimension, at, hint, is_size
from graphc.ir.kernel.dims import bind_kernel, dims_of_kernel
from graphc.ir.kernel.index import Atom, Axis, Div, Dynamic, Index, Mod, total
from graphc.ir.kernel.map import map_indices
from graphc.ir.kernel.statements import Kernel, Load, Loop, Prefetch, Stmt, Store, walk

Access = TypeVar("Access", Load, Store, Prefetch)


def ample(size: Any, most: int) -> int:
    """What a size is when its dimensions are as large as they may be, but no larger than ``most`` where more is not
    expected."""
    return at(size, {d: _ample(d, most) for d in dimensions([size]).values()}) if is_size(size) else size


def ample_kernel(kernel: Kernel, most: int) -> Kernel:
    """The kernel whose dimensions are as large as those of ``ample``."""
    return bind_kernel(kernel, {name: _ample(d, most) for name, d in dims_of_kernel(kernel).items()})


def _ample(dimension: Dimension, most: int) -> int:
    return min(dimension.high, max(dimension.hint, most))


def expected_axis(axis: Axis) -> Axis:
    """The axis with its expected extent; of 1 where none is expected, for estimates divide by it."""
    return Axis(axis.name, max(1, hint(axis.extent))) if is_size(axis.extent) else axis


def expected_index(index: Index) -> Index:
    """The index with expected coefficients, of axes with expected extents; the same object where all are known."""
    if not _holds_sizes(index):
        return index
    parts = [_expected_atom(atom) * hint(coefficient) for atom, coefficient in index.terms]
    return total(parts, hint(index.constant))


def expected_body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with expected axes and indices; guards are between the bounds that they have."""
    return _with_axes(map_indices(body, expected_index))


def holds_sizes(body: tuple[Stmt, ...]) -> bool:
    """Whether a size that is known at run time is among the extents of loops or in an index."""
    for stmt, _ in walk(body):
        if isinstance(stmt, Loop):
            if is_size(stmt.axis.extent):
                return True
        elif isinstance(stmt, Load | Store | Prefetch) and _holds_sizes(stmt.index):
            return True
    return False


def _with_axes(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(_with_expected_axis(s) if isinstance(s, Loop) else s for s in body)


def _with_expected_axis(loop: Loop) -> Loop:
    return replace(loop, axis=expected_axis(loop.axis), body=_with_axes(loop.body))


def _expected_atom(atom: Atom) -> Index:
    if isinstance(atom, Axis):
        return Index(((expected_axis(atom), 1),))
    if isinstance(atom, Dynamic):
        return Index(((Dynamic(atom.name, hint(atom.low), hint(atom.high)), 1),))
    operand, divisor = expected_index(atom.operand), hint(atom.divisor)
    return operand // divisor if isinstance(atom, Div) else operand % divisor


def _holds_sizes(index: Index) -> bool:
    return is_size(index.constant) or any(is_size(c) or _atom_holds_sizes(a) for a, c in index.terms)


def _atom_holds_sizes(atom: Atom) -> bool:
    if isinstance(atom, Axis):
        return is_size(atom.extent)
    if isinstance(atom, Div | Mod):
        return is_size(atom.divisor) or _holds_sizes(atom.operand)
    return is_size(atom.low) or is_size(atom.high)
