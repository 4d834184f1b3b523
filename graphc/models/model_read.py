"""Model files as they are read: what they hold, without their graphs."""

from __future__ import annotations

import os
from collections.abc import Sequence

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.base.lazy import deferred
from graphc.files import model_content
from graphc.files.model_content import Artifact

_completed = deferred("graphc.models.model_graph:completed")


def read_model(path: str | os.PathLike[str], mapped: bool | None = False) -> Artifact:
    """A model file, of whose entries everything is known: of files of the first format what their graph says.
    ``mapped`` as for ``files.container.read_with_digest``. Raises ArtifactError and OSError."""
    stored = model_content.load(path, mapped)
    try:
        return _completed(stored) if stored.is_old else stored
    except ArtifactError as error:
        error.what = f"{os.fspath(path)}: {error.what}"
        raise


def entry_name(stored: Artifact, name: str | None) -> str:
    """The name of an entry, that of the first one for None; raises ArgumentError where there is none."""
    names = [spec.name for spec in stored.manifest.public]
    if name is not None and name not in names:
        raise ArgumentError(f"the model has no entry {name!r}", remedy=f"one of {', '.join(names)}")
    return names[0] if name is None else name


def check_weights(stored: Artifact, wanted: Sequence[tuple[str, str, tuple[int, ...]]]) -> None:
    """Raises ArtifactError unless the file holds weights of these paths and types."""
    held = {t.name: (t.dtype, t.shape) for t in stored.manifest.weights}
    for path, dtype, shape in wanted:
        if held.get(path) != (dtype, shape):
            found = "is missing" if path not in held else f"is {held[path][0]}{list(held[path][1])}"
            raise ArtifactError(f"weight {path!r} {found}, the graph takes {dtype}{list(shape)}")
