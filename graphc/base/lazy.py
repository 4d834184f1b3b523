"""Names of a package that are loaded from its modules when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from graphc.base.absent import PACKAGE, missing
from graphc.base.locks import section


def exports(
    package: str,
    namespace: dict[str, Any],
    names: Mapping[str, str],
    front: str = "",
    *,
    alone: Collection[str] = (),
    hidden: Collection[str] = (),
) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: ``names`` maps each name to ``module`` (the name itself is a submodule) or to
    ``module:attribute``. What was loaded is kept in ``namespace``. ``front`` is a module of which all names are the
    package's, too; it is loaded before anything else is but what stands ``alone``. ``__all__`` has all names but the
    hidden ones."""
    pending = [front] if front else []

    def load(name: str) -> Any:
        if pending and name not in alone:
            with section():
                found = vars(import_module(pending[0]))
            namespace.update({n: v for n, v in found.items() if not n.startswith("_") and n not in names})
            namespace["__all__"] = sorted({*found["__all__"], *names} - {*hidden})
            pending.clear()
        if name in namespace:
            return namespace[name]
        target = names.get(name)
        if target is None:
            known = PACKAGE if "." not in package else {}
            raise missing(f"module {package!r}", name, known, sys.modules.get(package))
        module, _, attribute = target.partition(":")
        with section():
            found = import_module(module)
        namespace[name] = getattr(found, attribute) if attribute else found
        return namespace[name]

    return load


def known_as(path: str, source: str, **private: str) -> None:
    """Makes ``path`` an import path of PyTorch: a module, in a file of its own or not, that also has the public names
    of the module ``source`` and the ``private`` ones (``_ConvNd="module:attribute"``), which are looked up when they
    are asked for. The package of ``path`` calls it while it is loaded, so that ``import path`` finds it."""
    package, _, name = path.rpartition(".")
    module = sys.modules.setdefault(path, ModuleType(path, f"An import path of PyTorch, for names of {source}."))

    def load(wanted: str) -> Any:
        place, _, attribute = private.get(wanted, f"{source}:{wanted}").partition(":")
        if wanted not in private and wanted.startswith("_") and wanted != "__all__":
            raise missing(f"module {path!r}", wanted, {}, module)
        with section():
            return getattr(import_module(place), attribute)

    vars(module).setdefault("__getattr__", load)
    vars(sys.modules[package]).setdefault(name, module)


def deferred(target: str) -> Callable[..., Any]:
    """A function that calls ``module:attribute``, which is imported with its first call."""
    module, _, attribute = target.partition(":")

    def call(*args: Any, **kwargs: Any) -> Any:
        with section():
            function = getattr(import_module(module), attribute)
        return function(*args, **kwargs)

    return call
