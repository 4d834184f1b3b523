"""Memory formats and layouts with PyTorch's names: hints without effect, since the compiler chooses layouts."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ArgumentError

__all__ = ["channels_last", "channels_last_3d", "contiguous_format", "layout", "memory_format", "preserve_format"]
__all__ += ["strided"]


class _Name:
    """Enumeration value, represented by its name."""

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"graphc.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class memory_format(_Name):
    """Order of dimensions in memory. Eager tensors are row-major or views of row-major data; compiled code chooses its
    own."""


class layout(_Name):
    """Storage of elements; ``strided`` is the only one."""


contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
strided = layout("strided")

HINTS = frozenset({"layout", "memory_format", "pin_memory"})
"""Arguments of tensor constructors that are hints about storage."""


def without_hints(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Remove the arguments in HINTS. Raises ArgumentError for a sparse layout, and for a wrong type of hint."""
    if arguments.get("layout") not in (None, strided):
        raise ArgumentError(
            f"{name}: tensors are dense, not {arguments['layout']!r}", remedy="pass layout=graphc.strided"
        )
    check_format(name, arguments.get("memory_format"))
    return {key: value for key, value in arguments.items() if key not in HINTS}


def check_format(name: str, value: Any) -> None:
    """Raise ArgumentError unless the value is a memory format or None."""
    if value is not None and not isinstance(value, memory_format):
        raise ArgumentError(f"{name}: {value!r} is not a memory format", remedy="pass graphc.contiguous_format")
