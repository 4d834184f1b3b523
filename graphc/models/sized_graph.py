"""Graphs of entries, restricted by the answers to questions that stages of the compiler ask about sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from graphc.base.sizes.assumptions import Assumption, Assumptions
from graphc.base.sizes.size_limits import answered
from graphc.calls.program_store import until_answered
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy, settle

_T = TypeVar("_T")


def restricted(graph: Graph, added: Sequence[Assumption] = ()) -> Graph:
    """Return a graph specialized to its assumptions and further ones. The graph is not changed."""
    if added:
        assumptions, graph = [*graph.assumptions, *added], copy(graph)
        graph.assumptions = assumptions
    return settle(graph)


def made_for_all(graph: Graph, make: Callable[[Graph], _T]) -> tuple[_T, tuple[Assumption, ...]]:
    """Return what ``make`` makes of a graph for all sizes of its dimensions, and what it assumes of them besides the
    graph.

    Where a stage of the compiler asks a question about sizes, its answer for the expected sizes becomes an assumption.
    """
    assumptions = Assumptions.after(graph.assumptions)
    count = len(assumptions.found)

    def added() -> tuple[Assumption, ...]:
        return tuple(assumptions.found.values())[count:]

    result = until_answered(
        lambda: make(restricted(graph, added())), lambda error: answered(error, assumptions, graph.dims)
    )
    return result, added()
