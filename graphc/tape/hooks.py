"""Handles for removing hooks, and strict mode, in which hooks must not change anything."""

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
    """Handle that removes a hook from its dictionary.

    ``handle = RemovableHandle(hooks); hooks[handle.id] = hook``. Ids are unique in the process. The dictionary is
    referenced weakly, so its class must support that (an OrderedDict does). As a context manager, it removes the hook
    at the end. ``extra`` are further dictionaries from which the id is removed.
    """

    _ids = itertools.count()

    def __init__(self, hooks: OrderedDict[int, Any], *, extra: Any = ()):
        self.id = next(RemovableHandle._ids)
        self._hooks = weakref.ref(hooks)
        self._extra = tuple(weakref.ref(e) for e in (extra if isinstance(extra, (list, tuple)) else (extra,)))

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
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
        # New ids must not collide with an id that was unpickled from another process.
        RemovableHandle._ids = itertools.count(max(self.id + 1, next(RemovableHandle._ids)))


def note_traced() -> None:
    """Record in the current trace that one of its tensors got a hook: gradients from outside will not call it."""
    locations = getattr(dispatch.current(), "hooked", None)
    if locations is not None:
        locations.append(capture(current_path()))


_strict: ContextVar[bool] = ContextVar("graphc_strict_hooks", default=False)


class strict:
    """Restrict hooks to monitoring: a hook must neither return a value nor write to its arguments, else HookError.

    Takes effect at once; as a context manager, restores the previous mode at the end. ``strict(False)`` switches back.
    """

    def __init__(self, enabled: bool = True):
        self._previous = _strict.get()
        _strict.set(bool(enabled))

    def __enter__(self) -> strict:
        return self

    def __exit__(self, *exception: object) -> None:
        _strict.set(self._previous)


def is_strict() -> bool:
    """Return whether hooks must only monitor."""
    return _strict.get()


def call_hook(hook: Any, *arguments: Any) -> Any:
    """Return ``hook(*arguments)``; in strict mode raise HookError unless the hook only monitors."""
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
    """Return identity and version (see ``TensorBase``) of every tensor in nested tuples, lists and dictionaries."""
    versions: list[tuple[int, int]] = []
    pending: list[Any] = [tree]
    while pending:
        item = pending.pop()
        if isinstance(item, (tuple, list)):
            pending.extend(reversed(item))
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif counter := getattr(item, "_counter", None):
            versions.append((id(item), counter[0]))
    return versions
