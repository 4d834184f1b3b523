"""The ``onnx`` package (extra ``onnx``): functions that define operators, and versions newer than those known here."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.installation import install_command


def onnx_package() -> Any:
    """Return the ``onnx`` package. Raises ArgumentError where it is not installed."""
    try:
        import onnx
        import onnx.helper
    except ImportError:
        raise ArgumentError(
            "the model has operators or versions that graphc knows from the package onnx alone",
            remedy=f"install onnx: {install_command('onnx')}",
        ) from None
    return onnx


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
