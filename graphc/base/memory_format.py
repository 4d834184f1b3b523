"""Memory formats and layouts by PyTorch's names: hints, since tensors are dense and lie as the compiler needs them."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ArgumentError

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "layout",
    "memory_format",
    "preserve_format",
    "strided",
]


class _Name:
    """One of a few values, known by its name."""

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"graphc.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class memory_format(_Name):
    """An order of dimensions in memory. Eager tensors are row-major, or views of what is; compiled code chooses."""


class layout(_Name):
    """How elements are stored: ``strided`` is the only way."""


contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
strided = layout("strided")

HINTS = frozenset({"layout", "memory_format", "pin_memory"})
"""Arguments of functions that make tensors, which say how these are to lie in memory."""


def without_hints(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments without those of HINTS. Raises ArgumentError for a layout that is not dense, and for what is no hint of
    its kind."""
    if given.get("layout") not in (None, strided):
        raise ArgumentError(f"{name}: tensors are dense, not {given['layout']!r}", remedy="layout=graphc.strided")
    check_format(name, given.get("memory_format"))
    return {key: value for key, value in given.items() if key not in HINTS}


def check_format(name: str, given: Any) -> None:
    """Raises ArgumentError for what is no memory format."""
    if given is not None and not isinstance(given, memory_format):
        raise ArgumentError(f"{name}: {given!r} is no memory format", remedy="graphc.contiguous_format")
