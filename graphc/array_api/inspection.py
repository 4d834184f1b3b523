"""Inspection of the namespace: version, devices, element types."""

from __future__ import annotations

import sys
from typing import Any

from graphc.array_api import promotion
from graphc.base.device import CPU, device
from graphc.base.dtypes import ALL, DType, int64
from graphc.base.errors import AttributeValueError
from graphc.tensors.creation import get_default_dtype

__array_api_version__ = "2025.12"
VERSIONS = ("2022.12", "2023.12", "2024.12", "2025.12")
"""Versions that ``__array_namespace__`` accepts. Each is part of the later ones, except for tuples that were lists."""


def namespace(api_version: str | None = None) -> Any:
    """Return the namespace, ``graphc.array_api``. Raises AttributeValueError for an unsupported version of the
    standard."""
    if api_version not in (None, *VERSIONS):
        raise AttributeValueError(
            f"graphc does not support version {api_version!r} of the array API standard",
            remedy=f"use one of {', '.join(VERSIONS)}",
        )
    return sys.modules["graphc.array_api"]


class Info:
    """Result of ``__array_namespace_info__``."""

    def capabilities(self) -> dict[str, Any]:
        """Return the optional features of the standard that graphc has.

        Compiled code supports neither boolean masks as an index nor sizes that depend on values.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> device:
        """Return the device on which arrays are created by default."""
        return CPU

    def devices(self) -> tuple[device, ...]:
        """Return the devices that every machine has. GPUs are available by name, ``cuda:0``."""
        return (CPU,)

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Return the default types."""
        real = get_default_dtype()
        return {"real floating": real, "complex floating": real.complex, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """Return the element types by name: all of them, or only those of a kind or a tuple of kinds.

        Raises DTypeError for an unknown kind.
        """
        letters, _ = promotion.kinds_of(tuple(promotion.KINDS) if kind is None else kind)
        return {d.long_name: d for d in ALL if d.kind in letters or (kind is None and d.kind != "h")}


def __array_namespace_info__() -> Info:
    """Return information about the namespace."""
    return Info()


__all__ = ["__array_api_version__", "__array_namespace_info__"]
