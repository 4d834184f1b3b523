"""Named dimensions: ``Dim``, and parsing of size expressions."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.sizes.size import LARGEST, Dimension, Size, always, is_size, larger, terms
from graphc.base.sizes.size_terms import dimensions_of
from graphc.base.sizes.size_text import NAME

_NAME = re.compile(NAME)
EXPECTED = 32
"""Size that the compiler optimizes for where neither a hint nor a call says more."""


def Dim(
    name: str,
    min: int = 1,
    max: int = LARGEST,
    hint: int | None = None,
    common: Sequence[int] = (),
) -> Any:
    """Name a dimension whose size differs from call to call; ``dims`` of ``compile`` takes it.

    ``batch + 1``, ``2 * time`` and quotients of dimensions are sizes too.

    Args:
        name: printable text without a backquote.
        min, max: smallest and largest size, both included.
        hint: size that the compiler optimizes for (default: the size in the first call or example; in a trace without
            one 32, or the nearest size in the range).
        common: sizes that get a program of their own in addition.

    Returns:
        A symbolic size; the number itself where ``min`` equals ``max``.

    Raises:
        ArgumentError: an unsuitable name, an empty range, or a hint outside of the range.

    Example:
        >>> import graphc as gc
        >>> batch = gc.Dim("batch", max=64)
        >>> double = gc.compile(lambda x: x * 2, dims={"x": (batch, 3)})
        >>> [double(gc.ones(n, 3)).shape for n in (1, 5)], len(double.programs)
        ([(1, 3), (5, 3)], 1)
    """
    low, high = operator.index(min), operator.index(max)
    expected = sorted((low, EXPECTED if hint is None else operator.index(hint), high))[1]
    if not is_name(name):
        raise ArgumentError(f"the name of a dimension is printable text without a backquote, not {name!r}")
    if not 0 <= low <= high <= LARGEST:
        raise ArgumentError(
            f"the sizes of dimension {name} are {low}..{high}", remedy=f"pass 0 <= min <= max <= {LARGEST}"
        )
    if (hint is not None and expected != hint) or not all(low <= c <= high for c in common):
        raise ArgumentError(f"hint and common sizes of dimension {name} must be in {low}..{high}")
    if low == high:
        return low
    return size_of(Dimension(name, low, high, expected, tuple(common), hint is not None))


def is_name(name: Any) -> bool:
    """Return whether a dimension may have this name."""
    return isinstance(name, str) and name != "" and name.isprintable() and "`" not in name


def size_of(dimension: Dimension) -> Size:
    """Return a dimension as a size."""
    return Size(((((dimension, 1),), 1),))


def dimensions(sizes: Iterable[Any]) -> dict[str, Dimension]:
    """Return the dimensions that sizes depend on, by name. Raises ArgumentError if two have the same name."""
    by_name: dict[str, Dimension] = {}
    for size in sizes:
        for dimension in dimensions_of(size.terms) if type(size) is Size else ():
            other = by_name.setdefault(dimension.name, dimension)
            if other is not dimension:
                raise ArgumentError(
                    f"two dimensions are named {dimension.name}, one of which is {dimension.low}..{dimension.high}, "
                    f"the other {other.low}..{other.high}",
                    remedy="use one gc.Dim object for both",
                )
    return by_name


def chosen_sizes(by_name: Mapping[str, Dimension], sizes: Mapping[str, int]) -> dict[Dimension, Any]:
    """Return the value of each dimension in ``by_name``: its size in ``sizes``, or the dimension itself.

    Raises ArgumentError for an unknown name and for a size out of range.
    """
    for name, size in sizes.items():
        if name not in by_name:
            raise ArgumentError(
                f"there is no dimension {name}", remedy=f"use one of {', '.join(by_name)}" if by_name else None
            )
        if not is_size(size):
            _check_range(by_name[name], size)
    return {d: sizes.get(name, size_of(d)) for name, d in by_name.items()}


def _check_range(dimension: Dimension, size: int) -> None:
    if not dimension.low <= size <= dimension.high:
        raise ArgumentError(f"dimension {dimension.name} is {size}, outside of {dimension.low}..{dimension.high}")


def parse_size(text: str, by_name: Mapping[str, Dimension]) -> Any:
    """Return the size that prints as ``text`` with the dimensions ``by_name``. Raises ArgumentError for any other
    text."""
    symbols = {"max": "max"} | {str(d): f"_{i}" for i, d in enumerate(by_name.values())}
    sizes = {symbols[str(d)]: size_of(d) for d in by_name.values()}
    try:
        spelled = _NAME.sub(lambda name: symbols.get(name.group(), "unknown"), text)
        size = _read(ast.parse(spelled, mode="eval").body, sizes)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        size = None
    if str(size) != text:
        raise ArgumentError(f"{text[:60]!r} is not a size of the dimensions {', '.join(by_name) or '(none)'}")
    return size


def _read(tree: ast.expr, sizes: Mapping[str, Any]) -> Any:
    """Evaluate a syntax tree with dimensions of these symbols; raises ValueError for syntax that sizes do not have."""
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.Name) and tree.id in sizes:
        return sizes[tree.id]
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_read(tree.operand, sizes)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "max" and len(tree.args) == 2:
        return larger(*[_read(operand, sizes) for operand in tree.args])
    if not isinstance(tree, ast.BinOp):
        raise ValueError
    a, b = _read(tree.left, sizes), _read(tree.right, sizes)
    if isinstance(tree.op, ast.Add | ast.Sub):
        return a + b if isinstance(tree.op, ast.Add) else a - b
    if isinstance(tree.op, ast.FloorDiv) and always("<=", 0 if is_size(b) else 1, b):
        return a // b
    if not isinstance(tree.op, ast.Mult) or len(terms(a)) * len(terms(b)) > 1:  # products of sums print as sums
        raise ValueError
    return a * b
