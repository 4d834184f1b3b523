"""What a library is made of: the graphs of a model, a function or a model file, each with its arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.codegen.machine.costs import Costs
from graphc.compiled.graph_module import GraphModule
from graphc.compiled.model_file import entry_spec, extended, nesting, read_graph, snapshot
from graphc.compiler.freeze import freeze, written_states
from graphc.files import model_content
from graphc.files.first_format import ENTRY
from graphc.files.model_manifest import EntrySpec
from graphc.ir.graph.graph import Graph, input_path
from graphc.ir.graph.interpret import settle
from graphc.passes.pipeline import Arranged
from graphc.tensors.placement import on_host

RUN = "run"
"""What the entry of a model with one is called."""


@dataclass(frozen=True)
class Source:
    """A graph that becomes one function of a library."""

    name: str
    graph: Graph
    spec: EntrySpec
    """Its inputs, outputs, dimensions and assumptions."""
    weights: Mapping[str, np.ndarray]
    """Params and states by path."""

    @property
    def written(self) -> set[str]:
        """Paths of the params and states that it writes."""
        return {input_path(value) for value in written_states(self.graph)}

    def frozen(self, written: set[str]) -> Graph:
        """The graph for the sizes for which it holds, with the arrays as constants that no entry writes."""
        return freeze(settle(self.graph), {p: w for p, w in self.weights.items() if p not in written})


def from_model(
    model: Any,
    examples: Sequence[Any],
    named: Mapping[str, Any],
    dims: Any,
    passes: Arranged,
    precision: str | None,
    costs: Costs,
) -> list[Source]:
    """The one source of a module or function, traced as ``export`` does, or of a graph with what it is bound to."""
    if isinstance(model, Graph):
        if examples or named:
            raise ArgumentError(f"@{model.name} is a graph, which has its types", remedy="no examples")
        graph = GraphModule(model).graph
        state = {path: on_host(tensor._data) for path, tensor in graph.bound.items()}
        structure = None
    else:
        traced = snapshot(model, examples, named, dims)
        graph, state, structure = traced.graph, traced.state(), nesting(traced.structure)
    graph = extended(graph, state, passes, precision, costs)
    return [Source(RUN, graph, entry_spec(RUN, graph, structure), state)]


def from_file(path: str | os.PathLike[str]) -> list[Source]:
    """Those of a model file: one for each entry; that of a file with one is called RUN where it has no name of its
    own."""
    stored = model_content.load(path)
    specs = [entry.spec for entry in stored.entries if not entry.spec.of]
    names = [RUN] if [spec.name for spec in specs] == [ENTRY] else [spec.name for spec in specs]
    return [
        Source(name, read_graph(stored, spec.name), spec, stored.weights)
        for name, spec in zip(names, specs, strict=True)
    ]
