"""``graphc run --taps``: statistics of the last value that each module of a model file computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphc.base.dtypes import numbers
from graphc.base.lazy import deferred
from graphc.cli import console
from graphc.cli.fields import Field

if TYPE_CHECKING:
    from graphc.ir.graph.graph import Graph, Value
    from graphc.tracing.taps import Statistics

# Most runs have no --taps, so the modules that compute them are imported at their first use.
compiling = deferred("graphc.cli.targets:compiling")
compile = deferred("graphc.calls.function:compile")
graph_module = deferred("graphc.calls.graph_module:GraphModule")
from_numpy = deferred("graphc.tensors.creation:from_numpy")
no_grad = deferred("graphc.tape.grad_mode:no_grad")

KINDS = "mean norm zeros range nan"


class Tap(NamedTuple):
    """Statistics of one intermediate value of a call."""

    module: str
    """Path of the module that computed the value."""
    dtype: str
    shape: tuple[int, ...]
    statistics: Statistics

    def as_json(self) -> dict[str, Any]:
        """Return the fields of ``taps[]`` in ``JSON``; NaN and infinity become None."""
        s = self.statistics
        numbers = {"mean": s.mean, "std": s.std, "min": s.min, "max": s.max, "zeros": s.zeros}
        finite = {name: float(number) if np.isfinite(number) else None for name, number in numbers.items()}
        named = {"module": self.module, "dtype": self.dtype, "shape": list(self.shape)}
        return {**named, **finite, "nonfinite": s.nonfinite}


JSON = (
    Field("taps[].module", "string", "path of a module", optional=True),
    Field("taps[].dtype", "string", "element type of its last value"),
    Field("taps[].shape", "array", "its shape"),
    Field("taps[].shape[]", "integer", "a size", optional=True),
    Field("taps[].mean", "number or null", "mean of its finite elements"),
    Field("taps[].std", "number or null", "standard deviation of its finite elements"),
    Field("taps[].min", "number or null", "the smallest finite element"),
    Field("taps[].max", "number or null", "the largest finite element"),
    Field("taps[].zeros", "number or null", "fraction of elements that are zero"),
    Field("taps[].nonfinite", "integer", "number of elements that are NaN or infinite"),
)


def observed(graph: Graph) -> dict[str, Value]:
    """Map each module's path to the last value computed in it, in the order of the graph."""
    last_values: dict[str, Value] = {}
    for node in graph.nodes():
        if node.location.module and node.results:
            last_values.pop(node.location.module, None)
            last_values[node.location.module] = node.results[0]
    return last_values


def tap(graph: Graph, weights: Mapping[str, np.ndarray], inputs: Sequence[Any]) -> list[Tap]:
    """Run a graph whose outputs are replaced by the observed values, on copies of its states."""
    values = observed(graph)
    if not values:
        return []
    graph.set_outputs(values.values())
    module = graph_module(graph, {path: from_numpy(np.array(array)) for path, array in weights.items()})
    arguments = [x if isinstance(x, int) else from_numpy(np.asarray(x)) for x in inputs]
    with compiling(), no_grad():
        results = compile(module, tier="full")(*arguments)
    statistics = import_module("graphc.tracing.taps").Statistics
    arrays = [numbers(x._data) for x in (results if isinstance(results, tuple) else (results,))]
    return [
        Tap(name, value.dtype.name, array.shape, statistics.of(array, KINDS))
        for (name, value), array in zip(values.items(), arrays, strict=True)
    ]


def text(taps: Sequence[Tap]) -> str:
    """Format a table with one row for each tap."""
    rows = [["module", "type", "mean", "std", "min", "max", "zeros", "not finite"]]
    for tap in taps:
        s = tap.statistics
        shape = f"{tap.dtype}[{','.join(map(str, tap.shape))}]"
        numbers = [f"{number:.4g}" for number in (s.mean, s.std, s.min, s.max)]
        rows.append([tap.module, shape, *numbers, f"{s.zeros:.1%}", str(s.nonfinite)])
    return console.table(rows)
