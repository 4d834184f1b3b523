"""The modules whose call is running in this thread, and the dotted path of the innermost one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from graphc.base.errors import GraphcError
from graphc.base.location import raised_at


class NamedModules(Protocol):
    """What this file needs of a module."""

    def named_modules(self) -> Iterator[tuple[str, Any]]: ...


class Scope:
    """One outermost call: its root, the modules running inside, and what others remember until it ends."""

    def __init__(self, root: NamedModules | None, explicit: bool = False):
        self.root = root
        """The module that paths are relative to; None in a scope opened for a function."""
        self.explicit = explicit
        """Opened by ``open_scope``, so it does not end with the outermost module's call."""
        self.stack: list[NamedModules] = []
        """Modules whose call is running, outermost first."""
        self.memory: dict[Hashable, Any] = {}
        """Notes that live as long as the outermost call, e.g. occurrence counts of random streams."""
        self._paths: dict[int, tuple[Any, str]] = {}
        """Module (kept alive, so that its id stays its own) and path."""

    def path(self, depth: int) -> str:
        """The dotted path of ``stack[depth]`` relative to the root, or to ``stack[0]`` where the scope has no root.

        A module that is not registered below it is named after its caller and its class.
        """
        root = self.stack[0] if self.root is None else self.root
        if id(root) not in self._paths:
            for name, module in root.named_modules():
                self._paths.setdefault(id(module), (module, name))
        path = ""
        for module in self.stack[: depth + 1]:
            path = self._path_of(module, path)
        return path

    def continued(self) -> Scope:
        """A scope for a trace in the middle of this one: the same modules run, and what it notes is its own."""
        found = Scope(self.root, explicit=True)
        found.stack = list(self.stack)
        found.memory = {key: dict(value) if isinstance(value, dict) else value for key, value in self.memory.items()}
        found._paths = self._paths
        return found

    def place_of(self, module: NamedModules | None) -> tuple[str, str]:
        """Path of the innermost running module, and the one that ``module`` has when it is called by that."""
        caller = self.path(len(self.stack) - 1) if self.stack else ""
        return caller, caller if module is None else self._path_of(module, caller)

    def _path_of(self, module: NamedModules, caller: str) -> str:
        if id(module) in self._paths:
            return self._paths[id(module)][1]
        name = type(module).__name__
        return f"{caller}.{name}" if caller else name


_scope: ContextVar[Scope | None] = ContextVar("graphc_module_scope", default=None)


def enter(module: NamedModules) -> None:
    """Notes that the call of ``module`` begins; the outermost one opens a scope. Must be paired with ``leave``."""
    scope = _scope.get()
    if scope is None:
        scope = Scope(module)
        _scope.set(scope)
    scope.stack.append(module)


def leave() -> None:
    """Notes that the innermost call ends; with the outermost one its scope ends too."""
    scope = _scope.get()
    if scope is None:
        return
    scope.stack.pop()
    if not scope.stack and not scope.explicit:
        _scope.set(None)


@contextmanager
def open_scope(root: NamedModules | None = None) -> Iterator[Scope]:
    """A new scope for a call that is no module's, such as a traced or compiled function.

    Modules called inside share it. With ``root``, their paths are relative to it.
    """
    scope = Scope(root, explicit=True)
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


def scope() -> Scope | None:
    """The scope of the outermost call that is running, or None outside of any."""
    return _scope.get()


def outermost() -> NamedModules | None:
    """The outermost module whose call is running, or None."""
    current = _scope.get()
    if current is None:
        return None
    return current.root if current.root is not None else next(iter(current.stack), None)


def innermost() -> NamedModules | None:
    """The innermost module whose call is running, or None."""
    current = _scope.get()
    return current.stack[-1] if current is not None and current.stack else None


def current_path() -> str:
    """The dotted path of the innermost running module relative to the outermost one; '' for that one or outside."""
    current = _scope.get()
    if current is None or not current.stack:
        return ""
    return current.path(len(current.stack) - 1)


def note_origin(error: GraphcError) -> None:
    """Fills in the running module and the user's line in an error that does not say where it was raised."""
    if error.origin is None:
        try:
            module = current_path()
        except GraphcError:
            module = ""
        error.origin = raised_at(error, module).describe() or None


@contextmanager
def outside(scope: Scope | None = None) -> Iterator[None]:
    """Runs the block as if no module's call was running, such as a trace that starts in the middle of one, or in
    another scope."""
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)
