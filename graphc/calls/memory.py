"""Memory budgets of compiled steps: selection of the graph to compile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.base.lazy import deferred
from graphc.base.records import NamedTuple
from graphc.calls.machine import target_for
from graphc.compiler.budget import Budget
from graphc.ir.graph.graph import Graph
from graphc.passes.base import STANDARD, Pass

if TYPE_CHECKING:
    from graphc.compiler.memory_report import MemoryReport

fit_memory = deferred("graphc.compiler.memory_budget:fit_memory")

__all__ = ["Budget", "Within", "within_memory"]


class Within(NamedTuple):
    """The graph to compile with its passes, and the report of the budget."""

    graph: Graph
    passes: Sequence[Pass]
    report: MemoryReport | None


def within_memory(graph: Graph, budget: Budget | None, machine: str, passes: Sequence[Pass]) -> Within:
    """Return the graph and its passes. Under a budget, return a graph that fits it, with the user's passes already
    applied.
    """
    if budget is None:
        return Within(graph, passes, None)
    fitted = fit_memory(graph, budget, target_for(machine), passes)
    return Within(fitted.graph, passes if fitted.graph is graph else STANDARD, fitted.report)
