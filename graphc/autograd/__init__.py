"""Automatic differentiation: the backward pass, forward mode, grad modes and custom functions."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphc.base.lazy import exports, imported_by, known_as

if TYPE_CHECKING:
    from graphc.autograd.names import *

    gradcheck: Callable[..., bool]
    gradgradcheck: Callable[..., bool]

# Imported at first use, to keep the import of graphc fast.
__getattr__ = exports(
    __name__,
    globals(),
    imported_by(f"{__name__}.names")
    | {name: f"graphc.func.gradcheck:{name}" for name in ("gradcheck", "gradgradcheck")},
    hidden=("function", "grad_mode"),
)
known_as(f"{__name__}.variable", __name__)
