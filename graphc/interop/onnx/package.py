"""The ``onnx`` package (extra ``onnx``): classes of its file format, and functions that define operators."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.installation import install_command

_MESSAGES = "onnx_ml_pb2"
"""Module of the package that defines the classes of the file format; it needs only protobuf."""


def onnx_package() -> Any:
    """Return the ``onnx`` package. Raises ArgumentError where it is not installed."""
    try:
        import onnx
        import onnx.helper
    except ImportError:
        raise _missing() from None
    return onnx


@functools.cache
def messages() -> Any:
    """Return the module with the protobuf classes of the file format. Raises ArgumentError without the package.

    Where nobody has imported the package yet, run the module's file alone, because the rest of the package takes 0.05 s
    to import. protobuf returns the same classes to a later import of the package.
    """
    loaded = sys.modules.get(f"onnx.{_MESSAGES}")
    spec = None if loaded is not None else importlib.util.find_spec("onnx")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder, f"{_MESSAGES}.py")
        if path.is_file():
            return _run_alone(path)
    return loaded or onnx_package()


def _run_alone(path: Path) -> ModuleType:
    # NOTE: under a name of its own, because the import of a package sets its submodules as attributes.
    spec = importlib.util.spec_from_file_location(f"{__name__}_{_MESSAGES}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError:
        raise _missing() from None
    return module


def _missing() -> ArgumentError:
    remedy = f"install onnx: {install_command('onnx')}"
    return ArgumentError("ONNX models need the package onnx", remedy=remedy)


def function_body(domain: str, op: str, version: int) -> Any:
    """Return the FunctionProto that defines an operator, or None. Raises ArgumentError without the package."""
    raw = defined(domain, op, version)
    return raw.function_body if raw is not None and raw.has_function else None


def defined(domain: str, op: str, version: int) -> Any:
    """Return the OpSchema of an operator in a version of its domain, or None where the package has none."""
    definitions = onnx_package().defs
    try:
        return definitions.get_schema(op, version, domain)
    except (definitions.SchemaError, TypeError):  # NOTE: TypeError for numbers and strings that C++ rejects.
        return None


def versions_of_package() -> dict[str, int]:
    """Return the newest operator version of each of ONNX's own domains that the installed package knows."""
    definitions = onnx_package().defs
    return {"": definitions.onnx_opset_version(), "ai.onnx.ml": definitions.onnx_ml_opset_version()}
