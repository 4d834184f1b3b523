"""Sources of a library: the graphs of a model's entries, as in a model file, each with its arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass
from graphc.base.sizes.assumptions import Assumption
from graphc.compiler.freeze import freeze
from graphc.files.model_content import Artifact
from graphc.files.model_manifest import ENTRY, EntrySpec
from graphc.ir.graph.graph import Graph
from graphc.models.model_graph import read_graph
from graphc.models.sized_graph import made_for_all

T = TypeVar("T")
RUN = "run"
"""Name of the only entry of a model without entry names."""


@dataclass(frozen=True)
class LibrarySource:
    """Graph that becomes one function of a library."""

    name: str
    graph: Graph
    spec: EntrySpec
    """Inputs, outputs, dimensions and assumptions of the graph."""
    weights: Mapping[str, np.ndarray]
    """Parameters and states by path."""

    def made(self, changing: Collection[str], make: Callable[[Graph], T]) -> tuple[T, tuple[Assumption, ...]]:
        """Return what ``make`` makes of the graph, with every array not in ``changing`` as a constant, and what it
        assumes of sizes besides the graph; see ``made_for_all``."""
        constants = {path: array for path, array in self.weights.items() if path not in changing}
        return made_for_all(self.graph, lambda restricted: make(freeze(restricted, constants)))


def sources_of(stored: Artifact, entries: Sequence[str] | None = None) -> list[LibrarySource]:
    """Return one source for each entry, or for the named entries.

    The only entry of a model without entry names is called RUN. Raises ArgumentError for an unknown name.
    """
    specs = {spec.name: spec for spec in stored.manifest.public}
    chosen = list(specs) if entries is None else list(dict.fromkeys(entries))
    unknown = [name for name in chosen if name not in specs]
    if unknown or not chosen:
        what = f"the model has no entry {unknown[0]!r}" if unknown else "a library needs at least one entry"
        raise ArgumentError(what, remedy=f"choose from {', '.join(specs)}")
    for name in chosen:
        if specs[name].segments:
            raise ArgumentError(
                f"{specs[name].title} reads sizes from values in each call, and a function of a library is one program",
                remedy="export it to a .gcm file for graphc.load, or give results of values a fixed size",
            )
    called = {name: RUN if list(specs) == [ENTRY] else name for name in chosen}
    return [LibrarySource(called[name], read_graph(stored, name), specs[name], stored.weights) for name in chosen]


def changing(stored: Artifact, sources: Sequence[LibrarySource]) -> frozenset[str]:
    """Return the paths of parameters and states that some source writes, or that are never constants."""
    written = (path for source in sources for path in source.spec.writes)
    return frozenset([*written, *(t.name for t in stored.manifest.weights if t.free)])
