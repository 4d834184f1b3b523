"""Distance of samples from a distribution: the statistic of Kolmogorov and Smirnov."""

from __future__ import annotations

import numpy as np

LIMIT = 1.95
"""Exceeded once in 1,000 times by samples of the distribution; the seeds are fixed."""


def distance(below: np.ndarray) -> float:
    """The largest distance of two distribution functions times the root of the number of samples; ``below`` has the
    probability of values below each sample."""
    u, n = np.sort(below.ravel()), below.size
    steps = np.arange(n + 1) / n
    return float(max((steps[1:] - u).max(), (u - steps[:-1]).max()) * np.sqrt(n))
