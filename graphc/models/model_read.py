"""Reading of model files: their content without parsed graphs."""

from __future__ import annotations

import os
from collections.abc import Sequence

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.base.lazy import deferred
from graphc.files import model_content
from graphc.files.model_content import Artifact

_completed = deferred("graphc.models.model_graph:completed")


def read_model(path: str | os.PathLike[str], mapped: bool | None = False) -> Artifact:
    """Read a model file. Complete files of the first format from their graph.

    For ``mapped`` see ``files.container.read_with_digest``. Raise ArtifactError and OSError.
    """
    stored = model_content.load(path, mapped)
    try:
        return _completed(stored) if stored.is_old else stored
    except ArtifactError as error:
        error.what = f"{os.fspath(path)}: {error.what}"
        raise


def entry_name(stored: Artifact, name: str | None) -> str:
    """Return the name of an entry; of the first one for None. Raise ArgumentError where it does not exist."""
    names = [spec.name for spec in stored.manifest.public]
    if name is not None and name not in names:
        raise ArgumentError(f"the model has no entry {name!r}", remedy=f"use one of {', '.join(names)}")
    return names[0] if name is None else name


def check_weights(stored: Artifact, expected: Sequence[tuple[str, str, tuple[int, ...]]]) -> None:
    """Raise ArtifactError unless the file holds weights of these paths and types."""
    stored_types = {t.name: (t.dtype, t.shape) for t in stored.manifest.weights}
    for path, dtype, shape in expected:
        if stored_types.get(path) != (dtype, shape):
            problem = (
                "is missing" if path not in stored_types else f"is {stored_types[path][0]}{list(stored_types[path][1])}"
            )
            raise ArtifactError(f"weight {path!r} {problem}, the graph takes {dtype}{list(shape)}")
