"""Runs a graph of ATen operators step by step with the functions of graphc, eagerly or in a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.errors import GraphcError, UnsupportedError
from graphc.base.location import at
from graphc.interop.aten.graph import AtenGraph, Step, refs, replaced
from graphc.interop.aten.table import find


class Runner:
    """An AtenGraph as a function of its inputs."""

    def __init__(self, graph: AtenGraph):
        """Raises UnsupportedError for an operator that is not in the table, with the user's line."""
        self.graph = graph
        self._steps = [(s, _rule(s)) for s in graph.steps]
        self._constants = {n: Runner(c) if isinstance(c, AtenGraph) else c for n, c in graph.constants.items()}
        last: dict[str, int] = {}
        for i, step in enumerate(graph.steps):
            last |= dict.fromkeys(refs((step.args, step.kwargs)), i)
        kept = set(refs(graph.output))
        self._done: list[list[str]] = [[] for _ in graph.steps]
        """The values that no later step needs, by step."""
        for name, i in last.items():
            if name not in kept and name not in graph.constants:
                self._done[i].append(name)

    def __call__(self, *args: Any) -> Any:
        """The outputs for these inputs, nested as the graph's are."""
        values = dict(self._constants)
        values.update(zip(self.graph.inputs, args, strict=True))
        find_value = values.__getitem__
        for (step, function), done in zip(self._steps, self._done, strict=True):
            with at(step.place):
                values[step.name] = self._applied(step, function, find_value)
            for name in done:
                values.pop(name, None)
        return replaced(self.graph.output, find_value)

    @staticmethod
    def _applied(step: Step, function: Any, find_value: Any) -> Any:
        try:
            return function(*replaced(step.args, find_value), **replaced(step.kwargs, find_value))
        # NOTE: what a rule raises for arguments that the operator does not take, which graphs in files may hold.
        except _WRONG as error:
            found = error if isinstance(error, GraphcError) else _for_these_arguments(step, error)
            vars(found)[_STEP] = step
            found.where = found.where or str(step)
            if found is error:
                raise
            raise found from error
        # NOTE: whatever else is raised, by code of the user, too, knows its step and is raised again.
        except Exception as error:
            vars(error)[_STEP] = step
            raise


_STEP = "graphc_step"
_WRONG = (GraphcError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


def _for_these_arguments(step: Step, error: Exception) -> UnsupportedError:
    return UnsupportedError(
        f"{step.target} is not computed for these arguments: {type(error).__name__}: {error}"[:300],
        where=str(step)[:300],
        origin=step.place.describe(),
    )


def step_of(error: BaseException) -> Step | None:
    """The step of the outermost graph in which an error was raised, or None."""
    return vars(error).get(_STEP)


def _rule(step: Step) -> Any:
    found = find(step.target)
    if found is None:
        error = UnsupportedError(
            f"{step.target} is not among the operators that graphc computes",
            where=str(step),
            origin=step.place.describe(),
        )
        vars(error)[_STEP] = step
        raise error
    return found


def unknown(graph: AtenGraph) -> Sequence[Step]:
    """The steps whose operators are not in the table."""
    return [s for s in graph.steps if find(s.target) is None]
