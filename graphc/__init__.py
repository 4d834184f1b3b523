"""Compiler of PyTorch-style modules to native code, with eager tensors, autograd and modules as front end."""

from types import ModuleType
from typing import TYPE_CHECKING

from graphc.base.lazy import exports
from graphc.base.name_clash import warn_of_other_distributions as _warn_of_other_distributions
from graphc.base.version import VERSION as __version__

if TYPE_CHECKING:
    from graphc.front import *
    from graphc.names import *

_INTERNAL = ("TYPE_CHECKING", "ModuleType", "exports")
"""Names for this package only."""
_ALONE = ("errors", "get_num_threads", "llm", "load", "set_num_threads")
"""Names for programs that only run model files: loading them does not load the front end."""

__getattr__ = exports(__name__, globals(), "graphc.names", "graphc.front", alone=_ALONE, hidden=("map",))
_warn_of_other_distributions()


def __dir__() -> list[str]:
    named = {*__getattr__("__all__")}
    public = {n for n, v in globals().items() if not (n.startswith("_") or isinstance(v, ModuleType))}
    special = {n for n in globals() if n.startswith("__")}
    return sorted(named | special | public - {*_INTERNAL})
