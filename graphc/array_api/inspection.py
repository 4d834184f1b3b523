"""What the namespace says of itself: version, devices, element types."""

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
"""What may be asked of ``__array_namespace__``: each of them holds in the later ones but for tuples that were lists."""


def namespace(api_version: str | None = None) -> Any:
    """The namespace, ``graphc.array_api``; raises AttributeValueError for a version of the standard that it does not
    follow."""
    if api_version not in (None, *VERSIONS):
        raise AttributeValueError(
            f"version {api_version!r} of the array API standard is not here", remedy=f"one of {', '.join(VERSIONS)}"
        )
    return sys.modules["graphc.array_api"]


class Info:
    """What ``__array_namespace_info__`` returns."""

    def capabilities(self) -> dict[str, Any]:
        """Which parts of the standard that are optional there are. The compiler takes neither masks as an index nor
        sizes that depend on values."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> device:
        """Where arrays are made."""
        return CPU

    def devices(self) -> tuple[device, ...]:
        """Where arrays can live on any machine; a GPU is there by its name, ``cuda:0``."""
        return (CPU,)

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The types that are taken where none is given."""
        real = get_default_dtype()
        return {"real floating": real, "complex floating": real.complex, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The element types by name: all, or those of a kind, or of a tuple of kinds. Raises DTypeError for an unknown
        kind."""
        letters, _ = promotion.kinds_of(tuple(promotion.KINDS) if kind is None else kind)
        return {d.long_name: d for d in ALL if d.kind in letters or (kind is None and d.kind != "h")}


def __array_namespace_info__() -> Info:
    """What the namespace says of itself."""
    return Info()


__all__ = ["__array_api_version__", "__array_namespace_info__"]
