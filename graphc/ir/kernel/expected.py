"""Kernels with expected sizes in place of dimensions, for estimates."""

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
    """Return a size for dimensions at their largest values, but at most ``most`` unless more is expected."""
    return at(size, {d: _ample(d, most) for d in dimensions([size]).values()}) if is_size(size) else size


def ample_kernel(kernel: Kernel, most: int) -> Kernel:
    """Return the kernel with dimensions as large as in ``ample``."""
    return bind_kernel(kernel, {name: _ample(d, most) for name, d in dims_of_kernel(kernel).items()})


def _ample(dimension: Dimension, most: int) -> int:
    return min(dimension.high, max(dimension.hint, most))


def expected_axis(axis: Axis) -> Axis:
    """Return the axis with its expected extent, at least 1, because estimates divide by it."""
    return Axis(axis.name, max(1, hint(axis.extent))) if is_size(axis.extent) else axis


def expected_index(index: Index) -> Index:
    """Return the index with expected coefficients and extents; the same object if it has no run-time sizes."""
    if not _holds_sizes(index):
        return index
    terms = [_expected_atom(atom) * hint(coefficient) for atom, coefficient in index.terms]
    return total(terms, hint(index.constant))


def expected_body(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements with expected axes and indices; guards keep their bounds."""
    return _with_axes(map_indices(body, expected_index))


def holds_sizes(body: tuple[Stmt, ...]) -> bool:
    """Check whether extents of loops or indices contain sizes known only at run time."""
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
