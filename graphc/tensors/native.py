"""Work of an eager training loop that may be one native call: who is asked for it, and when."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from graphc.tensors.tensor_base import front

_KNOWS_COMPILER = "graphc.compiled.loop"
"""The module that registers itself by ``use_native_loop`` when it is imported."""


class NativeLoop(Protocol):
    """What does work on many tensors at once. Nothing has changed where the answer is False or None: then it is done by
    operations."""

    def update(self, optimizer: Any, params: Sequence[Any]) -> bool:
        """One step of an optimizer for these parameters, whose gradients are known."""
        ...

    def total_norm(self, tensors: Sequence[Any], norm_type: float) -> Any | None:
        """The norm of all elements together."""
        ...

    def scale(self, tensors: Sequence[Any], factor: Any) -> bool:
        """Multiplies tensors, in place, by a tensor without dimensions."""
        ...

    def clamp(self, tensors: Sequence[Any], limit: float) -> bool:
        """Limits all elements, in place, to ``-limit``..``limit``."""
        ...


_found: list[NativeLoop] = []


def use_native_loop(found: NativeLoop) -> None:
    """Makes it the one that is asked."""
    _found[:] = [found]


def native_loop(params: Sequence[Any], wish: bool | None = None) -> NativeLoop | None:
    """Who does the work on these parameters natively; None where operations do it. That is so in a trace and with
    GRAPHC_EAGER=reference, else as is wished: without a wish it is native as soon as compiled code has computed the
    gradient of one of the parameters."""
    if wish is False or front().mode != "auto":
        return None
    if wish is None and not any([p._in_compiled for p in params]):
        return None
    if not _found:
        import_module(_KNOWS_COMPILER)
    return _found[0]
