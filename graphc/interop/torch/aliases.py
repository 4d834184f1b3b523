"""Results of a graph that look at the same memory: it is computed once, and PyTorch makes the views of it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import fx
from torch.fx.node import map_aggregate

Run = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True)
class Place:
    """A result of what computes the graph, by its number."""

    number: int


class Step(NamedTuple):
    """A view of the view before, with the other arguments; sizes that a call computes are Places."""

    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Aliases:
    """Computes the results of a graph from those of a graph without views."""

    def __init__(self, run: Run, results: Sequence[tuple[Place, tuple[Step, ...]]]):
        self._run = run
        self._results = results
        self._boxed_call = True
        """As of Program."""

    def __call__(self, args: list[Any]) -> list[Any]:
        """The results; the list is emptied."""
        made = self._run(args)
        results = []
        for place, steps in self._results:
            found = made[place.number]
            for step in steps:
                rest: Any = map_aggregate((step.args, step.kwargs), lambda v: _at(v, made))
                found = step.target(found, *rest[0], **rest[1])
            results.append(found)
        return results


def _at(value: Any, made: Sequence[Any]) -> Any:
    return made[value.number] if isinstance(value, Place) else value


def without_views(module: fx.GraphModule) -> tuple[fx.GraphModule, list[tuple[Place, tuple[Step, ...]]] | None]:
    """The graph with each memory that several results look at as one result, and how all are made of its results; the
    graph itself and None where there is no such memory. What looks at arguments is left as it is: AOTAutograd makes
    these views."""
    results = module.graph.output_node().args[0]
    assert isinstance(results, (list, tuple))
    roots = {r: _path(r)[0] for r in results if isinstance(r, fx.Node)}
    counts: dict[fx.Node, int] = {}
    for root in roots.values():
        counts[root] = counts.get(root, 0) + (root.op == "call_function")
    if all(count < 2 for count in counts.values()):
        return module, None
    made: list[Any] = []

    def place(value: Any) -> Any:
        if value is None or value not in made:
            made.append(value)
            return Place(len(made) - 1)
        return Place(made.index(value))

    def step(node: fx.Node) -> Step:
        rest: Any = fx.map_arg((node.args[1:], dict(node.kwargs)), place)
        return Step(cast(Any, node.target), *rest)

    plan = []
    for result in results:
        root, path = _path(result) if counts.get(roots.get(result), 0) > 1 else (result, ())  # type: ignore[arg-type]
        plan.append((place(root), tuple(map(step, path))))
    graph = fx.Graph()
    copied: dict[fx.Node, fx.Node] = {}
    graph.graph_copy(module.graph, copied)
    graph.output(tuple([copied[v] if isinstance(v, fx.Node) else v for v in made]))
    graph.eliminate_dead_code()
    return fx.GraphModule(module, graph), plan


def _path(node: fx.Node) -> tuple[fx.Node, tuple[fx.Node, ...]]:
    """What a node looks at, and the nodes of the views on the way to it, in order."""
    views: list[fx.Node] = []
    while (source := _looked_at(node)) is not None:
        views.append(node)
        node = source
    return node, tuple(reversed(views))


def _looked_at(node: fx.Node) -> fx.Node | None:
    is_view = isinstance(node.target, torch._ops.OpOverload) and node.target.is_view
    source = node.args[0] if is_view or node.target is operator.getitem else None
    if not isinstance(source, fx.Node) or (not is_view and _looked_at(source) is None):
        return None
    return source
