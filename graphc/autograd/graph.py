"""The autograd graph as users see it: nodes, edges of tensors, and hooks on several tensors at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphc.base.errors import ArgumentError
from graphc.eager.engine import current_pass
from graphc.tape.hooks import RemovableHandle, note_traced
from graphc.tape.node import Node
from graphc.tape.saved import saving
from graphc.tensors.tensor_base import edge_of, front, refresh

__all__ = ["GradientEdge", "Node", "get_gradient_edge", "register_multi_grad_hook", "saved_tensors_hooks"]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The node and output number that receive the gradient of ``tensor``."""
    return GradientEdge(*edge_of(refresh(front().local(tensor))))


class saved_tensors_hooks:
    """Inside, tensors that are saved for a backward pass are kept as what ``pack_hook(tensor)`` returns.

    ``unpack_hook`` gets that back when the tensor is needed, once for each gradient rule, and returns a tensor of the
    same shape and element type. All operands and results of a recorded operation are saved, also those that its rule
    turns out not to read; only what it reads is unpacked. In-place writes to what was packed are not noticed. Both
    hooks run without recording. The innermost pair counts.
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
    """Removes the hooks that were set on several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]):
        self._handles = tuple(handles)

    def remove(self) -> None:
        """Removes all of them; a second call does nothing."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[[Any], None], *, mode: str = "all") -> MultiHandle:
    """``all``: ``fn(gradients)`` runs once per backward pass, when the gradients of all tensors that it reaches are
    known (None for the others). ``any``: ``fn(gradient)`` runs when the first one is known. Each tensor must require
    gradients."""
    if mode not in ("all", "any"):
        raise ArgumentError(f"register_multi_grad_hook: mode is 'all' or 'any', got {mode!r}")
    hooks = _MultiHook([get_gradient_edge(t).node for t in tensors], fn, mode)
    return MultiHandle([t.register_hook(hooks.hook_of(i)) for i, t in enumerate(tensors)])


class _MultiHook:
    """The gradients of one pass that are known so far."""

    def __init__(self, nodes: Sequence[Node], fn: Callable[[Any], None], mode: str):
        self.nodes, self.fn, self.mode = tuple(nodes), fn, mode
        self.running: Any = None
        self.found: list[Any] = []
        self.missing = 0

    def hook_of(self, i: int) -> Callable[[Any], None]:
        """The hook of tensor ``i``."""

        def hook(gradient: Any) -> None:
            if self.running is not current_pass():
                self.running = current_pass()
                self.found = [None] * len(self.nodes)
                self.missing = sum(self.running.will_run(n) for n in self.nodes)
                if self.mode == "any":
                    self.fn(gradient)
            self.found[i] = gradient
            self.missing -= 1
            if self.missing == 0 and self.mode == "all":
                self.fn(self.found)

        return hook
