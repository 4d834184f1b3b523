"""Results of a graph that share memory: graphc computes the memory once, and PyTorch makes the views."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import fx
from torch.fx.node import map_aggregate

from graphc.base.records import dataclass

Run = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True)
class ResultIndex:
    """Index of a result of the function that computes the graph."""

    index: int


class ViewStep(NamedTuple):
    """View of the preceding view, with its other arguments. A ResultIndex replaces a size computed in the call."""

    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Aliases:
    """Computes the results of a graph from the results of a graph without views."""

    def __init__(self, run: Run, results: Sequence[tuple[ResultIndex, tuple[ViewStep, ...]]]):
        self._run = run
        self._results = results
        self._boxed_call = True
        """Tells AOTAutograd that the call takes a list, see Program."""

    def __call__(self, args: list[Any]) -> list[Any]:
        """Return the results. Empties the list of arguments."""
        base_results = self._run(args)
        results = []
        for source, steps in self._results:
            result = base_results[source.index]
            for step in steps:
                others: Any = map_aggregate((step.args, step.kwargs), lambda v: _at(v, base_results))
                result = step.target(result, *others[0], **others[1])
            results.append(result)
        return results


def _at(value: Any, base_results: Sequence[Any]) -> Any:
    return base_results[value.index] if isinstance(value, ResultIndex) else value


def without_views(
    module: fx.GraphModule,
) -> tuple[fx.GraphModule, list[tuple[ResultIndex, tuple[ViewStep, ...]]] | None]:
    """Return the graph with one result for each memory that several results share, and how to make all results.

    Returns the graph itself and None where results share no memory. Views of arguments stay: AOTAutograd makes them.
    """
    results = module.graph.output_node().args[0]
    assert isinstance(results, (list, tuple))
    roots = {r: _path(r)[0] for r in results if isinstance(r, fx.Node)}
    counts: dict[fx.Node, int] = {}
    for root in roots.values():
        counts[root] = counts.get(root, 0) + (root.op == "call_function")
    if all(count < 2 for count in counts.values()):
        return module, None
    computed: list[Any] = []

    def index_of(value: Any) -> Any:
        if value is None or value not in computed:
            computed.append(value)
            return ResultIndex(len(computed) - 1)
        return ResultIndex(computed.index(value))

    def step(node: fx.Node) -> ViewStep:
        others: Any = fx.map_arg((node.args[1:], dict(node.kwargs)), index_of)
        return ViewStep(cast(Any, node.target), *others)

    plan = []
    for result in results:
        root, path = _path(result) if counts.get(roots.get(result), 0) > 1 else (result, ())  # type: ignore[arg-type]
        plan.append((index_of(root), tuple(map(step, path))))
    graph = fx.Graph()
    copied: dict[fx.Node, fx.Node] = {}
    graph.graph_copy(module.graph, copied)
    graph.output(tuple([copied[v] if isinstance(v, fx.Node) else v for v in computed]))
    graph.eliminate_dead_code()
    return fx.GraphModule(module, graph), plan


def _path(node: fx.Node) -> tuple[fx.Node, tuple[fx.Node, ...]]:
    """Return the source of a chain of views, and the view nodes in order."""
    views: list[fx.Node] = []
    while (source := _looked_at(node)) is not None:
        views.append(node)
        node = source
    return node, tuple(reversed(views))


def _looked_at(node: fx.Node) -> fx.Node | None:
    """Return the node of which ``node`` is a view, or None."""
    is_view = isinstance(node.target, torch._ops.OpOverload) and node.target.is_view
    source = node.args[0] if is_view or node.target is operator.getitem else None
    if not isinstance(source, fx.Node) or (not is_view and _looked_at(source) is None):
        return None
    return source
