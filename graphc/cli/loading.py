"""The model that ``graphc run`` calls: a model file is loaded without what traces and compiles."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from graphc.base.errors import GraphcError
from graphc.base.lazy import deferred

if TYPE_CHECKING:
    from graphc.models.model_file import LoadedModel

FOREIGN = (".pt2", ".onnx")
"""Suffixes of files of other frameworks, which ``graphc/cli/exported.py`` reads."""

load = deferred("graphc.models.model_file:load")
load_foreign = deferred("graphc.cli.exported:load_model")
compiling = deferred("graphc.cli.targets:compiling")


def load_model(
    text: str, trust: bool, target: str, device: str | None = None, weights: str | None = None
) -> LoadedModel:
    """A model file, or the model in a file of another framework, that can be called; with other ``weights`` where a
    file of such is named. Raises CompileFailure, and what ``graphc.load`` does for files."""
    try:
        if PurePath(text).suffix in FOREIGN:
            return load_foreign(text, trust, target, device, weights)
        return load(text, trust=trust, target=target, device=device, weights=weights)
    except GraphcError:
        with compiling():
            raise
