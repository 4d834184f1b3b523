"""How a scheduled program is run: which stores go past the caches, what threads share, where it polls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphc.codegen.schedule.threads.plan import Team


@dataclass(frozen=True)
class Execution:
    """Decisions of the schedule that loops do not show; by default one thread runs plain code. The emitter writes what
    stands here and decides nothing."""

    streamed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By name of a kernel the buffers whose stores are non-temporal where they start at a cache line."""
    team: Team = field(default_factory=Team)
    polls: frozenset[int] = frozenset()
    """Numbers of the calls before which the program looks whether Ctrl-C was pressed."""
