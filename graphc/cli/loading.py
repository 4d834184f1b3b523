"""Load the model that ``graphc run`` calls, without importing the tracer or the compiler for a model file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

from graphc.base.errors import GraphcError
from graphc.base.lazy import deferred

if TYPE_CHECKING:
    from graphc.models.model_file import LoadedModel

FOREIGN = (".pt2", ".onnx", ".mlir")
"""Suffixes of other frameworks' files, which ``graphc/cli/exported.py`` reads."""

load = deferred("graphc.models.model_file:load")
load_foreign = deferred("graphc.cli.exported:load_model")
compiling = deferred("graphc.cli.targets:compiling")


def load_model(
    text: str,
    trust: bool,
    target: str,
    device: str | None = None,
    weights: str | None = None,
    shapes: Iterable[tuple[str, int]] = (),
) -> LoadedModel:
    """Load a model file, or a file of another framework, as a callable model.

    ``weights`` names a file of other weights. ``shapes`` are expected sizes of dimensions, for which a file of another
    framework is traced. Raises CompileFailure, and whatever ``graphc.load`` raises for files.
    """
    try:
        if PurePath(text).suffix in FOREIGN:
            return load_foreign(text, trust, target, device, weights, shapes)
        return load(text, trust=trust, target=target, device=device, weights=weights)
    except GraphcError:
        with compiling():
            raise
