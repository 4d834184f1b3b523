"""Models of collectives: latency and bandwidth, rings and trees, machines with several ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

import numpy as np

Cost = Callable[[float], float]
"""Function of the bytes per rank that returns the seconds of a collective."""


@dataclass(frozen=True)
class Link:
    """A message of b bytes takes ``latency + b / bandwidth``: the model of R. W. Hockney, The communication challenge
    for MPP: Intel Paragon and Meiko CS-2, Parallel Computing 20 (1994). Within a machine messages are copies, which are
    slower where caches end: bytes beyond ``cached`` take their own time."""

    latency: float
    """Seconds of an empty message."""
    bandwidth: float
    """Bytes per second of one direction."""
    cached: float = inf
    """Bytes of a collective that go at that speed."""
    beyond: float = inf
    """Bytes per second of those that follow."""

    def shared_by(self, ranks: float) -> Link:
        """Return the link of each rank when several take turns on this one."""
        return Link(self.latency * ranks, self.bandwidth / ranks, self.cached, self.beyond / ranks)

    def seconds(self, messages: float, nbytes: float) -> float:
        """Return the seconds of consecutive messages with ``nbytes`` in total."""
        near = min(nbytes, self.cached)
        return messages * self.latency + near / self.bandwidth + (nbytes - near) / self.beyond


@dataclass(frozen=True)
class Level:
    """Ranks that exchange over links of one kind: those of a machine, or one of each machine."""

    count: int
    link: Link

    def seconds(self, nbytes: float, algorithm: str) -> float:
        """Return a reduce-scatter or an all-gather of ``nbytes`` per rank, by ``ring`` or ``tree``."""
        if algorithm == "ring":
            rounds, sent = self.count - 1, 1 - 1 / self.count
        else:
            # Ranks beyond a power of two hand all they have to a neighbour before, or get it from there behind.
            power = self.count.bit_length() - 1
            beyond = self.count != 1 << power
            rounds, sent = power + beyond, 1 - 1 / (1 << power) + beyond
        return self.link.seconds(rounds, sent * nbytes)


ALGORITHMS = ("ring", "tree")


@dataclass(frozen=True)
class Network:
    """Machines of ``per_node`` ranks each, with a link between the ranks of a machine and a link per machine that its
    ranks share."""

    local: Link
    remote: Link
    per_node: int = 1

    def levels(self, ranks: int) -> list[Level]:
        """Return the levels of a collective: first within each machine, then between machines."""
        near = min(ranks, self.per_node)
        chain = [Level(near, self.local), Level(-(-ranks // near), self.remote)]
        return [level for level in chain if level.count > 1]

    def half(self, ranks: int, algorithm: str) -> Cost:
        """Return a reduce-scatter or an all-gather. Between machines each rank has only its part of the bytes, and all
        ranks of a machine share its link, so that all bytes go through that once."""
        levels = self.levels(ranks)
        return lambda nbytes: sum(level.seconds(nbytes, algorithm) for level in levels)

    def all_reduce(self, ranks: int, algorithm: str = "ring") -> Cost:
        """Return an all-reduce, which is a reduce-scatter and an all-gather.

        ``ring``: ``2 (n - 1) latency + 2 (n - 1) / n bytes / bandwidth`` (P. Patarasuk, X. Yuan, Bandwidth optimal
        all-reduce algorithms for clusters of workstations, 2009). ``tree``: recursive halving and doubling, ``2 log2(n)
        latency`` and the same bytes (R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication
        operations in MPICH, 2005), where n is a power of two.
        """
        half = self.half(ranks, algorithm)
        return lambda nbytes: 2 * half(nbytes)


_BETTER, _ROUNDING = 0.9, 1e-12
"""Factor by which the sum of squares must shrink to justify another figure in a link."""


def fit(times: Mapping[int, float], ranks: int) -> Link:
    """Fit a link to measured rings of ``ranks``, seconds by bytes: least squares of the relative differences with no
    negative figure, for the best value of ``cached`` among the sizes."""
    sizes = np.array(sorted(times), float)
    spent = np.array([times[int(n)] for n in sizes])
    sent = (1 - 1 / ranks) * sizes
    least, link = inf, Link(0.0, inf)
    for cached in [inf, *sent[2:-1]]:
        near = np.minimum(sent, cached)
        columns = 2 * np.stack([np.full_like(sent, ranks - 1), near, sent - near], axis=1) / spent[:, None]
        (latency, near, far), error = _least(columns)
        if error < _BETTER * least - _ROUNDING:
            least, link = error, Link(float(latency), _speed(near), float(cached), _speed(far))
    return link


def _least(columns: np.ndarray) -> tuple[np.ndarray, float]:
    """Return nonnegative factors for the columns whose weighted sum is nearest to one, and the remaining distance."""
    best, least = np.zeros(columns.shape[1]), inf
    for count in range(1, columns.shape[1] + 1):
        for chosen in map(list, combinations(range(columns.shape[1]), count)):
            factors, *_ = np.linalg.lstsq(columns[:, chosen], np.ones(len(columns)), rcond=None)
            error = float(((columns[:, chosen] @ factors - 1) ** 2).sum())
            if factors.min() >= 0 and error < least * (1 - 1e-9):
                best, least = np.zeros(columns.shape[1]), error
                best[chosen] = factors
    return best, least


def _speed(inverse: float) -> float:
    return 1 / float(inverse) if inverse > 0 else inf


def errors(times: Mapping[int, float], cost: Cost) -> dict[int, float]:
    """Return the relative error of a model for each measured time."""
    return {nbytes: cost(nbytes) / spent - 1 for nbytes, spent in times.items()}


def interpolated(times: Mapping[int, float]) -> Cost:
    """Return a cost that takes the measured times, a power law between them, and the nearest speed beyond them."""
    sizes = sorted(times)
    logarithms = np.log([times[s] for s in sizes])

    def cost(nbytes: float) -> float:
        if nbytes > sizes[-1]:
            return times[sizes[-1]] * nbytes / sizes[-1]
        return float(np.exp(np.interp(np.log(max(nbytes, 1)), np.log(sizes), logarithms)))

    return cost


def sizes_until(most: int, least: int = 4 << 10, factor: int = 4) -> Sequence[int]:
    """Return the sizes of measured messages in bytes, each ``factor`` times the previous one."""
    sizes = [least]
    while sizes[-1] * factor <= most:
        sizes.append(sizes[-1] * factor)
    return sizes
