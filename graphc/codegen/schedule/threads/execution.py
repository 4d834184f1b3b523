"""How a scheduled program is run: which stores are non-temporal, what threads share, where it polls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from graphc.codegen.schedule.contraction.product import Product
from graphc.codegen.schedule.threads.plan import ThreadPlan


@dataclass(frozen=True)
class Execution:
    """Decisions of the schedule that loops do not show; by default one thread runs plain code. The emitter writes what
    stands here and decides nothing."""

    non_temporal: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By name of a kernel the buffers whose stores are non-temporal where they start at a cache line."""
    threads: ThreadPlan = field(default_factory=ThreadPlan)
    polls: frozenset[int] = frozenset()
    """Numbers of the calls before which the program looks whether Ctrl-C was pressed."""
    products: Mapping[str, Product] = field(default_factory=dict)
    """By name of a kernel what a device's library computes in its place."""

    @property
    def alone(self) -> Execution:
        """The same for one thread that never polls: nothing but the kernels runs."""
        return replace(self, threads=ThreadPlan(), polls=frozenset())
