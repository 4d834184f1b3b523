"""Stable names in pickles: the public path of a class, ``graphc.nn.Linear``, which stays when modules move."""

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
"""Current module and attribute of objects in pickles that have no public path, by a stable name."""
FACADES = ("graphc.optim.lr_scheduler",)
"""Modules that re-export classes of modules next to them."""


@cache
def path_of(cls: type) -> str | None:
    """Return the shortest path under which a class of graphc is importable, ``graphc.nn.Linear``, or its name in KEPT;
    None for a class of another package."""
    module, name = cls.__module__, cls.__qualname__
    if not module.startswith("graphc."):
        return None
    location = f"{module}:{name}"
    stable = [key for key, value in KEPT.items() if value == location]
    if stable:
        return stable[0]
    *packages, module_path = accumulate(module.split("."), "{}.{}".format)
    candidates = (*packages, *FACADES, module_path)
    return next((f"{p}.{name}" for p in candidates if getattr(sys.modules.get(p), name, None) is cls), None)


def resolve(name: Any) -> Any:
    """Return the object with a path or a name in KEPT; values other than strings are returned unchanged.

    Raises ArtifactError if this version has no such object.
    """
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
            remedy="load it with the graphc that wrote it; files of save_state do not depend on classes",
        ) from None


def new(cls: Any, *args: Any) -> Any:
    """Create an object of a class, given as such or as a path, without calling ``__init__``, as pickles do."""
    kind = resolve(cls)
    return kind.__new__(kind, *args)


def call(name: str, *args: Any) -> Any:
    """Call a function in KEPT."""
    return resolve(name)(*args)


# Pickles refer to these functions by this path; keep it if this module moves.
new.__module__ = call.__module__ = "graphc.public"


def reduced(result: Any) -> Any:
    """Replace the class in a result of ``__reduce_ex__`` by its public path, if it has one."""
    function, args, *rest = result
    if function is copyreg.__newobj__:  # type: ignore[attr-defined]
        function, *args = args
    path = path_of(function) if isinstance(function, type) else None
    return result if path is None else (new, (path, *args), *rest)
