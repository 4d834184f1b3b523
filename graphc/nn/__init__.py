"""Neural networks: Module, Parameter, layers, losses, functionals and initial values."""

from typing import TYPE_CHECKING

from graphc.base.lazy import exports

if TYPE_CHECKING:
    from graphc.nn import attention, functional, init, modules, parallel, utils
    from graphc.nn.front import *

_PACKAGES = {n: f"{__name__}.{n}" for n in ("attention", "functional", "init", "modules", "parallel", "utils")}

__getattr__ = exports(__name__, globals(), _PACKAGES, f"{__name__}.front", alone=_PACKAGES, hidden=())


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
