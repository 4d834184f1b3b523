"""Interpreter of ATen graphs: runs each step with functions of graphc, eagerly or in a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.errors import GraphcError, UnsupportedError
from graphc.base.location import at
from graphc.interop.aten.codes import STEPS_ON_CODES, with_products_of_codes
from graphc.interop.aten.graph import AtenGraph, Step, refs, replaced
from graphc.interop.aten.table import find


class Runner:
    """Interpreter of one AtenGraph."""

    def __init__(self, graph: AtenGraph):
        """Raise UnsupportedError for an operator without a rule, with the user's line."""
        self.graph = graph = with_products_of_codes(graph)
        self._steps = [(s, _rule(s)) for s in graph.steps]
        self._constants = {n: Runner(c) if isinstance(c, AtenGraph) else c for n, c in graph.constants.items()}
        last: dict[str, int] = {}
        for i, step in enumerate(graph.steps):
            last |= dict.fromkeys(refs((step.args, step.kwargs)), i)
        result_names = set(refs(graph.output))
        self._done: list[list[str]] = [[] for _ in graph.steps]
        """Values that no later step needs, by step."""
        for name, i in last.items():
            if name not in result_names and name not in graph.constants:
                self._done[i].append(name)

    def __call__(self, *args: Any) -> Any:
        """Return the outputs for these inputs, nested as in the graph."""
        values = dict(self._constants)
        values.update(zip(self.graph.inputs, args, strict=True))
        find_value = values.__getitem__
        for (step, function), done in zip(self._steps, self._done, strict=True):
            with at(step.location):
                values[step.name] = self._applied(step, function, find_value)
            for name in done:
                values.pop(name, None)
        return replaced(self.graph.output, find_value)

    @staticmethod
    def _applied(step: Step, function: Any, find_value: Any) -> Any:
        try:
            return function(*replaced(step.args, find_value), **replaced(step.kwargs, find_value))
        # NOTE: rules raise these errors for arguments that the operator does not take, which graphs in files may have.
        except _WRONG as error:
            reported = error if isinstance(error, GraphcError) else _for_these_arguments(step, error)
            vars(reported)[_STEP] = step
            reported.where = reported.where or str(step)
            if reported is error:
                raise
            raise reported from error
        # NOTE: other errors, also of the user's code, are annotated with their step and raised again.
        except Exception as error:
            vars(error)[_STEP] = step
            raise


_STEP = "graphc_step"
_WRONG = (GraphcError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


def _for_these_arguments(step: Step, error: Exception) -> UnsupportedError:
    return UnsupportedError(
        f"graphc cannot compute {step.target} for these arguments: {type(error).__name__}: {error}"[:300],
        where=str(step)[:300],
        origin=step.location.describe(),
    )


def step_of(error: BaseException) -> Step | None:
    """Return the step of the outermost graph in which an error was raised, or None."""
    return vars(error).get(_STEP)


def _rule(step: Step) -> Any:
    function = STEPS_ON_CODES.get(step.target) or find(step.target)
    if function is None:
        error = UnsupportedError(
            f"{step.target} is not among the operators that graphc computes",
            where=str(step),
            origin=step.location.describe(),
        )
        vars(error)[_STEP] = step
        raise error
    return function


def unknown(graph: AtenGraph) -> Sequence[Step]:
    """Return the steps whose operators are not in the table."""
    return [s for s in graph.steps if find(s.target) is None]
