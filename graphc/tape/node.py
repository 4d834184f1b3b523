"""Nodes of the autograd graph: one per recorded operation, with edges to what made its operands, and hooks."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from graphc.base import module_path
from graphc.base.errors import GradientError
from graphc.base.location import capture
from graphc.tape.grad_mode import is_anomaly_enabled
from graphc.tape.hooks import RemovableHandle, note_traced

Edge = tuple["Node", int]
"""A node and the number of one of its outputs."""

next_sequence: Callable[[], int] = itertools.count().__next__
"""A number greater than those of all nodes so far."""


class Node:
    """A step of the backward pass. ``edges[i]`` says where the gradient of operand ``i`` goes (None: nowhere)."""

    edges: tuple[Edge | None, ...] = ()
    count = 1
    """How many outputs the operation has."""
    tensor_hooks: dict[int, OrderedDict[int, Callable[[Any], Any]]] | None = None
    """Hooks set on the output tensors, by output number."""
    retained: dict[int, weakref.ref[Any]] | None = None
    """Output tensors that keep their gradient, by output number."""
    pre_hooks: OrderedDict[int, Callable[..., Any]] | None = None
    post_hooks: OrderedDict[int, Callable[..., Any]] | None = None
    chooses = False
    """Whether the node computes only those gradients that are needed (``run_for``)."""
    is_compiled = False
    """Whether it is the backward pass of compiled code."""
    origin: str | None = None
    """The user's line that applied the operation; known when it ran in anomaly mode."""

    def __init__(self) -> None:
        self.sequence = next_sequence()
        """Grows with time, so an operand's node always has a smaller number."""

    @property
    def metadata(self) -> dict[str, Any]:
        """For notes of whoever looks at the graph."""
        return self.__dict__.setdefault("_metadata", {})

    def note_origin(self) -> None:
        """Remembers the user's line in anomaly mode."""
        if is_anomaly_enabled():
            self.origin = capture(module_path.current_path()).describe()

    def name(self) -> str:
        """What printed tensors show as ``grad_fn``."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that get this one's gradients, with output numbers; (None, 0) where none does."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Gradients of the operands for those of the outputs (None: zero). Runs in the caller's grad mode."""
        raise NotImplementedError

    def run_for(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        """As ``run``, where gradients of some operands only are needed; the others may be None."""
        return self.run(grads)

    def release(self) -> None:
        """Frees what was saved for ``run``."""

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> RemovableHandle:
        """``hook(grad_outputs)`` runs before the node and may return a tuple to use instead."""
        if self.pre_hooks is None:
            self.pre_hooks = OrderedDict()
        return _register(self.pre_hooks, hook)

    def register_hook(self, hook: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> RemovableHandle:
        """``hook(grad_inputs, grad_outputs)`` runs after the node and may return other gradients of the inputs."""
        if self.post_hooks is None:
            self.post_hooks = OrderedDict()
        return _register(self.post_hooks, hook)

    def hooks_of(self, output: int) -> OrderedDict[int, Callable[[Any], Any]]:
        """The hooks of one output tensor."""
        if self.tensor_hooks is None:
            self.tensor_hooks = {}
        return self.tensor_hooks.setdefault(output, OrderedDict())

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class AccumulateGrad(Node):
    """The end of a path: adds to the gradient of a leaf tensor."""

    def __init__(self, variable: Any):
        self.sequence = next_sequence()
        self.variable = variable


def nodes_behind(roots: Iterable[Node], seen: set[int]) -> Iterator[Node]:
    """``roots`` and all nodes to which their gradients go, each once, without those whose identities are ``seen``."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack += [edge[0] for edge in node.edges if edge is not None]


def leaves_behind(roots: Sequence[Node | None]) -> dict[int, int]:
    """By identity the leaf tensors to which gradients of ``roots`` go, each with the number of the first root."""
    found: dict[int, int] = {}
    seen: set[int] = set()
    for number, root in enumerate(roots):
        for node in nodes_behind([] if root is None else [root], seen):
            if isinstance(node, AccumulateGrad):
                found.setdefault(id(node.variable), number)
    return found


def _register(hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
    note_traced()
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def run_hooks(hooks: OrderedDict[int, Callable[..., Any]], grads: tuple[Any, ...], *rest: Any) -> tuple[Any, ...]:
    """``grads`` after every hook had its say; raises GradientError when a hook returns another number of them."""
    for hook in list(hooks.values()):
        result = hook(grads, *rest)
        if result is None:
            continue
        result = result if isinstance(result, tuple) else (result,)
        if len(result) != len(grads):
            raise GradientError(f"a hook of a node returned {len(result)} gradients, expected {len(grads)}")
        grads = result
    return grads


def freed() -> GradientError:
    """The error of a second pass over a graph whose saved values are gone."""
    return GradientError(
        "the values saved for the backward pass are freed: this graph was already run backward once",
        remedy="backward(retain_graph=True) for every pass but the last",
    )
