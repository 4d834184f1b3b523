"""Arguments other than tensors, as the models of scenes read them."""

from __future__ import annotations

from typing import Any


def amount_of(argument: Any) -> Any:
    """Return a number or tensor of an argument that may be nearly anything."""
    if isinstance(argument, dict):
        return argument["amount"]
    if isinstance(argument, (list, tuple)):
        return argument[0]
    if isinstance(argument, (set, frozenset)):
        return float(len(argument))
    if callable(argument):
        return argument()
    return argument.amount if hasattr(argument, "amount") else argument
