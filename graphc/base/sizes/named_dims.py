"""Named dimensions as users write them, and those on which sizes depend."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.sizes.size import LARGEST, Dimension, Size, always, is_size, terms
from graphc.base.sizes.size_terms import dimensions_of

LOOP = re.compile(r"[a-z](r|c|j|y|moved)?_?[0-9]+(_some)?|once_[0-9]+")
"""What loops of kernels are called: dimensions are called otherwise, so that texts of kernels say one thing."""


def Dim(
    name: str,
    min: int = 1,
    max: int = LARGEST,
    hint: int | None = None,
    common: Sequence[int] = (),
) -> Any:
    """A named dimension of which each call has its own size, ``min`` to ``max`` (included).

    ``hint`` is the size for which decisions are made (32, or the nearest in the range). For each size in ``common`` a
    program of its own is made, too. ``batch + 1``, ``2 * time`` and quotients are sizes as well. Raises ArgumentError
    for names that are no identifiers, for those of loops of kernels (``i0``, ``r_0``), and for empty ranges.
    """
    low, high = operator.index(min), operator.index(max)
    expected = sorted((low, 32 if hint is None else operator.index(hint), high))[1]
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError(f"the name of a dimension is an identifier, not {name!r}")
    if LOOP.fullmatch(name):
        raise ArgumentError(f"loops of kernels are called {name}", remedy=f"another name: size_{name}")
    if not 0 <= low <= high <= LARGEST:
        raise ArgumentError(f"the sizes of dimension {name} are {low}..{high}", remedy=f"0 <= min <= max <= {LARGEST}")
    if (hint is not None and expected != hint) or not all(low <= c <= high for c in common):
        raise ArgumentError(f"hint and common sizes of dimension {name} lie in {low}..{high}")
    if low == high:
        return low
    return size_of(Dimension(name, low, high, expected, tuple(common)))


def size_of(dimension: Dimension) -> Size:
    """The size that a dimension is."""
    return Size(((((dimension, 1),), 1),))


def dimensions(sizes: Iterable[Any]) -> dict[str, Dimension]:
    """The dimensions on which sizes depend, by name. Raises ArgumentError where two have one name."""
    found: dict[str, Dimension] = {}
    for size in sizes:
        for dimension in dimensions_of(size.terms) if type(size) is Size else ():
            other = found.setdefault(dimension.name, dimension)
            if other is not dimension:
                raise ArgumentError(
                    f"two dimensions are named {dimension.name}, one of which is {dimension.low}..{dimension.high}, "
                    f"the other {other.low}..{other.high}",
                    remedy="one gc.Dim object for one dimension",
                )
    return found


def chosen_sizes(known: Mapping[str, Dimension], sizes: Mapping[str, int]) -> dict[Dimension, Any]:
    """What stands for each known dimension when those that are named have these sizes: for the others they themselves.

    Raises ArgumentError for an unknown name and for a number outside of the range.
    """
    for name, size in sizes.items():
        if name not in known:
            raise ArgumentError(f"there is no dimension {name}", remedy=f"one of {', '.join(known)}" if known else None)
        if not is_size(size):
            _check_range(known[name], size)
    return {d: sizes.get(name, size_of(d)) for name, d in known.items()}


def _check_range(dimension: Dimension, size: int) -> None:
    if not dimension.low <= size <= dimension.high:
        raise ArgumentError(f"dimension {dimension.name} is {size}, it lies in {dimension.low}..{dimension.high}")


def parse_size(text: str, known: Mapping[str, Dimension]) -> Any:
    """The size that prints as ``text``, whose dimensions are ``known``. Raises ArgumentError for any other text."""
    try:
        found = _read(ast.parse(text, mode="eval").body, known)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found = None
    if str(found) != text:
        raise ArgumentError(f"{text[:60]!r} is no size of the dimensions {', '.join(known) or '(none)'}")
    return found


def _read(tree: ast.expr, known: Mapping[str, Dimension]) -> Any:
    """The value of a tree; ValueError where it has parts that texts of sizes lack."""
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.Name) and tree.id in known:
        return size_of(known[tree.id])
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_read(tree.operand, known)
    if not isinstance(tree, ast.BinOp):
        raise ValueError
    a, b = _read(tree.left, known), _read(tree.right, known)
    if isinstance(tree.op, ast.Add | ast.Sub):
        return a + b if isinstance(tree.op, ast.Add) else a - b
    if isinstance(tree.op, ast.FloorDiv) and always("<=", 0 if is_size(b) else 1, b):
        return a // b
    if not isinstance(tree.op, ast.Mult) or len(terms(a)) * len(terms(b)) > 1:  # products of sums print as sums
        raise ValueError
    return a * b
