"""Mutation epoch: the number of changes to modules and tensors; while it stays the same, no guard is checked."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from graphc.base.public import reduced

EPOCH = [0]
"""Number of changes in this process: a module gained, lost or replaced a member or another attribute, or a tensor got
other memory or another requires_grad. A list of one, so that importers share it."""


def note() -> None:
    """Count a change, so that guards are checked again."""
    EPOCH[0] += 1


class Members(OrderedDict[Any, Any]):
    """Parameters, buffers, children or hooks of a module; every change increments the epoch."""

    def __setitem__(self, key: Any, value: Any) -> None:
        EPOCH[0] += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        EPOCH[0] += 1
        super().__delitem__(key)

    def pop(self, key: Any, *default: Any) -> Any:  # type: ignore[override]
        """Remove and return a member, as ``dict.pop`` does."""
        EPOCH[0] += 1
        return super().pop(key, *default)

    def popitem(self, last: bool = True) -> tuple[str, Any]:
        """Remove and return the last or first member, as ``OrderedDict.popitem`` does."""
        EPOCH[0] += 1
        return super().popitem(last)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return a member, adding ``default`` if it is missing."""
        EPOCH[0] += 1
        return super().setdefault(key, default)

    def update(self, *others: Any, **members: Any) -> None:
        """Add or replace members."""
        EPOCH[0] += 1
        super().update(*others, **members)

    def __ior__(self, other: Any) -> Any:
        EPOCH[0] += 1
        return super().__ior__(other)

    def move_to_end(self, key: Any, last: bool = True) -> None:
        """Move a member to either end of the order."""
        EPOCH[0] += 1
        super().move_to_end(key, last)

    def clear(self) -> None:
        """Remove all members at once."""
        EPOCH[0] += 1
        super().clear()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(super().__reduce_ex__(protocol))


COMMON_HOOKS: list[Members] = []
"""Hooks that run at the call of every module, one table for each kind."""
