"""Work of an eager training loop that may be one native call: who is asked for it, and when."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeVar

from graphc.ir.op import Trait
from graphc.tape.grad_mode import is_anomaly_enabled
from graphc.tape.node import Node
from graphc.tensors.tensor_base import TensorBase, front

_KNOWS_COMPILER = "graphc.calls.loop"
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

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any | None:
        """What a function without effects gives, as compiled code."""
        ...

    def clamp(self, tensors: Sequence[Any], limit: float) -> bool:
        """Limits all elements, in place, to ``-limit``..``limit``."""
        ...


_found: list[NativeLoop] = []
_F = TypeVar("_F", bound=Callable[..., Any])


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


def native_after_compiled(function: _F) -> _F:
    """A function, a loss, that is compiled code where its first argument is what compiled code gave, or a view of that,
    and part of the autograd graph. Not with GRAPHC_EAGER=reference, nor in anomaly mode, in which each operation is
    looked at."""

    @functools.wraps(function)
    def called(input: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(input, TensorBase) and input._node is not None and _is_compiled(input._node):
            loop = None if is_anomaly_enabled() else native_loop((), True)
            found = None if loop is None else loop.call(function, (input, *args), kwargs)
            if found is not None:
                return found
        return function(input, *args, **kwargs)

    return called  # type: ignore[return-value]


def _is_compiled(node: Node) -> bool:
    while not node.is_compiled:
        op = getattr(node, "op", None)
        edge = node.edges[0] if len(node.edges) == 1 else None
        if op is None or edge is None or not op.has(Trait.VIEW):
            return False
        node = edge[0]
    return True
