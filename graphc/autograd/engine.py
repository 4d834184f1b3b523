"""Backward pass over the autograd graph: gradients flow from results to leaves, newest operation first."""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from graphc.base.autocast_state import current as autocast
from graphc.base.dtypes import float32, float64
from graphc.base.errors import ArgumentError, DeviceError, GradientError, GraphcError, ShapeError
from graphc.ops.autodiff import complex_loss
from graphc.ops.dispatch import active
from graphc.ops.movement.shape import concat, filled, reshape, zeros_like
from graphc.ops.pointwise import elementwise as ew
from graphc.tape.grad_mode import anomaly, is_anomaly_check_nan_enabled, reset_recording, set_recording
from graphc.tape.node import AccumulateGrad, Edge, Node, run_hooks
from graphc.tensors.placement import beside, is_elsewhere, is_on_device, on_host, place_of
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of, front, refresh


def _roots(outputs: Sequence[Any], gradients: Sequence[Any]) -> list[tuple[Edge, Any]]:
    """Return the edges where the pass starts, with their gradients; raise GradientError or ShapeError."""
    if len(outputs) != len(gradients):
        raise ArgumentError(f"{len(outputs)} outputs need as many gradients, got {len(gradients)}")
    roots = []
    is_eager = active() is None
    for i, (tensor, gradient) in enumerate(zip(outputs, gradients, strict=True)):
        output = refresh(tensor if is_eager else front().local(tensor))
        if not output._requires_grad:
            raise GradientError(
                f"output {i} does not require gradients and was not made by an operation on a tensor that does",
                remedy="call requires_grad_() on a leaf, and run the operations outside of no_grad()",
            )
        roots.append((edge_of(output), _root_gradient(i, output, gradient)))
    return roots


def _root_gradient(i: int, output: Any, gradient: Any) -> Any:
    if gradient is None:
        data = output._data
        if data.__class__ is np.ndarray and data.dtype in _PLAIN and not data.shape and active() is None:
            return Tensor._wrap(np.array(1, data.dtype))
        if output.dtype.is_complex:
            raise complex_loss(output)
        if output.numel() != 1:
            raise GradientError(
                f"a gradient can be implied only for a scalar output; output {i} has shape {list(output.shape)}",
                remedy="call backward(gradient), or reduce it first: .sum() or .mean()",
            )
        return beside(filled(1.0, output.dtype, output.shape), output)
    if not isinstance(gradient, Tensor):
        raise ArgumentError(f"a gradient must be a tensor or None, got {type(gradient).__name__}")
    gradient = front().local(gradient)
    if gradient.shape != output.shape:
        raise ShapeError(f"gradient {i} has shape {list(gradient.shape)}, its output {list(output.shape)}")
    if is_elsewhere(gradient._data, place_of(output._data)):
        raise DeviceError(
            f"gradient {i} is on {gradient.device}, its output on {output.device}",
            remedy="call gradient.to(output.device)",
        )
    return gradient if gradient.dtype is output.dtype else ew.cast(gradient, dtype=output.dtype)


_PLAIN = frozenset((float32.numpy, float64.numpy))
_running: ContextVar[_Pass | None] = ContextVar("graphc_backward_pass", default=None)


class _Pass:
    """One backward pass."""

    def __init__(self, targets: Iterable[Edge] | None, keep: bool, create: bool, accumulate: bool):
        self.targets = None if targets is None else {(id(node), index) for node, index in targets}
        self.oldest = -1 if targets is None else min((node.sequence for node, _ in targets), default=-1)
        """Sequence number of the oldest target; older nodes lead to no target."""
        self.keep = keep
        self.create = create
        self.accumulate = accumulate
        """Whether leaves add their gradient to ``grad``."""
        self.captured: dict[tuple[int, int], Any] = {}
        self.pending: dict[Node, list[Any]] = {}
        self.heap: list[tuple[int, Node]] = []
        self.roots: list[Node] = []
        self.reached: set[Node] | None = None
        around = _running.get()
        self._around: _Pass | None = None if around is None else around.outermost
        self.finishers: list[Callable[[], None]] = []
        """Functions to call when all gradients are complete."""
        self.reduced: list[Any] = []
        """Modules whose gradients a finisher reduces over processes."""
        self.locate: Callable[[Any], Any] | None = getattr(front(), "locate", None)
        """Tells a tracer whose gradient the next operations compute, and returns what it was told before."""
        self.run_rules: Callable[[Node, list[Any]], Sequence[Any]] | None = getattr(front(), "run_rules", None)
        """Runs a node in a trace."""

    @property
    def outermost(self) -> _Pass:
        """The outermost enclosing pass, or this one: hooks and checkpoints run passes within passes."""
        # NOTE: storing self would make a reference cycle, which keeps the graph alive until garbage collection.
        return self._around or self

    def will_run(self, node: Node) -> bool:
        """Check whether a gradient will arrive at ``node`` in this pass."""
        if self.reached is None:
            reachable = _reachable(self.roots, self.oldest)
            self.reached = reachable if self.targets is None else _useful(self.targets, reachable)
        return node in self.reached

    def run(self, roots: list[tuple[Edge, Any]]) -> None:
        """Run the pass, from the gradients of the roots."""
        token = _running.set(self)
        former = None if self.locate is None else self.locate(None)
        try:
            self._run(roots)
            for finish in self.finishers:
                finish()
        finally:
            _running.reset(token)
            if self.locate is not None:
                self.locate(former)

    def _run(self, roots: list[tuple[Edge, Any]]) -> None:
        self.roots = [edge[0] for edge, _ in roots]
        useful = None if self.targets is None else _useful(self.targets, _reachable(self.roots, self.oldest))
        self._send([edge for edge, _ in roots], [gradient for _, gradient in roots], None)
        targets, heap, pending = self.targets, self.heap, self.pending
        while heap:
            node = heapq.heappop(heap)[1]
            grads = pending.pop(node)
            leaf = node.variable if isinstance(node, AccumulateGrad) else None
            hooks = node.tensor_hooks if leaf is None else leaf._hooks
            if hooks or node.pre_hooks or node.retained or targets is not None:
                grads = self._arrive(node, grads)
            if leaf is not None:
                if self.accumulate and (targets is None or (id(node), 0) in targets):
                    _accumulate(leaf, grads[0], self.create)
                    if node.post_hooks:
                        run_hooks(node.post_hooks, (), tuple(grads))
            elif useful is None or any(edge is not None and edge[0] in useful for edge in node.edges):
                self._step(node, grads, useful)

    def _send(self, edges: Sequence[Edge | None], gradients: Sequence[Any], useful: set[Node] | None) -> None:
        """Add gradients to those of the outputs of nodes to which edges lead."""
        pending = self.pending
        for edge, gradient in zip(edges, gradients, strict=True):
            if edge is None or gradient is None or not (useful is None or edge[0] in useful):
                continue
            node, index = edge
            grads = pending.get(node)
            if grads is None:
                grads = pending[node] = [None] * node.count
                heapq.heappush(self.heap, (-node.sequence, node))
            previous = grads[index]
            grads[index] = gradient if previous is None else ew.add(previous, gradient)

    def _arrive(self, node: Node, grads: list[Any]) -> list[Any]:
        """Run the hooks of tensors and of the node, and store retained and requested gradients."""
        for index, gradient in enumerate(grads):
            if gradient is not None:
                grads[index] = self._tensor_hooks(node, index, gradient)
        if node.pre_hooks:
            _mark_shared(grads)
            grads = list(run_hooks(node.pre_hooks, tuple(grads)))
        for index, gradient in enumerate(grads):
            if gradient is None:
                continue
            if node.retained and index in node.retained:
                tensor = node.retained[index]()
                if tensor is not None:
                    tensor._grad = gradient if tensor._grad is None else ew.add(tensor._grad, gradient)
            if self.targets is not None and (id(node), index) in self.targets:
                self.captured[(id(node), index)] = gradient
        return grads

    def _tensor_hooks(self, node: Node, index: int, gradient: Any) -> Any:
        if isinstance(node, AccumulateGrad):
            hooks, name = node.variable._hooks, "hook of a parameter"
        else:
            hooks, name = node.tensor_hooks.get(index) if node.tensor_hooks else None, "hook of a tensor"
        if hooks:
            _mark_shared([gradient])
        run = getattr(front(), "run_hook", None) if hooks else None
        for hook in list(hooks.values()) if hooks else ():
            replaced = hook(gradient) if run is None else run(hook, gradient, name)
            if replaced is None:
                continue
            if not isinstance(replaced, Tensor) or replaced.shape != gradient.shape:
                actual = list(replaced.shape) if isinstance(replaced, Tensor) else type(replaced).__name__
                raise GradientError(f"a hook returned {actual}, expected a tensor of shape {list(gradient.shape)}")
            gradient = replaced
        return gradient

    def _step(self, node: Node, grads: list[Any], useful: set[Node] | None) -> None:
        if self.locate is not None:
            self.locate(node)
        if anomaly()[0]:
            gradients = _checked_run(node, grads)
        elif node.chooses:
            needed = [edge is not None and (useful is None or edge[0] in useful) for edge in node.edges]
            gradients = node.run_for(grads, needed)
        else:
            gradients = node.run(grads) if self.run_rules is None else self.run_rules(node, grads)
        if node.post_hooks:
            _mark_shared(gradients)
            gradients = run_hooks(node.post_hooks, tuple(gradients), tuple(grads))
        self._send(node.edges, gradients, useful)
        if self.locate is not None:
            self.locate(None)
        if not self.keep:
            node.release()


def _mark_shared(gradients: Iterable[Any]) -> None:
    """Mark gradients as visible to hooks, which may keep them."""
    for gradient in gradients:
        if gradient is not None:
            gradient._fresh = False


def _checked_run(node: Node, grads: list[Any]) -> Sequence[Any]:
    """Run a node in anomaly mode; an error names the line of its operation."""
    try:
        gradients = node.run(grads)
    except GraphcError as error:
        error.origin = error.origin or node.origin
        raise
    if is_anomaly_check_nan_enabled():
        for i, gradient in enumerate(gradients):
            data = None if gradient is None else gradient._data
            data = on_host(data)
            if isinstance(data, np.ndarray) and data.dtype.kind == "f" and np.isnan(data).any():
                raise GradientError(
                    f"{node.name()} made a NaN in the gradient of operand {i}",
                    origin=node.origin or "an operation outside of anomaly mode",
                    remedy="check the operands of that operation: a root or logarithm of 0, 0 / 0, inf - inf",
                )
    return gradients


def _useful(targets: set[tuple[int, int]], reachable: set[Node]) -> set[Node]:
    """Return the nodes of ``reachable`` from which a target can be reached, targets included."""
    target_ids = {node for node, _ in targets}
    useful: set[Node] = set()
    for node in sorted(reachable, key=lambda n: n.sequence):
        if id(node) in target_ids or any(edge is not None and edge[0] in useful for edge in node.edges):
            useful.add(node)
    return useful


def _reachable(roots: Iterable[Node], oldest: int) -> set[Node]:
    """Return all nodes reachable from ``roots`` over nodes whose sequence number is at least ``oldest``."""
    visited: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in visited and node.sequence >= oldest:
            visited.add(node)
            stack.extend(edge[0] for edge in node.edges if edge is not None)
    return visited


def current_pass() -> _Pass:
    """Return the backward pass that runs the calling hook; raise GradientError elsewhere."""
    running = _running.get()
    if running is None:
        raise GradientError("this is only known during a backward pass")
    return running


def is_running() -> bool:
    """Check whether the caller runs in a backward pass."""
    return _running.get() is not None


def _accumulate(leaf: Any, gradient: Any, create: bool) -> None:
    """Add to the gradient of a leaf, which owns the gradient's memory exclusively."""
    if active() is not None:
        leaf = front().leaf(leaf)
    if gradient.dtype is not leaf.dtype:
        gradient = ew.cast(gradient, dtype=leaf.dtype)
    if not gradient._data.__class__ is leaf._data.__class__ is np.ndarray:
        place = place_of(leaf._data)
        gradient = front().moved(gradient, place) if is_elsewhere(gradient._data, place) else gradient
    if gradient._fresh and leaf._grad is None and not create:
        gradient._fresh = False
        leaf._grad = gradient
    else:
        _add(leaf, gradient, create)
    if leaf._post_hooks:
        for hook in list(leaf._post_hooks.values()):
            hook(leaf)
    if leaf._listener is not None:
        leaf._listener(leaf)


def _add(leaf: Any, gradient: Any, create: bool) -> None:
    old = leaf._grad
    data = gradient._data
    if not create and is_on_device(data):
        _add_on_device(leaf, old, gradient)
    elif create or not isinstance(data, np.ndarray) or gradient._tangents is not None:
        leaf._grad = gradient if old is None else ew.add(old, gradient)
    elif old is None:
        leaf._grad = Tensor._wrap(np.array(data, order="C"))
    elif _adds_in_place(old):
        np.add(old._data, data, out=old._data)
        if old._counter is not None:
            old._counter[0] += 1
    else:
        leaf._grad = ew.add(old, gradient)


def _adds_in_place(old: Any) -> bool:
    is_array = isinstance(old._data, np.ndarray) and old.dtype.kind != "h"
    return is_array and old._data.flags.writeable and not old._requires_grad


def _add_on_device(leaf: Any, old: Any, gradient: Any) -> None:
    if old is None:
        leaf._grad = Tensor._wrap(gradient._data.copy())
    elif old._requires_grad or not is_on_device(old._data) or not old._data.flags.writeable:
        leaf._grad = ew.add(old, gradient)
    else:
        front().assign(old, ew.add(old, gradient))


def _tensors(value: Any) -> list[Any]:
    return [value] if isinstance(value, Tensor) else list(value)


class _Modes:
    """Context of a pass: recording on or off, and autocast off, because the types follow from the forward pass."""

    def __init__(self, create_graph: bool):
        self._records = bool(create_graph)

    def __enter__(self) -> None:
        self._recording = set_recording(self._records)
        self._autocast = autocast.set(None)

    def __exit__(self, *exception: object) -> None:
        autocast.reset(self._autocast)
        reset_recording(self._recording)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradient of the sum of ``tensors``, weighted by ``grad_tensors``, to ``grad`` of every leaf (or of
    ``inputs``). See ``Tensor.backward``."""
    outputs = _tensors(tensors)
    gradients = [None] * len(outputs) if grad_tensors is None else _tensors(grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    targets = None if inputs is None else [refresh(front().local(t)) for t in _tensors(inputs)]
    if targets is not None:
        if not targets:
            raise GradientError("inputs must not be empty")
        _check_inputs(targets)
    with _Modes(create_graph):
        roots = _roots(outputs, gradients)
        edges = None if targets is None else [edge_of(t) for t in targets]
        run = _Pass(edges, keep, create_graph, accumulate=True)
        run.run(roots)
        for tensor, (node, index) in zip(targets or (), edges or (), strict=True):
            gradient = run.captured.get((id(node), index))
            if tensor._node is not None and not tensor._keeps_grad and gradient is not None:
                tensor._grad = gradient if tensor._grad is None else ew.add(tensor._grad, gradient)


def _check_inputs(inputs: Sequence[Any]) -> None:
    for i, tensor in enumerate(inputs):
        if not isinstance(tensor, Tensor) or not tensor._requires_grad:
            raise GradientError(
                f"input {i} does not require gradients", remedy="call requires_grad_() before you use it"
            )


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Return the gradients of the sum of ``outputs``, weighted by ``grad_outputs``, with respect to each of ``inputs``.

    With ``is_grads_batched``, each of ``grad_outputs`` has an additional first dimension; one pass runs for each of its
    entries, and the gradients are stacked. ``grad`` is unchanged. An input on which the outputs do not depend raises
    GradientError, or gives None with ``allow_unused`` and zeros with ``materialize_grads``.

    Example:
        >>> import graphc as gc
        >>> x = gc.tensor([1.0, 2.0], requires_grad=True)
        >>> gc.autograd.grad((x**2).sum(), x)
        (tensor([2., 4.]),)
    """
    if not only_inputs:
        warnings.warn("only_inputs=False has no effect", UserWarning, stacklevel=2)
    if materialize_grads and allow_unused is False:
        raise ArgumentError("materialize_grads needs unused inputs to be allowed")
    results = _tensors(outputs)
    weights = [None] * len(results) if grad_outputs is None else _tensors(grad_outputs)
    targets = [refresh(front().local(t)) for t in _tensors(inputs)]
    _check_inputs(targets)
    keep = create_graph if retain_graph is None else retain_graph
    unused = (allow_unused or materialize_grads, materialize_grads)
    with _Modes(create_graph):
        if not is_grads_batched:
            return _gradients(results, targets, weights, keep, create_graph, *unused)
        rows = _rows(weights)
        gradients = [
            _gradients(results, targets, row, keep or i + 1 < len(rows), create_graph, *unused)
            for i, row in enumerate(rows)
        ]
        return tuple(None if each[0] is None else _stacked(each) for each in zip(*gradients, strict=True))


def _gradients(
    results: Any, targets: Any, weights: Any, keep: bool, create_graph: bool, allow_unused: bool, materialize: bool
) -> tuple[Any, ...]:
    edges = [edge_of(t) for t in targets]
    run = _Pass(edges, keep, create_graph, accumulate=False)
    run.run(_roots(results, weights))
    return tuple(
        _input_gradient(run.captured.get((id(node), index)), i, tensor, allow_unused, materialize)
        for i, (tensor, (node, index)) in enumerate(zip(targets, edges, strict=True))
    )


def _rows(batched: Sequence[Any]) -> list[list[Any]]:
    """Split batched gradients into the gradients of each pass."""
    counts = {t.shape[0] if isinstance(t, Tensor) and t.shape else None for t in batched}
    if len(counts) != 1 or counts <= {None, 0}:
        raise ArgumentError(
            "is_grads_batched needs grad_outputs that have one first dimension in common, which is not empty"
        )
    return [[t[i] for t in batched] for i in range(counts.pop() or 0)]


def _stacked(tensors: Sequence[Any]) -> Any:
    rows = [reshape(t, shape=(1, *t.shape)) for t in tensors]
    return rows[0] if len(rows) == 1 else concat(*rows, axis=0)


def _input_gradient(gradient: Any, i: int, tensor: Any, allow_unused: bool, materialize: bool) -> Any:
    if gradient is None and not allow_unused:
        raise GradientError(
            f"the outputs do not depend on input {i}, of shape {list(tensor.shape)}", remedy="pass allow_unused=True"
        )
    return zeros_like(tensor) if gradient is None and materialize else gradient
