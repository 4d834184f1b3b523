"""Model file split into its parts, and errors of files with changed parts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from graphc.errors import ArtifactError, CompileError
from graphc.files import model_content as artifact
from graphc.files.model_content import Artifact
from graphc.ir.graph.graph import Graph
from graphc.models import model_programs
from graphc.models.model_export import save_graph
from graphc.models.model_file import load
from tests.compiler.graphs import arguments, mlp, weights


def stored_model(tmp_path: Path) -> Artifact:
    """The file ``a.gcm`` with native code, as its parts."""
    save_graph(mlp(), weights(mlp(), arguments(mlp())), tmp_path / "a.gcm", native=True)
    return artifact.load(tmp_path / "a.gcm")


def changed(stored: Artifact, **changes: Any) -> Artifact:
    """The model with other parts of its entry."""
    return dataclasses.replace(stored, entries=(dataclasses.replace(stored.first, **changes),))


def refused(tmp_path: Path, wrong: Artifact, match: str, trust: bool = False) -> None:
    path = tmp_path / "changed.gcm"
    artifact.save(path, wrong)
    with pytest.raises(ArtifactError, match=match) as caught:
        load(path, trust=trust)
    assert str(path) in str(caught.value)


def refuse_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No entry has a program for all sizes of its dimensions."""

    def refuse(graph: Graph, added: Any = ()) -> Graph:
        raise CompileError("not for all")

    monkeypatch.setattr(model_programs, "restricted", refuse)
