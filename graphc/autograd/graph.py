"""Public view of the autograd graph: nodes, gradient edges of tensors, and hooks on several tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphc.autograd.engine import current_pass
from graphc.base.errors import ArgumentError
from graphc.tape.hooks import RemovableHandle, note_traced
from graphc.tape.node import Node
from graphc.tape.saved import saving
from graphc.tensors.tensor_base import edge_of, front, refresh

__all__ = ["GradientEdge", "Node", "get_gradient_edge", "register_multi_grad_hook", "saved_tensors_hooks"]


class GradientEdge(NamedTuple):
    """Node that receives the gradient of a tensor, and the number of the tensor among its outputs."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the node and output number that receive the gradient of ``tensor``."""
    return GradientEdge(*edge_of(refresh(front().local(tensor))))


class saved_tensors_hooks:
    """Replace each tensor saved for a backward pass inside the block by the result of ``pack_hook(tensor)``.

    When a gradient rule reads the tensor, ``unpack_hook`` gets the packed value and returns a tensor of the same shape
    and element type, once for each rule. All operands and results of a recorded operation are packed, even unused
    ones. In-place writes to packed tensors are not detected. Both hooks run without recording. Only the innermost pair
    of hooks is used.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]):
        self.hooks = (pack_hook, unpack_hook)
        self._tokens: list[Any] = []

    def __enter__(self) -> None:
        note_traced()
        self._tokens.append(saving.set(self.hooks))

    def __exit__(self, *exception: object) -> None:
        saving.reset(self._tokens.pop())


class MultiHandle:
    """Handle of hooks on several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]):
        self._handles = tuple(handles)

    def remove(self) -> None:
        """Remove all of the hooks; a second call does nothing."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[[Any], None], *, mode: str = "all") -> MultiHandle:
    """Register a hook on the gradients of several tensors, each of which must require gradients.

    ``mode="all"`` calls ``fn(gradients)`` once in each backward pass, when all gradients of tensors that the pass
    reaches are known (None for the others). ``mode="any"`` calls ``fn(gradient)`` with the first known gradient. Raises
    ArgumentError for another mode.
    """
    if mode not in ("all", "any"):
        raise ArgumentError(f"register_multi_grad_hook: mode must be 'all' or 'any', got {mode!r}")
    hooks = _MultiHook([get_gradient_edge(t).node for t in tensors], fn, mode)
    return MultiHandle([t.register_hook(hooks.hook_of(i)) for i, t in enumerate(tensors)])


class _MultiHook:
    """Gradients of the current backward pass."""

    def __init__(self, nodes: Sequence[Node], fn: Callable[[Any], None], mode: str):
        self.nodes, self.fn, self.mode = tuple(nodes), fn, mode
        self.running: Any = None
        self.gradients: list[Any] = []
        self.missing = 0

    def hook_of(self, i: int) -> Callable[[Any], None]:
        """Return the hook of tensor ``i``."""

        def hook(gradient: Any) -> None:
            if self.running is not current_pass():
                self.running = current_pass()
                self.gradients = [None] * len(self.nodes)
                self.missing = sum(self.running.will_run(n) for n in self.nodes)
                if self.mode == "any":
                    self.fn(gradient)
            self.gradients[i] = gradient
            self.missing -= 1
            if self.missing == 0 and self.mode == "all":
                self.fn(self.gradients)

        return hook
