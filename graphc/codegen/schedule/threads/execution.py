"""Execution of a scheduled program: non-temporal stores, thread plan, polls, library products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from graphc.base.records import dataclass
from graphc.codegen.schedule.contraction.product import Product
from graphc.codegen.schedule.threads.plan import ThreadPlan


@dataclass(frozen=True)
class Execution:
    """Decisions of the schedule that loops do not show; the emitter follows them and makes none.

    By default one thread runs plain code.
    """

    non_temporal: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Buffers by name of the kernel: their stores are non-temporal if the buffer starts at a cache line."""
    threads: ThreadPlan = field(default_factory=ThreadPlan)
    polls: frozenset[int] = frozenset()
    """Numbers of the calls before which the program checks whether Ctrl-C was pressed."""
    products: Mapping[str, Product] = field(default_factory=dict)
    """Products that a device's library computes, by name of the kernel that each replaces."""

    @property
    def alone(self) -> Execution:
        """The same execution for one thread that never polls: it runs only the kernels."""
        return replace(self, threads=ThreadPlan(), polls=frozenset())
