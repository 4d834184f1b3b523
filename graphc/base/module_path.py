"""Module scopes: the modules whose calls are running in this thread, and the dotted path of the innermost one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from graphc.base.errors import GraphcError
from graphc.base.location import raised_at


class NamedModules(Protocol):
    """Module as this file needs it."""

    def named_modules(self) -> Iterator[tuple[str, Any]]: ...


class Scope:
    """Scope of one outermost call: its root, the modules running inside, and notes that live until it ends."""

    def __init__(self, root: NamedModules | None, explicit: bool = False):
        self.root = root
        """Module that paths are relative to; None in a scope that was opened for a function."""
        self.explicit = explicit
        """Whether ``open_scope`` opened it, so that it does not end with the outermost module's call."""
        self.stack: list[NamedModules] = []
        """Modules whose call is running, outermost first."""
        self.memory: dict[Hashable, Any] = {}
        """Notes that live as long as the outermost call, e.g. counts of random streams."""
        self._paths: dict[int, tuple[Any, str]] = {}
        """Module and path, by the module's id; the reference keeps the id from being reused."""

    def path(self, depth: int) -> str:
        """Return the dotted path of ``stack[depth]`` relative to the root, or to ``stack[0]`` in a scope without root.

        An unregistered module is named after its caller and its class.
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
        """Return a copy for a trace that starts inside this scope: the same running modules, separate notes."""
        copy = Scope(self.root, explicit=True)
        copy.stack = list(self.stack)
        copy.memory = {key: dict(value) if isinstance(value, dict) else value for key, value in self.memory.items()}
        copy._paths = self._paths
        return copy

    def place_of(self, module: NamedModules | None) -> tuple[str, str]:
        """Return the path of the innermost running module, and the path of ``module`` when that module calls it."""
        caller = self.path(len(self.stack) - 1) if self.stack else ""
        return caller, caller if module is None else self._path_of(module, caller)

    def _path_of(self, module: NamedModules, caller: str) -> str:
        if id(module) in self._paths:
            return self._paths[id(module)][1]
        name = type(module).__name__
        return f"{caller}.{name}" if caller else name


_scope: ContextVar[Scope | None] = ContextVar("graphc_module_scope", default=None)


def enter(module: NamedModules) -> None:
    """Push ``module`` on the stack of running calls; the outermost call opens a scope. Pair with ``leave``."""
    scope = _scope.get()
    if scope is None:
        scope = Scope(module)
        _scope.set(scope)
    scope.stack.append(module)


def leave() -> None:
    """Pop the innermost call; the outermost call also closes its scope."""
    scope = _scope.get()
    if scope is None:
        return
    scope.stack.pop()
    if not scope.stack and not scope.explicit:
        _scope.set(None)


@contextmanager
def open_scope(root: NamedModules | None = None) -> Iterator[Scope]:
    """Open a scope for a call other than a module's, such as a traced or compiled function.

    Modules called inside share it. With ``root``, their paths are relative to it.
    """
    scope = Scope(root, explicit=True)
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


def scope() -> Scope | None:
    """Return the scope of the outermost running call, or None outside of any call."""
    return _scope.get()


def outermost() -> NamedModules | None:
    """Return the outermost module whose call is running, or None."""
    current = _scope.get()
    if current is None:
        return None
    return current.root if current.root is not None else next(iter(current.stack), None)


def innermost() -> NamedModules | None:
    """Return the innermost module whose call is running, or None."""
    current = _scope.get()
    return current.stack[-1] if current is not None and current.stack else None


def current_path() -> str:
    """Return the dotted path of the innermost running module relative to the outermost one; '' for that one or
    outside."""
    current = _scope.get()
    if current is None or not current.stack:
        return ""
    return current.path(len(current.stack) - 1)


def note_origin(error: GraphcError) -> None:
    """Fill in the running module and the user's line in an error without an origin."""
    if error.origin is None:
        try:
            module = current_path()
        except GraphcError:
            module = ""
        error.origin = raised_at(error, module).describe() or None


def class_names(module: Any) -> dict[str, str]:
    """Return the classes of a module's submodules by path; empty for what is no module."""
    if not callable(getattr(module, "named_modules", None)):
        return {}
    return {path: child._get_name() for path, child in module.named_modules() if path}


@contextmanager
def outside(scope: Scope | None = None) -> Iterator[None]:
    """Hide the running modules while the block runs, or replace their scope, e.g. for a trace that starts inside a
    call."""
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)
