"""Names that pickles hold: classes by the path that users know, ``graphc.nn.Linear``, which stays when modules move."""

from __future__ import annotations

import copyreg
import sys
from functools import cache
from importlib import import_module
from itertools import accumulate
from typing import Any

from graphc.base.errors import ArtifactError
from graphc.base.version import VERSION

KEPT = {
    "Members": "graphc.base.mutation_epoch:Members",
    "StateDict": "graphc.nn.module_state:StateDict",
    "dtype": "graphc.base.dtypes:named",
    "parametrized": "graphc.nn.computed:restored",
    "tensor": "graphc.tensors.tensor:restored",
}
"""What pickles hold and users do not name: where it lies now, by a name that stays."""
FACADES = ("graphc.optim.lr_scheduler",)
"""Modules that re-export classes which lie beside them."""


@cache
def path_of(cls: type) -> str | None:
    """The shortest path under which a class of graphc is found, ``graphc.nn.Linear``; its name in KEPT; None for a
    class of others."""
    module, name = cls.__module__, cls.__qualname__
    if not module.startswith("graphc."):
        return None
    place = f"{module}:{name}"
    kept = [key for key, value in KEPT.items() if value == place]
    if kept:
        return kept[0]
    *packages, own = accumulate(module.split("."), "{}.{}".format)
    places = (*packages, *FACADES, own)
    return next((f"{p}.{name}" for p in places if getattr(sys.modules.get(p), name, None) is cls), None)


def resolve(name: Any) -> Any:
    """What a path or a name of KEPT stands for; anything that is no text stands for itself. Raises ArtifactError where
    this version has nothing of that name."""
    if not isinstance(name, str):
        return name
    module, _, attribute = KEPT[name].partition(":") if name in KEPT else name.rpartition(".")
    try:
        if module.partition(".")[0] != "graphc":
            raise AttributeError(name)
        return getattr(import_module(module), attribute)
    except (AttributeError, ImportError):
        raise ArtifactError(
            f"a pickle holds {name}, which graphc {VERSION} does not have",
            remedy="the version of graphc that wrote it; save_state writes files that do not depend on classes",
        ) from None


def new(cls: Any, *args: Any) -> Any:
    """An object of a class, or of the class with a path, as pickles make it before its state."""
    kind = resolve(cls)
    return kind.__new__(kind, *args)


def call(name: str, *args: Any) -> Any:
    """What a function of KEPT returns."""
    return resolve(name)(*args)


# The path in pickles, whatever becomes of this module.
new.__module__ = call.__module__ = "graphc.public"


def reduced(result: Any) -> Any:
    """What ``__reduce_ex__`` of a base class returned for an object, with the path of its class for the class where it
    has one."""
    function, args, *rest = result
    if function is copyreg.__newobj__:  # type: ignore[attr-defined]
        function, *args = args
    path = path_of(function) if isinstance(function, type) else None
    return result if path is None else (new, (path, *args), *rest)
