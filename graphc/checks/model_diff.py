"""Differences between two models: graphs of entries, weights by name, and outputs for the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphc.base.dtypes import numbers
from graphc.files.model_content import Artifact
from graphc.files.model_manifest import EntrySpec
from graphc.ir.graph.diff import diff_graphs
from graphc.models.model_graph import read_graph


@dataclass(frozen=True)
class Tolerance:
    """Tolerance for numbers: ``absolute + relative * |b|``. It applies to floats and complex numbers only."""

    absolute: float = 0.0
    relative: float = 0.0


@dataclass
class ArrayDifference:
    """Two unequal arrays."""

    name: str
    problem: str = ""
    """Reason why their values cannot be compared: another type, another shape, or missing."""
    absolute: float = 0.0
    """The largest difference of two elements."""
    relative: float = 0.0
    """The largest difference relative to the second element."""
    count: int = 0
    """Number of unequal elements."""
    size: int = 0
    place: tuple[int, ...] = ()
    """Index of the largest difference."""
    within: bool = False
    """Whether all differences are within the tolerance."""


@dataclass
class EntryDifference:
    """The differences of an entry."""

    name: str
    problem: str = ""
    """Reason why it cannot be compared: missing, or with other inputs."""
    graph: str = ""
    """A unified diff of the graphs."""
    outputs: list[ArrayDifference] = field(default_factory=list)


@dataclass
class ModelDifference:
    """The differences between two models."""

    weights: list[ArrayDifference] = field(default_factory=list)
    entries: list[EntryDifference] = field(default_factory=list)
    compared: dict[str, int] = field(default_factory=dict)
    """Numbers of compared ``graphs``, ``weights`` and ``outputs``."""

    @property
    def equal(self) -> bool:
        """Whether nothing differs by more than the tolerance."""
        arrays = [*self.weights, *(o for e in self.entries for o in e.outputs)]
        return all(a.within for a in arrays) and not any(e.problem or e.graph for e in self.entries)


def compare_arrays(name: str, a: np.ndarray, b: np.ndarray, tolerance: Tolerance) -> ArrayDifference | None:
    """Return the differences of two arrays, or None where their bits, or their numbers and NaN, are the same."""
    if a.dtype != b.dtype or a.shape != b.shape:
        first_type, second_type = (f"{x.dtype.name}{list(x.shape)}" for x in (a, b))
        return ArrayDifference(name, f"{first_type} and {second_type}")
    if a.tobytes() == b.tobytes():
        return None
    a, b = numbers(a), numbers(b)
    both_nan = np.isnan(a) & np.isnan(b) if a.dtype.kind in "fc" else np.zeros(a.shape, bool)
    unequal = (a != b) & ~both_nan
    if not unequal.any():
        return None
    exact = a.dtype.kind not in "fc"
    kind: Any = object if a.dtype.kind in "iu" else complex if a.dtype.kind == "c" else float
    wide = a.astype(kind), b.astype(kind)
    with np.errstate(all="ignore"):
        far = np.where(unequal, np.abs(wide[0] - wide[1]), 0).astype(float)
        far = np.where(np.isnan(far), np.inf, far)
        size = np.abs(wide[1]).astype(float)
        share = np.where(unequal, far / size, 0)
        share = np.where(np.isnan(share), np.inf, share)
        limit = tolerance.absolute + tolerance.relative * size
    index = tuple(int(i) for i in np.unravel_index(int(far.argmax()), far.shape))
    within = not exact and bool(((far <= limit) & np.isfinite(far))[unequal].all())
    return ArrayDifference(
        name, "", float(far.max()), float(share.max()), int(unequal.sum()), int(a.size), index, within
    )


def compare_named(
    a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray], tolerance: Tolerance
) -> list[ArrayDifference]:
    """Return the differences of arrays by name, in the order of the first model and then of the second."""
    differences = []
    for name in [*a, *(n for n in b if n not in a)]:
        if name in a and name in b:
            difference = compare_arrays(name, a[name], b[name], tolerance)
        else:
            difference = ArrayDifference(name, f"only in the {'first' if name in a else 'second'}")
        if difference is not None:
            differences.append(difference)
    return differences


def compare_models(
    a: Artifact, b: Artifact, *, tolerance: Tolerance, graphs: bool = True, weights: bool = True
) -> ModelDifference:
    """Return the differences of two files' contents. ``compare_outputs`` compares outputs. Raise ArtifactError."""
    difference = ModelDifference()
    if weights:
        difference.weights = compare_named(a.weights, b.weights, tolerance)
        difference.compared["weights"] = len({*a.weights, *b.weights})
    names = [e.spec.name for e in a.entries]
    for name in [*names, *(e.spec.name for e in b.entries if e.spec.name not in names)]:
        difference.entries.append(_compare_entry(name, a, b, graphs))
    if graphs:
        difference.compared["graphs"] = sum(not e.problem for e in difference.entries)
    return difference


def _compare_entry(name: str, a: Artifact, b: Artifact, graphs: bool) -> EntryDifference:
    present = [name in {e.spec.name for e in model.entries} for model in (a, b)]
    if not all(present):
        return EntryDifference(name, f"only in the {'first' if present[0] else 'second'}")
    return EntryDifference(name, "", diff_graphs(read_graph(a, name), read_graph(b, name)) if graphs else "")


def why_other_calls(a: EntrySpec, b: EntrySpec) -> str:
    """Explain why two entries cannot be called with the same inputs. Return an empty text where they can."""
    first, second = (", ".join(map(str, spec.inputs)) for spec in (a, b))
    return "" if first == second else f"inputs {first or 'none'} and {second or 'none'}"


def compare_outputs(
    specs: tuple[EntrySpec, EntrySpec], first: Sequence[Any], second: Sequence[Any], tolerance: Tolerance
) -> list[ArrayDifference]:
    """Return the differences of two entries' outputs for the same inputs."""
    named = [
        {spec.name: np.asarray(array) for spec, array in zip(s.outputs, arrays, strict=True)}
        for s, arrays in zip(specs, (first, second), strict=True)
    ]
    if len(named[0]) == len(named[1]) and set(named[0]) != set(named[1]):
        named[1] = dict(zip(named[0], named[1].values(), strict=True))  # Names of outputs need not be the same.
    return compare_named(named[0], named[1], tolerance)
