"""Statistics of intermediate values of a model file: what the last operation of each of its modules has made."""

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

# Most runs have none: what computes them is loaded when they are asked for.
compiling = deferred("graphc.cli.targets:compiling")
compile = deferred("graphc.calls.function:compile")
graph_module = deferred("graphc.calls.graph_module:GraphModule")
from_numpy = deferred("graphc.tensors.creation:from_numpy")
no_grad = deferred("graphc.tape.grad_mode:no_grad")

KINDS = "mean norm zeros range nan"


class Tap(NamedTuple):
    """A value of a call."""

    module: str
    """The path of the module that made it."""
    dtype: str
    shape: tuple[int, ...]
    statistics: Statistics

    def as_json(self) -> dict[str, Any]:
        """For JSON; None stands for what there is not."""
        told = self.statistics
        numbers = {"mean": told.mean, "std": told.std, "min": told.min, "max": told.max, "zeros": told.zeros}
        finite = {name: float(number) if np.isfinite(number) else None for name, number in numbers.items()}
        named = {"module": self.module, "dtype": self.dtype, "shape": list(self.shape)}
        return {**named, **finite, "nonfinite": told.nonfinite}


JSON = (
    Field("taps[].module", "string", "path of a module", optional=True),
    Field("taps[].dtype", "string", "element type of what it has made"),
    Field("taps[].shape", "array", "its shape"),
    Field("taps[].shape[]", "integer", "a size", optional=True),
    Field("taps[].mean", "number or null", "mean of its finite elements"),
    Field("taps[].std", "number or null", "their deviation"),
    Field("taps[].min", "number or null", "the smallest"),
    Field("taps[].max", "number or null", "the largest"),
    Field("taps[].zeros", "number or null", "the share of zeros"),
    Field("taps[].nonfinite", "integer", "how many are NaN or infinite"),
)


def observed(graph: Graph) -> dict[str, Value]:
    """By module path, in the order of the graph, the last value that each module makes."""
    found: dict[str, Value] = {}
    for node in graph.nodes():
        if node.location.module and node.results:
            found.pop(node.location.module, None)
            found[node.location.module] = node.results[0]
    return found


def tap(graph: Graph, weights: Mapping[str, np.ndarray], inputs: Sequence[Any]) -> list[Tap]:
    """Runs a graph, whose outputs become the observed values, with copies of its states."""
    values = observed(graph)
    if not values:
        return []
    graph.set_outputs(values.values())
    module = graph_module(graph, {path: from_numpy(np.array(array)) for path, array in weights.items()})
    arguments = [x if isinstance(x, int) else from_numpy(np.asarray(x)) for x in inputs]
    with compiling(), no_grad():
        found = compile(module)(*arguments)
    statistics = import_module("graphc.tracing.taps").Statistics
    arrays = [numbers(x._data) for x in (found if isinstance(found, tuple) else (found,))]
    return [
        Tap(name, value.dtype.name, array.shape, statistics.of(array, KINDS))
        for (name, value), array in zip(values.items(), arrays, strict=True)
    ]


def text(taps: Sequence[Tap]) -> str:
    """A table."""
    rows = [["module", "type", "mean", "std", "min", "max", "zeros", "not finite"]]
    for found in taps:
        told = found.statistics
        shape = f"{found.dtype}[{','.join(map(str, found.shape))}]"
        numbers = [f"{number:.4g}" for number in (told.mean, told.std, told.min, told.max)]
        rows.append([found.module, shape, *numbers, f"{told.zeros:.1%}", str(told.nonfinite)])
    return console.table(rows)
