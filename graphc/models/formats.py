"""Formats of model files by the suffix of the path, and the options of each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.lazy import deferred

GCM, ONNX = ".gcm", ".onnx"
"""Suffixes of model files, and of files for other runtimes."""
read_text_parts = deferred("graphc.interop.onnx.host_parts:read_text_parts")
"""Reader of the operators on texts in a model file, for models that have some."""
write_onnx = deferred("graphc.interop.onnx_export.export:export_model")


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of the format for a path; ``.gcm`` without one. Raise ArgumentError for a suffix that graphc
    does not write.
    """
    suffix = Path(path).suffix or GCM
    if suffix not in (GCM, ONNX):
        names = " or ".join(Path(path).with_suffix(candidate).name for candidate in (GCM, ONNX))
        raise ArgumentError(
            f"{os.fspath(path)}: graphc writes {GCM} and {ONNX} files, no {suffix}", remedy=f"write {names}"
        )
    return suffix


def check_options(path: str | os.PathLike[str], suffix: str, options: Mapping[str, Any]) -> None:
    """Raise ArgumentError where an option is set that belongs to another format than the path's, and for a path of no
    format.
    """
    name = next((name for name, value in options.items() if value), None)
    if format_of(path) != suffix and name is not None:
        raise ArgumentError(f"{name} is for {suffix} files", remedy=f"write {Path(path).with_suffix(suffix).name}")
