"""Values of the argument ``first_nan``."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ArgumentError


def check_level(doing: str, first_nan: Any) -> None:
    """Raise ArgumentError for a value that ``first_nan`` does not take."""
    if not isinstance(first_nan, bool) and first_nan != "all":
        raise ArgumentError(f"{doing}: first_nan is {first_nan!r}", remedy='pass True, False or "all"')
