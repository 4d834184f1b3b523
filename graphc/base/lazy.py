"""Lazy attributes of packages, loaded from their modules on first use."""

from __future__ import annotations

import gc
import operator
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from graphc.base.absent import PACKAGE, missing
from graphc.base.locks import Lock, section

if TYPE_CHECKING:
    from importlib.abc import InspectLoader

MANY_OBJECTS = 10_000
"""Objects from which an import counts as large. Python collects young objects after 700 to 2,000 new ones."""


def exports(
    package: str,
    namespace: dict[str, Any],
    names: Mapping[str, str] | str,
    front: str = "",
    *,
    alone: Collection[str] = (),
    hidden: Collection[str] | None = None,
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package and collect loaded names in ``namespace``.

    ``names`` maps each name to ``module`` (the name is a submodule) or to ``module:attribute``, or is the module whose
    import statements say so (``imported_by``). All public names of the module ``front`` belong to the package too; it
    is loaded before any other name except those in ``alone``. With ``hidden``, ``__all__`` lists all names but these.
    """
    pending = [front] if front else []

    def load(name: str) -> Any:
        nonlocal names
        if isinstance(names, str):
            names = imported_by(names)
        if pending and name not in alone:
            members = vars(imported(pending[0]))
            namespace.update({n: v for n, v in members.items() if not n.startswith("_") and n not in names})
            namespace["__all__"] = sorted({*members["__all__"], *names} - {*(hidden or ())})
            pending.clear()
        if name in namespace:
            return namespace[name]
        if name == "__all__" and hidden is not None:
            return sorted({*names} - {*hidden})
        target = names.get(name)
        if target is None:
            replacements = PACKAGE if "." not in package else {}
            raise missing(f"module {package!r}", name, replacements, sys.modules.get(package))
        module, _, attribute = target.partition(":")
        loaded = imported(module)
        namespace[name] = getattr(loaded, attribute) if attribute else loaded
        return namespace[name]

    return load


def imported_by(module: str) -> dict[str, str]:
    """Return the targets of a module's import statements, as ``exports`` takes them, by name. Nothing is imported.

    The module consists of statements ``from a import b``, which type checkers and editors understand.
    """
    package = module.rpartition(".")[0]

    class Unloaded:
        def __init__(self, name: str, *_: Any):
            self._name = name

        def __getattr__(self, name: str) -> str:
            return f"{self._name}{'.' if self._name == package else ':'}{name}"

    spec = PathFinder.find_spec(module, sys.modules[package].__path__)
    names: dict[str, Any] = {"__builtins__": {"__import__": Unloaded}}
    exec(cast("InspectLoader", cast(ModuleSpec, spec).loader).get_code(module) or "", names)
    return {name: target for name, target in names.items() if isinstance(target, str) and not name.startswith("__")}


def collect(package: str, *also: str) -> None:
    """List what a package has imported with ``*``, and its submodules ``also``, as its ``__all__``."""
    namespace = vars(sys.modules[package])
    imported = {n for n, v in namespace.items() if not n.startswith("_") and not isinstance(v, ModuleType)}
    namespace["__all__"] = sorted(imported - {"collect", "known_as"} | {*also})


def known_as(path: str, source: str, *, is_attribute: bool = True, **private: str) -> ModuleType:
    """Register and return ``path``, an import path of PyTorch: a module with the public names of the module ``source``.

    The module may have a file of its own. ``private`` adds names (``_ConvNd="module:attribute"``), which are resolved
    on first use. The package of ``path`` calls this while it is loaded, so that ``import path`` works. Without
    ``is_attribute`` the last name of ``path`` remains that of a function of the package.
    """
    package, _, name = path.rpartition(".")
    module = sys.modules.setdefault(path, ModuleType(path, f"An import path of PyTorch, for names of {source}."))

    def load(attribute_name: str) -> Any:
        target_module, _, attribute = private.get(attribute_name, f"{source}:{attribute_name}").partition(":")
        if attribute_name not in private and attribute_name.startswith("_") and attribute_name != "__all__":
            raise missing(f"module {path!r}", attribute_name, {}, module)
        return getattr(imported(target_module), attribute)

    vars(module).setdefault("__getattr__", load)
    if is_attribute:
        vars(sys.modules[package]).setdefault(name, module)
    return module


def deferred(target: str) -> Callable[..., Any]:
    """Return a function that imports ``module:attribute`` on its first call and calls it."""
    module, _, attribute = target.partition(":")

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(imported(module), attribute)(*args, **kwargs)

    return call


class LazySequence(Sequence[Any]):
    """A sequence ``module:name`` whose module is imported when somebody looks at an element."""

    def __init__(self, target: str):
        self._module, _, self._name = target.partition(":")

    def _elements(self) -> Sequence[Any]:
        return getattr(imported(self._module), self._name)

    def __getitem__(self, index: Any) -> Any:
        return self._elements()[index]

    def __len__(self) -> int:
        return len(self._elements())


_loading = Lock()


def imported(module: str) -> ModuleType:
    """Import a module while other threads that load names wait.

    Without the lock, two threads that begin at different modules of packages would wait for each other, and Python
    gives one of them an unfinished module. A thread inside an import statement does not wait: it holds locks of Python.
    """
    with section():
        if _is_importing():
            return import_module(module)
        with _loading, _uncollected():
            return import_module(module)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause Python's garbage collector during an import: modules are no garbage, and it would visit them ten times.

    The objects of large imports become old at once. Collections of young objects do not visit old ones.
    """
    enabled, before = gc.isenabled(), gc.get_count()[0]
    gc.disable()
    try:
        yield
    finally:
        # The count of frozen objects takes 10 ms per million. Modules that were imported before make no objects.
        if gc.get_count()[0] - before > MANY_OBJECTS:
            # NOTE: unfreezing moves all frozen objects to the oldest generation. Objects that the user has frozen stay
            # so: a count other than 0 ends the calls, and no other thread runs in between, since no bytecode does.
            any(map(operator.call, (gc.get_freeze_count, gc.freeze, gc.unfreeze)))
        if enabled:
            gc.enable()


def _is_importing() -> bool:
    """Return whether the thread runs the code of a module that is imported."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_find_and_load" and frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False
