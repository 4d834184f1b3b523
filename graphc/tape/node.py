"""Nodes of the autograd graph: one per recorded operation, with edges to the nodes of its operands, and hooks."""

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
"""Node, and the index of one of its outputs."""

next_sequence: Callable[[], int] = itertools.count().__next__
"""Return the next sequence number, greater than those of all existing nodes."""


class Node:
    """Step of the backward pass. ``edges[i]`` is the destination of the gradient of operand ``i`` (None: nowhere)."""

    edges: tuple[Edge | None, ...] = ()
    count = 1
    """Number of outputs of the operation."""
    tensor_hooks: dict[int, OrderedDict[int, Callable[[Any], Any]]] | None = None
    """Hooks of the output tensors, by output index."""
    retained: dict[int, weakref.ref[Any]] | None = None
    """Output tensors that retain their gradient, by output index."""
    pre_hooks: OrderedDict[int, Callable[..., Any]] | None = None
    post_hooks: OrderedDict[int, Callable[..., Any]] | None = None
    chooses = False
    """Whether the node computes only the gradients that are needed (``run_for``)."""
    is_compiled = False
    """Whether it is the backward pass of compiled code."""
    origin: str | None = None
    """Line of user code that applied the operation; recorded in anomaly mode only."""

    def __init__(self) -> None:
        self.sequence = next_sequence()
        """Increases with time, so an operand's node always has a smaller number."""

    @property
    def metadata(self) -> dict[str, Any]:
        """Notes of users, by name."""
        return self.__dict__.setdefault("_metadata", {})

    def note_origin(self) -> None:
        """Record the line of user code in anomaly mode."""
        if is_anomaly_enabled():
            self.origin = capture(module_path.current_path()).describe()

    def name(self) -> str:
        """Return the name that printed tensors show as ``grad_fn``."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Nodes that receive this one's gradients, with output indices; (None, 0) for no node."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Return gradients of the operands for gradients of the outputs (None: zero). Runs in the caller's grad
        mode."""
        raise NotImplementedError

    def run_for(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        """Return gradients as ``run`` does, or None for gradients without ``needed``."""
        return self.run(grads)

    def release(self) -> None:
        """Free the values saved for ``run``."""

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before the node runs; it may return a tuple of replacements."""
        if self.pre_hooks is None:
            self.pre_hooks = OrderedDict()
        return _register(self.pre_hooks, hook)

    def register_hook(self, hook: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after the node runs; it may return other gradients of the inputs."""
        if self.post_hooks is None:
            self.post_hooks = OrderedDict()
        return _register(self.post_hooks, hook)

    def hooks_of(self, output: int) -> OrderedDict[int, Callable[[Any], Any]]:
        """Return the hooks of one output tensor."""
        if self.tensor_hooks is None:
            self.tensor_hooks = {}
        return self.tensor_hooks.setdefault(output, OrderedDict())

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class AccumulateGrad(Node):
    """Node of a leaf tensor, which adds to its gradient."""

    def __init__(self, variable: Any):
        self.sequence = next_sequence()
        self.variable = variable


def nodes_behind(roots: Iterable[Node], visited: set[int]) -> Iterator[Node]:
    """Yield ``roots`` and all nodes reachable from them, each once, except nodes whose identities are in
    ``visited``."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) not in visited:
            visited.add(id(node))
            yield node
            stack += [edge[0] for edge in node.edges if edge is not None]


def leaves_behind(roots: Sequence[Node | None]) -> dict[int, int]:
    """Return the leaf tensors reachable from ``roots``, by identity, each with the index of the first root."""
    first_roots: dict[int, int] = {}
    visited: set[int] = set()
    for number, root in enumerate(roots):
        for node in nodes_behind([] if root is None else [root], visited):
            if isinstance(node, AccumulateGrad):
                first_roots.setdefault(id(node.variable), number)
    return first_roots


def _register(hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
    note_traced()
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def run_hooks(hooks: OrderedDict[int, Callable[..., Any]], grads: tuple[Any, ...], *rest: Any) -> tuple[Any, ...]:
    """Return ``grads`` after applying every hook; raises GradientError if a hook returns another number of
    gradients."""
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
    """Return the error of a second backward pass over a graph whose saved values are freed."""
    return GradientError(
        "the values saved for the backward pass are freed: this graph was already run backward once",
        remedy="call backward(retain_graph=True) in every pass but the last",
    )
