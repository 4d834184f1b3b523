"""Handles that remove hooks, and the strict mode in which a hook may only look."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from contextvars import ContextVar
from typing import Any

from graphc.base.errors import HookError
from graphc.base.location import capture
from graphc.base.module_path import current_path
from graphc.ops import dispatch


class RemovableHandle:
    """Takes a hook out of its dictionary again.

    ``handle = RemovableHandle(hooks); hooks[handle.id] = hook``. Ids are unique in the process. The dictionary is held
    weakly, so it must be one that can be (an OrderedDict). Also a context manager that removes the hook at its end.
    ``extra`` are further such dictionaries, from which the id is removed as well.
    """

    _ids = itertools.count()

    def __init__(self, hooks: OrderedDict[int, Any], *, extra: Any = ()):
        self.id = next(RemovableHandle._ids)
        self._hooks = weakref.ref(hooks)
        self._extra = tuple(weakref.ref(e) for e in (extra if isinstance(extra, (list, tuple)) else (extra,)))

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        for reference in (self._hooks, *self._extra):
            hooks = reference()
            if hooks is not None and self.id in hooks:
                del hooks[self.id]

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple[int, Any, tuple[Any, ...]]:
        return self.id, self._hooks(), tuple(e() for e in self._extra)

    def __setstate__(self, state: tuple[int, Any, tuple[Any, ...]]) -> None:
        self.id, hooks, extra = state
        self._hooks = weakref.ref(OrderedDict() if hooks is None else hooks)
        self._extra = tuple(weakref.ref(OrderedDict() if e is None else e) for e in extra)
        # Ids that come from another process stay free here.
        RemovableHandle._ids = itertools.count(max(self.id + 1, next(RemovableHandle._ids)))


def note_traced() -> None:
    """Notes in a trace that a hook is given to one of its tensors: gradients from outside will not call it."""
    noted = getattr(dispatch.current(), "hooked", None)
    if noted is not None:
        noted.append(capture(current_path()))


_strict: ContextVar[bool] = ContextVar("graphc_strict_hooks", default=False)


class strict:
    """Switches to the rule that a hook is a monitor: it may neither return a value nor write to what it is given.

    Takes effect at once; as a context manager it restores the previous mode at its end. ``strict(False)`` switches
    back. A hook that breaks the rule raises HookError.
    """

    def __init__(self, enabled: bool = True):
        self._previous = _strict.get()
        _strict.set(bool(enabled))

    def __enter__(self) -> strict:
        return self

    def __exit__(self, *exception: object) -> None:
        _strict.set(self._previous)


def is_strict() -> bool:
    """True while hooks may only look."""
    return _strict.get()


def call_hook(hook: Any, *arguments: Any) -> Any:
    """Calls ``hook(*arguments)`` and returns its result; in strict mode raises HookError when it is no monitor."""
    if not _strict.get():
        return hook(*arguments)
    before = _versions(arguments)
    result = hook(*arguments)
    name = getattr(hook, "__qualname__", repr(hook))
    if result is not None:
        raise HookError(
            f"hook {name} returned a {type(result).__name__}, but in strict mode a hook may only look",
            remedy="return None, or leave strict mode: graphc.hooks.strict(False)",
        )
    if _versions(arguments) != before:
        raise HookError(
            f"hook {name} wrote to a tensor it was given, but in strict mode a hook may only look",
            remedy="work on a clone(), or leave strict mode: graphc.hooks.strict(False)",
        )
    return None


def _versions(tree: Any) -> list[tuple[int, int]]:
    """Identity and version (see ``TensorBase``) of every tensor in nested tuples, lists and dictionaries."""
    found: list[tuple[int, int]] = []
    open_: list[Any] = [tree]
    while open_:
        item = open_.pop()
        if isinstance(item, (tuple, list)):
            open_.extend(reversed(item))
        elif isinstance(item, dict):
            open_.extend(item.values())
        elif counter := getattr(item, "_counter", None):
            found.append((id(item), counter[0]))
    return found
