"""Differences between two models: graphs of entries, weights by name, and outputs for the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from graphc.base.difference import Difference, Tolerance, difference
from graphc.base.records import dataclass
from graphc.files.model_content import Artifact
from graphc.files.model_manifest import EntrySpec
from graphc.ir.graph.diff import diff_graphs
from graphc.models.model_graph import read_graph


@dataclass
class EntryDifference:
    """The differences of an entry."""

    name: str
    problem: str = ""
    """Reason why it cannot be compared: missing, or with other inputs."""
    graph: str = ""
    """A unified diff of the graphs."""
    outputs: list[Difference] = field(default_factory=list)


@dataclass
class ModelDifference:
    """The differences between two models."""

    weights: list[Difference] = field(default_factory=list)
    entries: list[EntryDifference] = field(default_factory=list)
    compared: dict[str, int] = field(default_factory=dict)
    """Numbers of compared ``graphs``, ``weights`` and ``outputs``."""

    @property
    def equal(self) -> bool:
        """Whether nothing differs by more than the tolerance."""
        arrays = [*self.weights, *(o for e in self.entries for o in e.outputs)]
        return all(a.is_within for a in arrays) and not any(e.problem or e.graph for e in self.entries)


def compare_named(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray], tolerance: Tolerance) -> list[Difference]:
    """Return the differences of arrays by name, in the order of the first model and then of the second.

    The second model is the reference. Equal arrays are omitted.
    """
    differences = []
    for name in [*a, *(n for n in b if n not in a)]:
        if name in a and name in b:
            change = difference(name, a[name], b[name], tolerance, same_dtype=True)
        else:
            change = Difference(name, problem=f"only in the {'first' if name in a else 'second'}", is_equal=False)
        if change.count or change.problem:
            differences.append(change)
    return differences


def compare_models(
    a: Artifact, b: Artifact, *, tolerance: Tolerance, graphs: bool = True, weights: bool = True
) -> ModelDifference:
    """Return the differences of two files' contents. ``compare_outputs`` compares outputs. Raise ArtifactError."""
    report = ModelDifference()
    if weights:
        report.weights = compare_named(a.weights, b.weights, tolerance)
        report.compared["weights"] = len({*a.weights, *b.weights})
    names = [e.spec.name for e in a.entries]
    for name in [*names, *(e.spec.name for e in b.entries if e.spec.name not in names)]:
        report.entries.append(_compare_entry(name, a, b, graphs))
    if graphs:
        report.compared["graphs"] = sum(not e.problem for e in report.entries)
    return report


def _compare_entry(name: str, a: Artifact, b: Artifact, graphs: bool) -> EntryDifference:
    present = [name in {e.spec.name for e in model.entries} for model in (a, b)]
    if not all(present):
        return EntryDifference(name, f"only in the {'first' if present[0] else 'second'}")
    chains = [model.entry(name).spec.segments for model in (a, b)]
    if any(chains):
        return EntryDifference(name, "" if chains[0] == chains[1] else "a chain of other programs")
    return EntryDifference(name, "", diff_graphs(read_graph(a, name), read_graph(b, name)) if graphs else "")


def why_other_calls(a: EntrySpec, b: EntrySpec) -> str:
    """Explain why two entries cannot be called with the same inputs. Return an empty text where they can."""
    first, second = (", ".join(map(str, spec.inputs)) for spec in (a, b))
    return "" if first == second else f"inputs {first or 'none'} and {second or 'none'}"


def compare_outputs(
    specs: tuple[EntrySpec, EntrySpec], first: Sequence[Any], second: Sequence[Any], tolerance: Tolerance
) -> list[Difference]:
    """Return the differences of two entries' outputs for the same inputs."""
    named = [
        {spec.name: np.asarray(array) for spec, array in zip(s.outputs, arrays, strict=True)}
        for s, arrays in zip(specs, (first, second), strict=True)
    ]
    if len(named[0]) == len(named[1]) and set(named[0]) != set(named[1]):
        named[1] = dict(zip(named[0], named[1].values(), strict=True))  # Names of outputs need not be the same.
    return compare_named(named[0], named[1], tolerance)
