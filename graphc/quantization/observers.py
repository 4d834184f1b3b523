"""Observers of calibration: statistics of a layer's inputs, and the range that each method chooses from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError, NonFiniteError

_BINS = 4096
"""Bins of a histogram on each side of 0. At least half of them hold inputs, since widths are powers of two."""
_LEVELS = 256
"""Codes of an input."""
_CANDIDATES = 128
"""Ranges that the entropy method compares."""
PERCENTILE = 99.99
"""Percentage of the inputs within the range of ``method="percentile"``."""


class RangeObserver:
    """Smallest and largest input."""

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf

    @property
    def is_empty(self) -> bool:
        """Return whether no element was observed."""
        return self.low > self.high

    def observe(self, name: str, x: np.ndarray) -> None:
        """Add the elements of an input of the layer ``name``. Raises NonFiniteError for NaN and infinities."""
        if not x.size:
            return
        low, high = float(x.min()), float(x.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            raise NonFiniteError(
                f"quantize: an input of {name or 'the model'} holds NaN or infinity in the calibration data",
                remedy="remove such examples, or find the layer that produces them: gc.debug(...)",
            )
        self.low, self.high = min(self.low, low), max(self.high, high)

    def range(self) -> tuple[float, float]:
        """Return the chosen range, which includes 0."""
        return min(self.low, 0.0), max(self.high, 0.0)


class HistogramObserver(RangeObserver):
    """Counts of inputs in bins of equal width around 0. The width doubles, and bins merge, where a larger one comes."""

    def __init__(self) -> None:
        super().__init__()
        self.width = 0.0
        self.counts = np.zeros(2 * _BINS, np.int64)

    def observe(self, name: str, x: np.ndarray) -> None:
        super().observe(name, x)
        largest = max(self.high, -self.low, 0.0)
        if not x.size or largest == 0:
            return  # zeros lie inside of every range
        if not self.width:
            self.width = 2.0 ** np.floor(np.log2(largest / _BINS))
        while largest >= self.width * _BINS:
            self._merge_pairs()
        index = np.floor(x[x != 0].astype(np.float64) / self.width).astype(np.int64) + _BINS
        self.counts += np.bincount(index, minlength=2 * _BINS)

    def _merge_pairs(self) -> None:
        merged = self.counts.reshape(-1, 2).sum(1)
        self.counts = np.zeros_like(self.counts)
        self.counts[_BINS // 2 : _BINS // 2 + _BINS] = merged
        self.width *= 2

    @property
    def edges(self) -> np.ndarray:
        """Return the lower edge of each bin, and the upper one of the last."""
        return (np.arange(2 * _BINS + 1) - _BINS) * self.width


class PercentileObserver(HistogramObserver):
    """Range that contains ``PERCENTILE`` percent of the nonzero inputs, as many outside above as below."""

    def range(self) -> tuple[float, float]:
        low, high = super().range()
        total = self.counts.sum()
        if not total:
            return low, high
        tail = (1 - PERCENTILE / 100) / (2 if low < 0 < high else 1) * total
        below, above = np.cumsum(self.counts), np.cumsum(self.counts[::-1])
        first, last = int(np.searchsorted(below, tail, "right")), int(np.searchsorted(above, tail, "right"))
        edges = self.edges
        return max(low, min(edges[first], 0.0)), min(high, max(edges[2 * _BINS - last], 0.0))


class EntropyObserver(HistogramObserver):
    """Range whose 256 codes lose the least information, by the Kullback-Leibler divergence.

    This is the calibration of S. Migacz, "8-bit Inference with TensorRT", GTC 2017: the histogram, with what is outside
    of a candidate range added to its outer bins, is compared with the same histogram in 256 levels. A candidate limits
    the magnitude, so an end of the range that is nearer to 0 stays.
    """

    def range(self) -> tuple[float, float]:
        low, high = super().range()
        if not self.counts.any():
            return low, high
        first, last = int(np.floor(low / self.width)) + _BINS, int(np.floor(high / self.width)) + 1 + _BINS
        longest = max(_BINS - first, last - _BINS)
        best = (np.inf, first, last)
        for limit in np.unique(np.linspace(_LEVELS // 2, longest, _CANDIDATES).astype(int)):
            start, stop = max(first, _BINS - limit), min(last, _BINS + limit)
            best = min(best, (_divergence(self.counts, start, stop), start, stop))
        edges = self.edges
        return max(low, edges[best[1]]), min(high, edges[best[2]])


def _divergence(counts: np.ndarray, start: int, stop: int) -> float:
    """Return the divergence of the histogram, clipped to bins from ``start`` to ``stop``, from its 256 levels."""
    inside = counts[start:stop].astype(np.float64)
    clipped = inside.copy()
    clipped[0] += counts[:start].sum()
    clipped[-1] += counts[stop:].sum()
    if not inside.any():
        return np.inf
    level = np.arange(stop - start) * _LEVELS // (stop - start)
    filled = inside > 0
    sums = np.bincount(level, inside, _LEVELS)
    bins = np.bincount(level, filled, _LEVELS)
    levels = np.where(filled, sums[level] / np.maximum(bins[level], 1), 0.0)
    p, q = clipped / clipped.sum(), levels / levels.sum()
    q = np.where((p > 0) & (q == 0), 1e-12, q)  # outliers in a bin that was empty
    return float(np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0) / np.where(q > 0, q, 1.0)), 0.0)))


OBSERVERS: dict[str, type[RangeObserver]] = {
    "minmax": RangeObserver,
    "percentile": PercentileObserver,
    "entropy": EntropyObserver,
}


def observer_of(method: Any) -> type[RangeObserver]:
    """Return the observer of a method. Raises AttributeValueError for an unknown one."""
    if method not in OBSERVERS:
        raise AttributeValueError(f"quantize: method {method!r} is not known", remedy=f"pass one of {list(OBSERVERS)}")
    return OBSERVERS[method]
