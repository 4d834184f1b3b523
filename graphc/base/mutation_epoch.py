"""The mutation epoch: the number of changes of modules and tensors; while it stands still, no guard is looked at."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from graphc.base.public import reduced

EPOCH = [0]
"""How often a module gained, lost or replaced a member or another attribute, or a tensor was given other memory or
another requires_grad, anywhere in the process."""


def note() -> None:
    """Counts a change."""
    EPOCH[0] += 1


class Members(OrderedDict[Any, Any]):
    """The parameters, buffers, children or hooks of a module; every change of it is counted."""

    def __setitem__(self, key: Any, value: Any) -> None:
        EPOCH[0] += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        EPOCH[0] += 1
        super().__delitem__(key)

    def pop(self, key: Any, *default: Any) -> Any:  # type: ignore[override]
        """As of a dictionary."""
        EPOCH[0] += 1
        return super().pop(key, *default)

    def popitem(self, last: bool = True) -> tuple[str, Any]:
        """As of an ordered dictionary."""
        EPOCH[0] += 1
        return super().popitem(last)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As of a dictionary."""
        EPOCH[0] += 1
        return super().setdefault(key, default)

    def update(self, *others: Any, **members: Any) -> None:
        """As of a dictionary."""
        EPOCH[0] += 1
        super().update(*others, **members)

    def __ior__(self, other: Any) -> Any:
        EPOCH[0] += 1
        return super().__ior__(other)

    def move_to_end(self, key: Any, last: bool = True) -> None:
        """As of an ordered dictionary."""
        EPOCH[0] += 1
        super().move_to_end(key, last)

    def clear(self) -> None:
        """As of a dictionary."""
        EPOCH[0] += 1
        super().clear()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(super().__reduce_ex__(protocol))


COMMON_HOOKS: list[Members] = []
"""The hooks that run at the call of every module, one table for each kind."""
