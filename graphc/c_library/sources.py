"""What a library is made of: the graphs of the entries of a model, as a model file holds them, each with its arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.compiler.freeze import freeze
from graphc.files.first_format import ENTRY
from graphc.files.model_content import Artifact
from graphc.files.model_manifest import EntrySpec
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import settle
from graphc.models.model_graph import read_graph

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

    def frozen(self, changing: Collection[str]) -> Graph:
        """The graph for the sizes for which it holds, with all arrays as constants but those that change."""
        return freeze(settle(self.graph), {p: w for p, w in self.weights.items() if p not in changing})


def sources_of(stored: Artifact, entries: Sequence[str] | None = None) -> list[Source]:
    """One for each entry, or for those of these names; the only one of a model is called RUN where it has no name of
    its own. Raises ArgumentError for a name that there is not."""
    known = {spec.name: spec for spec in stored.manifest.public}
    wanted = list(known) if entries is None else list(dict.fromkeys(entries))
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        what = f"the model has no entry {unknown[0]!r}" if unknown else "a library has at least one entry"
        raise ArgumentError(what, remedy=f"of {', '.join(known)}")
    called = {name: RUN if list(known) == [ENTRY] else name for name in wanted}
    return [Source(called[name], read_graph(stored, name), known[name], stored.weights) for name in wanted]


def changing(stored: Artifact, sources: Sequence[Source]) -> frozenset[str]:
    """Paths of the params and states that some source writes, or that are constants of no program."""
    written = (path for source in sources for path in source.spec.writes)
    return frozenset([*written, *(t.name for t in stored.manifest.weights if t.free)])
