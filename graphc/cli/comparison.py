"""Outputs beside expected ones: how many elements differ, and the worst one by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphc.cli.fields import Field


class Comparison(NamedTuple):
    """What of an output is not as expected."""

    name: str
    size: int
    beyond: int
    """Elements that differ by more than allowed."""
    worst: tuple[int, ...] | None
    """Index of the element that is furthest beyond what is allowed, or closest to it; None of no elements."""
    found: float = 0.0
    expected: float = 0.0
    other_shape: str = ""
    """What is expected instead, where types or shapes differ."""

    @property
    def good(self) -> bool:
        """Whether all is as expected."""
        return not self.beyond and not self.other_shape

    def __str__(self) -> str:
        if self.other_shape:
            return f"{self.name}: {self.other_shape}"
        if self.worst is None:
            return f"{self.name}: as expected, without elements"
        place = f"{self.name}[{', '.join(map(str, self.worst))}]"
        difference = abs(self.found - self.expected)
        worst = f"the worst is {place} = {self.found:.9g}, expected {self.expected:.9g}, difference {difference:.3g}"
        told = "as expected" if self.good else f"{self.beyond} of {self.size} elements differ"
        return f"{self.name}: {told}; {worst}"

    def as_json(self) -> dict[str, Any]:
        """For JSON."""
        shape = {"shape": self.other_shape} if self.other_shape else {}
        index = None if self.worst is None else list(self.worst)
        element = {"index": index, "value": self.found, "expected": self.expected}
        return {
            "name": self.name,
            "good": self.good,
            "size": self.size,
            "beyond": self.beyond,
            "worst": element,
            **shape,
        }


JSON = (
    Field("expected[].name", "string", "the output", optional=True),
    Field("expected[].good", "boolean", "whether all elements are as expected"),
    Field("expected[].size", "integer", "how many elements there are"),
    Field("expected[].beyond", "integer", "how many differ by more than atol + rtol * |expected|"),
    Field("expected[].worst.index", "array or null", "where the worst one is; null of no elements"),
    Field("expected[].worst.index[]", "integer", "its index in a dimension", optional=True),
    Field("expected[].worst.value", "number", "what it is"),
    Field("expected[].worst.expected", "number", "what is expected"),
    Field("expected[].shape", "string", "what differs, where shapes or element types do", optional=True),
)


def compare_arrays(name: str, found: np.ndarray, expected: np.ndarray, atol: float, rtol: float) -> Comparison:
    """An output beside what is expected: elements may differ by ``atol + rtol * |expected|``; NaN is NaN, infinity is
    infinity."""
    if found.shape != expected.shape:
        told = f"has shape {list(found.shape)}, expected is {list(expected.shape)}"
        return Comparison(name, found.size, found.size, None, other_shape=told)
    if not found.size:
        return Comparison(name, 0, 0, None)
    a, b = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
        if found.dtype.kind in "iu" and expected.dtype.kind in "iu":  # f64 does not hold all of them.
            apart = np.abs(found.astype(object) - expected.astype(object)).astype(np.float64)
        excess = apart - (atol + rtol * np.abs(b))
    excess = np.where(np.isnan(excess), np.inf, excess)
    excess = np.where((found == expected) | (np.isnan(a) & np.isnan(b)), -np.inf, excess)
    beyond = int(np.count_nonzero(excess > 0))
    same = np.all(np.isneginf(excess))
    place = int(np.argmax(np.abs(b))) if same else int(np.argmax(excess))
    worst = tuple(int(i) for i in np.unravel_index(place, found.shape))
    return Comparison(name, found.size, beyond, worst, float(a[worst]), float(b[worst]))
