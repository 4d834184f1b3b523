"""The roofline of one core: the least time of a computation, from its operations and from the bytes that it touches."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.codegen.machine.costs import SpeedCosts


@dataclass(frozen=True)
class Roofline:
    """What one core does at best (Williams, Waterman, Patterson, Roofline, 2009), by the cache that bytes come from."""

    speeds: SpeedCosts
    l1_bytes: int
    l2_bytes: int
    llc_bytes: int
    """Bytes of the last-level cache that one core can count on."""

    def bandwidth(self, working_set: float) -> float:
        """Bytes in a nanosecond where a computation touches so many bytes, again and again or for the first time since
        the one before it: the speed of the smallest cache that holds them."""
        k = self.speeds
        levels = (self.l1_bytes, k.l1), (self.l2_bytes, k.l2), (self.llc_bytes, k.llc)
        return next((speed for size, speed in levels if working_set <= size), k.memory)

    def time(self, operations: float, nbytes: float, working_set: float | None = None) -> float:
        """Nanoseconds that operations on whole vector registers, or ``nbytes`` of a working set (by default all of it),
        take at least."""
        reached = self.bandwidth(nbytes if working_set is None else working_set)
        return max(operations / self.speeds.operations, nbytes / reached)
