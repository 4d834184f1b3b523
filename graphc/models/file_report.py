"""Integrity check of model files, with warnings about suspicious contents, which runs nothing of a file."""

from __future__ import annotations

import os
from dataclasses import field
from typing import Any

import numpy as np

from graphc.base.errors import ArtifactError
from graphc.base.records import dataclass
from graphc.files import model_content
from graphc.files.model_content import Artifact, Code, StoredEntry
from graphc.models.formats import read_text_parts
from graphc.models.model_graph import read_graph
from graphc.models.model_programs import why_not_native


@dataclass
class FileReport:
    """The findings about a file."""

    path: str
    problem: str = ""
    """The damage; empty for an intact file."""
    warnings: list[str] = field(default_factory=list)
    """Contents that are valid but may be unintended."""
    entries: list[dict[str, Any]] = field(default_factory=list)
    """For each entry: its name, the number of nodes in its graph, its sample calls, and its native codes."""
    weights: int = 0
    weight_bytes: int = 0

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problem


def report_of(path: str | os.PathLike[str]) -> FileReport:
    """Check a model file: digests, limits, manifest, parsing and verification of each entry's graph, weights against
    graphs.

    Warn of non-finite weights and constants, native code that cannot run here, and entries without a sample
    call. Raise OSError where the file cannot be read.
    """
    report = FileReport(os.fspath(path))
    try:
        stored = model_content.load(path)
        for entry in stored.entries:
            report.entries.append(_entry_facts(stored, entry))
    except ArtifactError as error:
        report.problem = str(error).removeprefix(f"{report.path}: ")
        return report
    report.weights = len(stored.weights)
    report.weight_bytes = sum(a.nbytes for a in stored.weights.values())
    report.warnings = [*_not_finite(stored), *_of_entries(stored)]
    return report


def _entry_facts(stored: Artifact, entry: StoredEntry) -> dict[str, Any]:
    try:
        graphs = [] if entry.spec.segments else [read_graph(stored, entry.spec.name)]
        if entry.spec.texts:
            read_text_parts(entry.spec.texts)
    except ArtifactError as error:
        error.what = f"entry {entry.spec.name}: {error.what}"
        raise
    codes = [_code_facts(code) for code in entry.natives]
    return {
        "name": entry.spec.name,
        "nodes": sum(1 for graph in graphs for _ in graph.nodes()),
        "samples": len(entry.golden),
        "natives": codes,
    }


def _code_facts(code: Code) -> dict[str, Any]:
    target, why_not = code.manifest.target, why_not_native(code)
    facts = {"triple": target.triple, "cpu": target.cpu, "features": list(target.features)}
    return {**facts, "runs_here": not why_not, "why_not": why_not}


def _not_finite(stored: Artifact) -> list[str]:
    arrays = dict(stored.weights)
    for entry in stored.entries:
        arrays |= {f"{entry.spec.name}: constant {key}": array for key, array in entry.data.items()}
    warnings = []
    for name, array in arrays.items():
        count = 0 if array.dtype.kind != "f" else int(array.size - np.isfinite(array).sum())
        if count:
            warnings.append(f"{name}: {count} of {array.size} numbers are not finite")
    return warnings


def _of_entries(stored: Artifact) -> list[str]:
    warnings = []
    for entry in stored.entries:
        reasons = [why_not_native(code) for code in entry.natives]
        if reasons and all(reasons):
            warnings.append(f"{entry.spec.name}: no native code in it runs here: {reasons[0]}")
        if not entry.golden and not entry.spec.of:
            warnings.append(f"{entry.spec.name}: no sample call, so selftest cannot test it")
    return warnings
