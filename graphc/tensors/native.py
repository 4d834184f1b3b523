"""Native calls for work of an eager training loop: the registered implementation, and the conditions for its use."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeVar

from graphc.ir.op import Trait
from graphc.tape.grad_mode import anomaly
from graphc.tape.node import Node
from graphc.tensors.tensor_base import TensorBase, front

_IMPLEMENTATION = "graphc.calls.loop"
"""The module that calls ``use_native_loop`` when it is imported."""


class NativeLoop(Protocol):
    """Implementation of work on many tensors at once. If an answer is False or None, nothing has changed, and the
    caller applies operations instead."""

    def update(self, optimizer: Any, params: Sequence[Any]) -> bool:
        """Run a step of an optimizer for these parameters, whose gradients are known."""
        ...

    def together(self, tensors: Sequence[Any]) -> TensorGroup | None:
        """Return dense tensors of memory of their own as a group; None for others."""
        ...

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any | None:
        """Return the result of a function without side effects, from compiled code."""
        ...


class TensorGroup(Protocol):
    """Native work on all elements of some tensors."""

    def norm(self, norm_type: float) -> Any:
        """Return the norm of all elements together, as a tensor."""
        ...

    def scale(self, factor: Any) -> None:
        """Multiply in place by a NumPy number."""
        ...

    def clamp(self, limit: float) -> None:
        """Limit in place to ``-limit``..``limit``."""
        ...


_loops: list[NativeLoop] = []
_F = TypeVar("_F", bound=Callable[..., Any])


def use_native_loop(loop: NativeLoop) -> None:
    """Register the implementation."""
    _loops[:] = [loop]


def native_loop(params: Sequence[Any], wish: bool | None = None) -> NativeLoop | None:
    """Return the native implementation for work on these parameters; None if operations must do it.

    It is None in a trace and with GRAPHC_EAGER=reference. Otherwise ``wish`` decides; without a wish, native work
    starts as soon as compiled code has computed a gradient of one of the parameters.
    """
    if wish is False or (wish is None and not any([p._in_compiled for p in params])) or front().mode != "auto":
        return None
    if not _loops:
        import_module(_IMPLEMENTATION)
    return _loops[0]


def native_after_compiled(function: _F) -> _F:
    """Decorate a loss function: run it as compiled code if its first argument is a result of compiled code, or a view
    of one, and part of the autograd graph. Not with GRAPHC_EAGER=reference or in anomaly mode, which inspects each
    operation."""

    @functools.wraps(function)
    def called(input: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(input, TensorBase) and input._node is not None and _is_compiled(input._node):
            loop = None if anomaly()[0] else native_loop((), True)
            result = None if loop is None else loop.call(function, (input, *args), kwargs)
            if result is not None:
                return result
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
