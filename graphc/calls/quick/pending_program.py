"""The native program of a graph while a child process builds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.base import config
from graphc.base.errors import ArgumentError, CompileError, GraphcError
from graphc.base.locks import Lock
from graphc.base.switches import are_deterministic_algorithms_enabled
from graphc.calls.machine import HOST, compile_on
from graphc.calls.quick.quick_calls import Calls
from graphc.compiler.background import BackgroundBuild, can_build
from graphc.compiler.cache import CacheEntry
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.verify import foreign_ops
from graphc.passes.base import STANDARD, Pass

TIERS = ("auto", "full")
"""Tiers that a caller of ``compile`` can ask for."""


def tier_named(tier: str | None) -> str:
    """Return a tier, or that of GRAPHC_TIER for None; raise ArgumentError for any other value."""
    tier = config.read().tier if tier is None else tier
    if tier not in TIERS:
        raise ArgumentError(f"compile: there is no tier {tier!r}", remedy=f"use {' or '.join(map(repr, TIERS))}")
    return tier


def fits_quick_tier(graph: Graph, machine: str, passes: Sequence[Pass]) -> bool:
    """Return whether the references compute what the options ask for, and a child can build the program."""
    if machine != HOST or passes is not STANDARD or are_deterministic_algorithms_enabled():
        return False
    return config.read().check_indices and can_build() and not foreign_ops(graph)


class SizedBuildError(CompileError):
    """No program serves all sizes of a graph's dimensions: a stage asks about them, or cannot have open sizes."""


class PendingProgram:
    """The program of a graph, built in the background, and then loaded once."""

    def __init__(self, name: str, graph: Graph, machine: str, load: Callable[[CacheEntry], Calls]):
        """``load`` loads the program and returns its calls. ``name`` is that of the function, for the log.

        Raise the error of a question about sizes that stopped an earlier build of the graph.
        """
        self._name, self._graph, self._machine, self._load = name, graph, machine, load
        self._build = BackgroundBuild(graph, machine)
        self._lock = Lock()
        self._calls: Calls | None = None
        entry = self._build.program()
        if entry is not None:
            self._take(entry)
        else:
            config.logger("compile").info("%s: references serve calls while a child builds the program", name)
            self._build.is_finished()

    def calls(self, now: bool = False) -> Calls | None:
        """Return the calls of the program, or None while it is built; with ``now``, wait for it.

        Compile here what the child could not build, which raises the errors of a compile: SizedBuildError for a graph
        with named dimensions.
        """
        if self._calls is None and (now or are_deterministic_algorithms_enabled() or self._build.is_finished()):
            with self._lock:
                if self._calls is None:
                    self._take(self._entry())
        return self._calls

    def _entry(self) -> CacheEntry:
        try:
            entry = self._build.program() if self._build.is_finished() else None
            if entry is not None:
                return entry
            config.logger("compile").info("%s: the program is built in this process", self._name)
            return compile_on(self._graph, self._machine, STANDARD)
        except GraphcError as error:
            if not self._graph.dims:
                raise
            parts = {"where": error.where, "origin": error.origin, "remedy": error.remedy}
            raise SizedBuildError(error.what, **parts) from error

    def _take(self, entry: CacheEntry) -> None:
        self._calls = self._load(entry)
        self._build.discard()
        config.logger("compile").info("%s: the program serves calls", self._name)
