"""Names of a package that are loaded from its modules when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
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


def deferred(target: str) -> Callable[..., Any]:
    """A function that calls ``module:attribute``, which is imported with its first call."""
    module, _, attribute = target.partition(":")

    def call(*args: Any, **kwargs: Any) -> Any:
        with section():
            function = getattr(import_module(module), attribute)
        return function(*args, **kwargs)

    return call
