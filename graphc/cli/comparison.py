"""Compare outputs with expected ones: count the elements that differ and name the worst one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphc.cli.fields import Field


class OutputComparison(NamedTuple):
    """Differences of one output from the expected one."""

    name: str
    size: int
    beyond: int
    """Number of elements outside the tolerance."""
    worst: tuple[int, ...] | None
    """Index of the element furthest beyond the tolerance, or closest to it; None for an empty output."""
    actual: float = 0.0
    expected: float = 0.0
    other_shape: str = ""
    """Description of the expected shape if shapes differ; empty otherwise."""

    @property
    def good(self) -> bool:
        """Check whether shape and all elements are as expected."""
        return not self.beyond and not self.other_shape

    def __str__(self) -> str:
        if self.other_shape:
            return f"{self.name}: {self.other_shape}"
        if self.worst is None:
            return f"{self.name}: as expected, without elements"
        location = f"{self.name}[{', '.join(map(str, self.worst))}]"
        difference = abs(self.actual - self.expected)
        worst = (
            f"the worst is {location} = {self.actual:.9g}, expected {self.expected:.9g}, difference {difference:.3g}"
        )
        verdict = "as expected" if self.good else f"{self.beyond} of {self.size} elements differ"
        return f"{self.name}: {verdict}; {worst}"

    def as_json(self) -> dict[str, Any]:
        """Return the fields of ``expected[]`` in ``JSON``."""
        shape = {"shape": self.other_shape} if self.other_shape else {}
        index = None if self.worst is None else list(self.worst)
        element = {"index": index, "value": self.actual, "expected": self.expected}
        return {
            "name": self.name,
            "good": self.good,
            "size": self.size,
            "beyond": self.beyond,
            "worst": element,
            **shape,
        }


JSON = (
    Field("expected[].name", "string", "name of the output", optional=True),
    Field("expected[].good", "boolean", "whether all elements are as expected"),
    Field("expected[].size", "integer", "number of elements"),
    Field("expected[].beyond", "integer", "number of elements that differ by more than atol + rtol * |expected|"),
    Field("expected[].worst.index", "array or null", "index of the worst element; null for an empty output"),
    Field("expected[].worst.index[]", "integer", "its index in one dimension", optional=True),
    Field("expected[].worst.value", "number", "its value"),
    Field("expected[].worst.expected", "number", "its expected value"),
    Field("expected[].shape", "string", "both shapes, if they differ", optional=True),
)


def compare_arrays(name: str, actual: np.ndarray, expected: np.ndarray, atol: float, rtol: float) -> OutputComparison:
    """Compare an output with the expected array.

    Elements may differ by ``atol + rtol * |expected|``; NaN equals NaN, infinity equals infinity.
    """
    if actual.shape != expected.shape:
        verdict = f"has shape {list(actual.shape)}, expected is {list(expected.shape)}"
        return OutputComparison(name, actual.size, actual.size, None, other_shape=verdict)
    if not actual.size:
        return OutputComparison(name, 0, 0, None)
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        distance = np.abs(a - b)
        if actual.dtype.kind in "iu" and expected.dtype.kind in "iu":  # f64 does not hold all of them.
            distance = np.abs(actual.astype(object) - expected.astype(object)).astype(np.float64)
        excess = distance - (atol + rtol * np.abs(b))
    excess = np.where(np.isnan(excess), np.inf, excess)
    excess = np.where((actual == expected) | (np.isnan(a) & np.isnan(b)), -np.inf, excess)
    beyond = int(np.count_nonzero(excess > 0))
    same = np.all(np.isneginf(excess))
    location = int(np.argmax(np.abs(b))) if same else int(np.argmax(excess))
    worst = tuple(int(i) for i in np.unravel_index(location, actual.shape))
    return OutputComparison(name, actual.size, beyond, worst, float(a[worst]), float(b[worst]))
