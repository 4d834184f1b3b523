"""The formats that models are written in, by the suffix of the path, and which options belong to which."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.lazy import deferred

GCM, ONNX = ".gcm", ".onnx"
"""Model files, and files for other runtimes."""
write_onnx = deferred("graphc.interop.onnx_export.export:export_model")


def format_of(path: str | os.PathLike[str]) -> str:
    """The suffix of the format that a path asks for, ``.gcm`` where it has none. Raises ArgumentError for one that
    graphc does not write."""
    suffix = Path(path).suffix or GCM
    if suffix not in (GCM, ONNX):
        names = " or ".join(Path(path).with_suffix(known).name for known in (GCM, ONNX))
        raise ArgumentError(f"{os.fspath(path)}: graphc writes {GCM} and {ONNX} files, no {suffix}", remedy=names)
    return suffix


def check_options(path: str | os.PathLike[str], wanted: str, options: Mapping[str, Any]) -> None:
    """Raises ArgumentError where one of the options is given, which are for another format than that of the path, and
    for a path of no format."""
    name = next((name for name, value in options.items() if value), None)
    if format_of(path) != wanted and name is not None:
        raise ArgumentError(f"{name} is for {wanted} files", remedy=f"{Path(path).with_suffix(wanted).name}")
