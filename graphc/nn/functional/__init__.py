"""Stateless functions of layers and losses, for use without a module: ``import graphc.nn.functional as F``."""

from typing import TYPE_CHECKING

from graphc.base.lazy import exports, known_as

if TYPE_CHECKING:
    from graphc.nn.functional.names import *

__getattr__ = exports(__name__, globals(), f"{__name__}.names", hidden=())

# Files of earlier versions, which pickles name.
for _old, _file in (("folding", "vision"), ("loss_linear", "loss"), ("shrinkage", "activation")):
    known_as(f"{__name__}.{_old}", f"{__name__}.{_file}")
for _old, _file in (("dropout", "dropouts"), ("linear", "affine")):
    known_as(f"{__name__}.{_old}", f"{__name__}.{_file}", is_attribute=False)


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
