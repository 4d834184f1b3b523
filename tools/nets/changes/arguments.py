"""Arguments other than tensors, as the models of scenes read them."""

from __future__ import annotations

from typing import Any


def amount_of(given: Any) -> Any:
    """Return a number or tensor of an argument that may be nearly anything."""
    if isinstance(given, dict):
        return given["amount"]
    if isinstance(given, (list, tuple)):
        return given[0]
    if isinstance(given, (set, frozenset)):
        return float(len(given))
    if callable(given):
        return given()
    return given.amount if hasattr(given, "amount") else given
