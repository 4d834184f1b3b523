"""Vector accesses: 8 or 16 aligned bytes of a vector loop, read or written at once."""

from __future__ import annotations

from collections.abc import Collection

from graphc.base.sizes.size import is_size
from graphc.codegen.cuda.types import memory_type
from graphc.ir.kernel.index import Axis, Index, axes_of
from graphc.ir.kernel.statements import Load, Loop, Store, walk

MEMBERS = "xyzw"
"""CUDA's names of the elements of a vector."""
WIDTHS = {"float": (2, 4), "int": (2, 4), "double": (2,), "long long": (2,)}
"""Lengths of the prelude's vectors, by element type."""


def wide_loads(loop: Loop, aligned: Collection[str]) -> list[Load]:
    """Return the loads of a vector loop that read all its elements at once, from buffers ``aligned`` to 16 bytes that
    the loop does not write."""
    written = {s.buffer for s, _ in walk(loop.body) if isinstance(s, Store)}
    return [
        s
        for s in loop.body
        if isinstance(s, Load)
        and not s.guard
        and s.buffer in aligned
        and s.buffer not in written
        and loop.axis.extent in WIDTHS.get(memory_type(s.dtype), ())
        and is_vector(s.index, loop.axis)
    ]


def wide_stores(loop: Loop, buffers: Collection[str]) -> list[Store]:
    """Return the stores of a vector loop that write all its elements to some of these ``buffers``.

    Each is the only store to its buffer, with no load after it and one condition for all elements, and starts at a
    multiple of their number.
    """
    accesses = [s for s, _ in walk(loop.body) if isinstance(s, Load | Store)]
    return [
        s
        for s in loop.body
        if isinstance(s, Store)
        and s.buffer in buffers
        and s.combine is None
        and all(other.buffer != s.buffer for other in accesses[accesses.index(s) + 1 :])
        and sum(isinstance(other, Store) and other.buffer == s.buffer for other in accesses) == 1
        and not any(loop.axis in axes_of(bound.index) for bound in s.guard)
        and is_vector(s.index, loop.axis)
    ]


def is_vector(index: Index, axis: Axis) -> bool:
    """Return whether the iterations along an axis access neighbours, the first at a multiple of their number."""
    rest = index - Index(((axis, 1),))
    numbers = (rest.constant, *(factor for _, factor in rest.terms))
    plain = index.coefficient(axis) == 1 and axis not in axes_of(rest)
    return plain and all(not is_size(n) and n % axis.extent == 0 for n in numbers)
