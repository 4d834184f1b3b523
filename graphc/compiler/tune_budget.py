"""Searches before first compiles: the budget of ``compile(tune=SECONDS)``, and the programs that it is spent on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from graphc.base import config
from graphc.base.errors import ArgumentError, CompileError
from graphc.base.lazy import deferred
from graphc.base.switches import are_deterministic_algorithms_enabled
from graphc.compiler import cache
from graphc.compiler.graph_programs import tuning_key
from graphc.compiler.ready import running_target
from graphc.ir.graph.graph import Graph

if TYPE_CHECKING:
    from graphc.passes.base import Pass

# Import the compiler only for a search.
_example_arrays = deferred("graphc.compiler.example_arrays:example_arrays")
_shown = deferred("graphc.compiler.progress:shown")
_stages = deferred("graphc.compiler.stages:Stages")
_tune = deferred("graphc.compiler.tuning:tune")


class TuneBudget:
    """Seconds for the searches of one compiled function."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.left = seconds
        """Seconds that no search has taken yet."""

    def search(self, graph: Graph, machine: str) -> None:
        """Search for a schedule of a graph and keep it in the cache, unless an earlier search has done so.

        Raise CompileError without a cache, and for programs that no random arrays can time.
        """
        disk = cache.current()
        if disk is None:
            raise CompileError(
                f"{graph.name}: tune keeps its choices in the cache of compiled programs, and the cache is off",
                remedy="unset GRAPHC_CACHE=off, GRAPHC_DUMP, GRAPHC_PRINT_AFTER and GRAPHC_VERIFY=pass",
            )
        stages = _stages(graph, target=running_target(machine))
        _check_bits(stages.machine.costs.strict_order)
        if tuning_key(graph) in stages.choices:
            return
        inputs, weights = _example_arrays(stages, {})
        with _shown(graph.name) as progress:
            tuning = _tune(stages, inputs, weights, disk, seconds=self.left, tell=progress.tell)
        self.left -= tuning.seconds
        outcome = f"{tuning.before / tuning.after:.2f} times as fast" if tuning.kept else "nothing to gain"
        config.logger("compile").info("%s: tuned for %.0f s: %s", graph.name, tuning.seconds, outcome)


_active: ContextVar[TuneBudget | None] = ContextVar("tune_budget", default=None)


@contextmanager
def searching(budget: TuneBudget | None) -> Iterator[None]:
    """Spend a budget on the programs that the block compiles; None for no searches."""
    token = _active.set(budget)
    try:
        yield
    finally:
        _active.reset(token)


def search_first(graph: Graph, machine: str) -> None:
    """Search for a schedule of a graph that is about to be compiled, if a budget is active and not spent."""
    budget = _active.get()
    if budget is not None and budget.left > 0:
        budget.search(graph, machine)


def no_search(graph: Graph) -> None:
    """Raise CompileError if a budget is active, for a graph whose schedule is not searched."""
    if _active.get() is not None:
        raise CompileError(
            f"{graph.name} cannot be tuned: tuning needs the standard passes, graphc's own ops, and a CPU",
            remedy="leave out tune",
        )


def tier_for_tuning(seconds: Any, tier: str | None, passes: Sequence[Pass], strict_order: bool) -> str:
    """Return the tier of programs that are searched for ``seconds``.

    Raise ArgumentError unless ``seconds`` is a time, and for arguments of ``compile`` that exclude a search.
    """
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds < math.inf:
        raise ArgumentError(f"compile: tune={seconds!r} is not a time", remedy="pass seconds, such as tune=300")
    if tier == "auto":
        what = "compile: with tier='auto' calls do not wait for a compiler, with tune they do"
        raise ArgumentError(what, remedy="leave out tune or tier")
    if passes:
        raise ArgumentError("compile: tune cannot see what passes of your own do", remedy="leave out tune or passes")
    _check_bits(strict_order)
    return tier or "full"


def _check_bits(strict_order: bool) -> None:
    """Raise ArgumentError where deterministic algorithms are on, and measured times could change bits."""
    if are_deterministic_algorithms_enabled() and not strict_order:
        raise ArgumentError(
            "compile: tune chooses by measured times, which may change the order of sums, and deterministic algorithms "
            "are on",
            remedy="pass strict_order=True too, or leave out tune",
        )
