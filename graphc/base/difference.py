"""Difference of two arrays: one record, one computation and one table of tolerances for every check and command."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf, log10, nan
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import bits_of, layout_of, named, numbers
from graphc.base.records import dataclass


class Tolerance(NamedTuple):
    """Allowed difference of each element: ``atol + rtol * |reference|``."""

    rtol: float = 0.0
    atol: float = 0.0


EXACT = Tolerance()
TOLERANCES = {
    "f64": Tolerance(1e-9, 1e-11),
    "f32": Tolerance(1e-4, 1e-5),
    "f16": Tolerance(4e-3, 1e-6),
    "bf16": Tolerance(3e-2, 1e-6),
    "c128": Tolerance(1e-9, 1e-11),
    "c64": Tolerance(1e-4, 1e-5),
}
"""Default tolerance by element type, about four units in the last place for narrow floats; other types are exact.
``tolerance_for`` scales ``atol``."""
_BY_LAYOUT = {named(name).numpy: tolerance for name, tolerance in TOLERANCES.items()}


@dataclass(frozen=True)
class Difference:
    """Difference of an array from its reference.

    NaN equals NaN, infinity equals infinity of the same sign, and whole numbers are compared exactly.
    """

    name: str = ""
    shape: tuple[int, ...] = ()
    size: int = 0
    problem: str = ""
    """Both types where shapes or element types differ, or why there is nothing to compare; empty otherwise."""
    absolute: float = 0.0
    """Largest ``|actual - reference|``; infinity where only one of the two is finite, and for other shapes."""
    relative: float = 0.0
    """Largest ``|actual - reference| / |reference|`` of the elements whose reference is not 0; infinity where only
    elements with reference 0 differ."""
    count: int = 0
    """Number of unequal elements."""
    beyond: int = 0
    """Number of elements that differ by more than the tolerance."""
    ratio: float = 0.0
    """Largest ``|actual - reference| / allowed``: the tolerance holds up to 1."""
    position: tuple[int, ...] | None = None
    """Index of the worst element: the largest absolute difference beyond the tolerance, or of all where none is beyond.
    None without unequal elements. ``actual``, ``expected`` and ``allowed`` belong to it."""
    actual: Any = 0.0
    expected: Any = 0.0
    allowed: float = 0.0
    is_equal: bool = True
    """Whether both arrays have the same element type and the same bits."""
    module: str = ""
    """Class of the module that returned the value; empty for other values."""

    @property
    def is_within(self) -> bool:
        """Whether types agree and no element is beyond the tolerance."""
        return not self.problem and not self.beyond

    @property
    def path(self) -> str:
        """The name, for modules their path."""
        return self.name

    def __str__(self) -> str:
        head = f"{self.name}: " if self.name else ""
        if self.problem:
            return head + self.problem
        if self.position is None:
            return head + ("equal" if self.size else "equal, without elements")
        beyond = f", {self.beyond} beyond the tolerance" if self.beyond else ""
        worst = self.name + (f"[{', '.join(map(str, self.position))}]" if self.position else "")
        return (
            f"{head}{'within the tolerance: ' if self.is_within else ''}{self.count} of {self.size} elements differ"
            f"{beyond}, by at most {self.absolute:.3g} (relative {self.relative:.3g}, {self.ratio:.3g} of the "
            f"tolerance); the worst is {worst or 'it'} = {_text(self.actual)}, expected {_text(self.expected)}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the fields that every command prints."""
        return {
            "name": self.name,
            "problem": self.problem,
            "size": self.size,
            "absolute": self.absolute,
            "relative": self.relative,
            "count": self.count,
            "beyond": self.beyond,
            "ratio": self.ratio,
            "position": None if self.position is None else list(self.position),
            "actual": _plain(self.actual),
            "expected": _plain(self.expected),
            "allowed": self.allowed,
            "within": self.is_within,
        }


EQUAL = Difference()
"""The difference of nothing."""


def difference(
    name: str,
    actual: np.ndarray,
    reference: np.ndarray,
    tolerance: Tolerance | None = None,
    *,
    same_dtype: bool = False,
    equal_nan: bool = True,
    module: str = "",
) -> Difference:
    """Return the difference of an array from its reference.

    Args:
        name: name of the value in messages.
        actual, reference: arrays of any element types of graphc.
        tolerance: allowed difference (default: by element type, see ``tolerance_for``).
        same_dtype: report other element types as a problem; elements are compared in any case.
        equal_nan: whether NaN equals NaN.
        module: class of the module that returned the value.
    """
    actual, reference = np.asarray(actual), np.asarray(reference)
    other_type = actual.shape != reference.shape or (same_dtype and actual.dtype != reference.dtype)
    problem = f"{_type_text(actual)} instead of {_type_text(reference)}" if other_type else ""
    head = Difference(name, actual.shape, actual.size, problem, module=module)
    if actual.shape != reference.shape:
        n = actual.size
        return replace(head, absolute=inf, relative=inf, ratio=inf, count=n, beyond=n, is_equal=False)
    is_equal = actual.dtype == reference.dtype and actual.tobytes() == reference.tobytes()
    if is_equal and equal_nan:
        return head
    comparison = _Comparison(actual, reference, tolerance or tolerance_for(actual, reference), equal_nan)
    return replace(head, is_equal=is_equal, **comparison.figures())


def are_close(actual: np.ndarray, reference: np.ndarray, tolerance: Tolerance | None = None) -> np.ndarray:
    """Return a mask of the elements within the tolerance; the shapes must be equal. See ``difference``."""
    return ~_Comparison(actual, reference, tolerance or tolerance_for(actual, reference), True).beyond


def distances(actual: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the absolute difference of each element of two arrays of one shape, in f64; see ``difference``."""
    return _Comparison(actual, reference, EXACT, True).distance


def combined(differences: Iterable[Difference]) -> Difference:
    """Return several differences as one: the largest figures, the sums of counts, and the worst of all elements."""
    items = list(differences)
    if not items:
        return EQUAL
    worst = max(items, key=lambda d: (not d.is_within, d.ratio, d.absolute))
    largest_figures = {name: max(getattr(d, name) for d in items) for name in ("absolute", "relative", "ratio")}
    sums = {name: sum(getattr(d, name) for d in items) for name in ("size", "count", "beyond")}
    return replace(worst, **largest_figures, **sums, is_equal=all(d.is_equal for d in items))


def tolerance_for(
    actual: np.ndarray, reference: np.ndarray, rtol: float | None = None, atol: float | None = None
) -> Tolerance:
    """Return the default tolerance of the less exact element type, with ``rtol`` and ``atol`` where they are passed.

    The default ``atol`` is multiplied by the largest element of the reference where that is beyond 1, since sums of
    large terms that cancel are rounded like the terms.
    """
    defaults = [_BY_LAYOUT.get(x.dtype, EXACT) for x in (actual, reference)]
    relative, absolute = map(max, *defaults)
    if absolute and atol is None:
        absolute *= max(1.0, largest(reference))
    return Tolerance(relative if rtol is None else rtol, absolute if atol is None else atol)


def largest(array: np.ndarray) -> float:
    """Return the largest finite magnitude, or 0 if no element is finite."""
    values = np.abs(_wide(_comparable(array)))
    return float(values.max(initial=0.0, where=np.isfinite(values)))


@dataclass
class SignalNoise:
    """Sums of squares of exact results, and of the differences from them, over any number of arrays."""

    signal: float = 0.0
    noise: float = 0.0
    terms: int = 0
    """Number of elements in the sums."""

    def add(self, exact: np.ndarray, result: np.ndarray) -> None:
        """Add two arrays of one shape. Equal infinities and NaN are no noise, and no signal."""
        magnitudes = np.abs(numbers(np.asarray(exact))).astype(np.float64)
        self.signal += float(np.square(magnitudes[np.isfinite(magnitudes)]).sum())
        self.noise += float(np.square(distances(result, exact)).sum())
        self.terms += magnitudes.size

    @property
    def snr(self) -> float:
        """Return the ratio in dB: infinity for equal results, -infinity where a result overflows, NaN without any."""
        if not self.terms:
            return nan
        if not self.noise:
            return inf
        return -inf if self.noise == inf else 10 * log10(max(self.signal, 1e-300) / self.noise)


class _Comparison:
    """Distances, limits and masks of two arrays of one shape, element by element."""

    def __init__(self, actual: np.ndarray, reference: np.ndarray, tolerance: Tolerance, equal_nan: bool):
        self.actual, self.reference = a, b = _comparable(actual), _comparable(reference)
        with np.errstate(all="ignore"):
            self.magnitude = np.abs(_wide(b))
            equal = np.asarray(a == b)
            if equal_nan:
                equal = equal | (_is_nan(a) & _is_nan(b))
            self.unequal = ~equal
            self.distance = _distance(a, b, self.unequal)
            self.limit = tolerance.atol + (tolerance.rtol * self.magnitude if tolerance.rtol else 0.0 * equal)
            self.beyond = self.unequal & ~((self.distance <= self.limit) & np.isfinite(self.distance))

    def figures(self) -> dict[str, Any]:
        """Return the fields of ``Difference`` that depend on the elements."""
        if not self.unequal.any():
            return {}
        flat = int(np.argmax(np.where(self.beyond if self.beyond.any() else self.unequal, self.distance, -1.0)))
        position = tuple(int(i) for i in np.unravel_index(flat, self.distance.shape))
        nonzero = self.unequal & ((self.magnitude != 0) | np.isinf(self.distance))
        return {
            "absolute": float(self.distance.max()),
            "relative": self._quotient(self.magnitude, nonzero) if nonzero.any() else inf,
            "ratio": self._quotient(self.limit, self.unequal),
            "count": int(np.count_nonzero(self.unequal)),
            "beyond": int(np.count_nonzero(self.beyond)),
            "position": position,
            "actual": self.actual[position].item(),
            "expected": self.reference[position].item(),
            "allowed": float(self.limit[position]),
        }

    def _quotient(self, divisor: np.ndarray, chosen: np.ndarray) -> float:
        """Return the largest distance divided by a positive array; infinity where neither is finite."""
        with np.errstate(all="ignore"):
            quotients = self.distance[chosen] / divisor[chosen]
        return float(np.where(np.isfinite(self.distance[chosen]), quotients, inf).max())


def _distance(a: np.ndarray, b: np.ndarray, unequal: np.ndarray) -> np.ndarray:
    """Return ``|a - b|`` in f64, 0 for equal elements and infinity for NaN."""
    if a.dtype.kind in "biu" and b.dtype.kind in "biu" and 8 in (a.itemsize, b.itemsize):
        distance = np.zeros(a.shape)  # f64 does not hold all whole numbers of 64 bits
        pairs = zip(a[unequal].tolist(), b[unequal].tolist(), strict=True)
        distance[unequal] = [float(abs(x - y)) for x, y in pairs]
        return distance
    distance = np.where(unequal, np.abs(_wide(a) - _wide(b)), 0.0)
    return np.where(np.isnan(distance), inf, distance)


def _comparable(array: np.ndarray) -> np.ndarray:
    """Return the elements as numbers: bf16 as f32, pairs of bf16 as bits."""
    values = numbers(np.asarray(array))
    return bits_of(values) if values.dtype.kind == "V" else values


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _is_nan(array: np.ndarray) -> Any:
    return np.isnan(array) if array.dtype.kind in "fc" else False


def _type_text(array: np.ndarray) -> str:
    name = layout_of(array.dtype).long_name if array.dtype.kind == "V" else array.dtype.name
    return f"{name}{list(array.shape)}"


def _text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, (float, complex)) else str(value)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, complex) else value
