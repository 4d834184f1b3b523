"""Text of arrays in PyTorch's format: equal widths, integers as ``1.``, long arrays cut to their edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.base.records import dataclass

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]
_LARGE, _SMALL, _RATIO = 1e8, 1e-4, 1e3
"""Beyond these sizes, and this ratio of the largest to the smallest, numbers are printed with exponents."""


@dataclass(frozen=True)
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": _Options(),
    "short": _Options(precision=2, edgeitems=2),
    "full": _Options(threshold=math.inf),
}
_now = [_Options()]


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed: digits after the point (4), the number of elements from which only edges are shown
    (1000), entries per dimension of an edge (3), columns of a line (80), and whether numbers have exponents (None: if
    they differ much).

    ``profile`` is ``default``, ``short`` or ``full``; the other arguments modify it. Raises AttributeValueError for
    another profile, ArgumentError for negative numbers.

    Example:
        >>> import graphc as gc
        >>> gc.set_printoptions(precision=2)
        >>> gc.tensor([1 / 3])
        tensor([0.33])
        >>> gc.set_printoptions(profile="default")
    """
    if profile is not None and profile not in _PROFILES:
        raise AttributeValueError(
            f"set_printoptions: unknown profile {profile!r}", remedy=f"use one of {', '.join(_PROFILES)}"
        )
    named = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes = {name: value for name, value in named.items() if value is not None}
    for name, value in changes.items():
        if not isinstance(value, (int, float)) or value < 0:
            raise ArgumentError(f"set_printoptions: {name} is {value!r}", remedy="pass a number of 0 or more")
    _now[0] = replace(_PROFILES[profile] if profile else _now[0], **changes, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """Return the options of ``set_printoptions``."""
    return dict(vars(_now[0]))


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Apply ``set_printoptions(**options)`` inside of the block."""
    before = _now[0]
    try:
        set_printoptions(**options)
        yield
    finally:
        _now[0] = before


def text_of(array: np.ndarray, indent: int) -> str:
    """Format the elements of an array in brackets; ``indent`` is the column of the first character."""
    if not array.size:
        return "[]"
    options = _now[0]
    shown = _edges(array, options.edgeitems) if array.size > options.threshold else array
    write, width = _writer(shown, options)
    return _nested(array, indent, write, width, options, array.size > options.threshold)


def with_suffixes(text: str, suffixes: Sequence[str], indent: int) -> str:
    """Append suffixes to a text, with line breaks where lines grow too long."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > _now[0].linewidth:
            text, column = f"{text},\n{' ' * indent}{suffix}", indent + len(suffix)
        else:
            text, column = f"{text}, {suffix}", column + len(suffix) + 2
    return text


def _edges(array: np.ndarray, count: int) -> np.ndarray:
    """Return the visible entries of an abridged array."""
    for axis, extent in enumerate(array.shape):
        if extent > 2 * count:
            array = array.take([*range(count), *range(extent - count, extent)], axis)
    return array


def _writer(values: Any, options: _Options) -> tuple[Callable[[Any], str], int]:
    """Return the function that formats an element, and the width of its results."""
    if values.dtype.kind == "c":
        real, real_width = _writer(values.real, options)
        imaginary, width = _writer(values.imag, options)
        return lambda v: _complex(real(v.real), imaginary(v.imag)), real_width + width + 1
    plain: Callable[[Any], str] = str
    if values.dtype.kind == "f":  # NOTE: as in PyTorch, 0, NaN and infinities do not count for the width
        values = values[np.isfinite(values) & (values != 0)]
        plain = _float_text(values.astype(np.float64), options)
    width = max((len(plain(v)) for v in values.ravel().tolist()), default=1)
    return lambda v: plain(v).rjust(width), width


def _complex(real: str, imaginary: str) -> str:
    """Join the parts of a complex number, with the sign of the second between them."""
    digits = imaginary.lstrip()
    return f"{real}{'' if digits.startswith('-') else '+'}{digits}j"


def _float_text(values: np.ndarray, options: _Options) -> Callable[[float], str]:
    """Return the function that formats a number; ``values`` are finite and not 0."""
    sizes = np.abs(values)
    integral = bool(np.all(sizes == np.ceil(sizes)))
    exponents = False
    if sizes.size:
        least, most = sizes.min(), sizes.max()
        wide = most > _LARGE or most / least > _RATIO or (least < _SMALL and not integral)
        exponents = wide if options.sci_mode is None else options.sci_mode
    if exponents:
        return lambda v: f"{v:.{options.precision}e}"
    if integral:
        return lambda v: f"{v:.0f}." if math.isfinite(v) else f"{v:.0f}"
    return lambda v: f"{v:.{options.precision}f}"


def _nested(
    array: np.ndarray, indent: int, write: Callable[[Any], str], width: int, options: _Options, cut: bool
) -> str:
    if not array.shape:
        return write(array.item())
    edge = options.edgeitems
    cut_here = cut and len(array) > 2 * edge
    entries = [*array[:edge], None, *array[len(array) - edge :]] if cut_here else list(array)
    if array.ndim > 1:
        inner = [_nested(p, indent + 1, write, width, options, cut) if p is not None else "..." for p in entries]
        return f"[{(',' + chr(10) * (array.ndim - 1) + ' ' * (indent + 1)).join(inner)}]"
    words = [write(p.item()) if p is not None else " ..." for p in entries]
    count = max(1, int((options.linewidth - indent) // (width + 2)))
    lines = [", ".join(words[at : at + count]) for at in range(0, len(words), count)]
    return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(lines)}]"
