"""Roofline of one core: the least time of a computation, from its operations and its bytes."""

from __future__ import annotations

from graphc.base.records import dataclass
from graphc.codegen.machine.costs import SpeedCosts


@dataclass(frozen=True)
class Roofline:
    """Peak speeds of one core (Williams, Waterman, Patterson, Roofline, 2009), by the cache that serves the bytes."""

    speeds: SpeedCosts
    l1_bytes: int
    l2_bytes: int
    llc_bytes: int
    """Bytes of the last-level cache that one core can count on."""

    def bandwidth(self, working_set: float) -> float:
        """Return the bandwidth in bytes per nanosecond for a working set of ``working_set`` bytes: the speed of the
        smallest cache that holds it."""
        k = self.speeds
        levels = (self.l1_bytes, k.l1), (self.l2_bytes, k.l2), (self.llc_bytes, k.llc)
        return next((speed for size, speed in levels if working_set <= size), k.memory)

    def time(self, operations: float, nbytes: float, working_set: float | None = None) -> float:
        """Return the least nanoseconds for operations on whole vector registers and ``nbytes`` bytes of a working set
        (by default ``nbytes``)."""
        reached = self.bandwidth(nbytes if working_set is None else working_set)
        return max(operations / self.speeds.operations, nbytes / reached)
