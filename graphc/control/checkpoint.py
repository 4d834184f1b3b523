"""Checkpoints: functions whose intermediate values the backward pass recomputes instead of keeping them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.autograd import checkpoint as eager
from graphc.base.errors import ArgumentError
from graphc.control.sub_graphs import as_they_were, taken_checks
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ops import dispatch
from graphc.ops.effects.state import untracked
from graphc.ops.flow.checkpoint import checkpoint as checkpoint_op
from graphc.ops.flow.checkpoint import kept_values
from graphc.tape.grad_mode import is_grad_enabled, no_grad
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh
from graphc.tracing.tracer import Tracer


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[..., Any] | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function and save only its arguments for the gradient: the backward pass runs it again.

    The second run sees the same arguments, random numbers and buffers as the first; its writes to buffers are undone.
    Do not write to arguments before the backward pass. Gradients of any order are exact; in traced and compiled code
    the backward part computes the same bits.

    Args:
        function: function of tensors that depends on nothing else that changes.
        args, kwargs: its arguments.
        preserve_rng_state: False does not repeat random numbers drawn outside of any module's call.
        context_fn: not available.
        use_reentrant, determinism_check, debug, early_stop: accepted without effect; the only mode is PyTorch's
            ``use_reentrant=False``.

    Returns:
        The result of the function.

    Raises:
        ArgumentError: ``context_fn`` is set, or ``function`` is not callable.
        GradientError: in the backward pass, the second run differs from the first.

    Example:
        >>> import graphc as gc
        >>> x = gc.tensor([0.0, 1.0], requires_grad=True)
        >>> gc.checkpoint(lambda x: x.sin().exp(), x).sum().backward()
        >>> x.grad
        tensor([1.0000, 1.2534])
    """
    if context_fn is not None:
        raise ArgumentError(
            "checkpoint: context_fn is not available",
            remedy='checkpoint smaller functions, or let compile_step(..., memory="70%") choose what to recompute',
        )
    if not callable(function):
        raise ArgumentError(f"checkpoint takes a callable, got {type(function).__name__}")
    if isinstance(front(), Tracer):
        return _trace(function, args, kwargs)
    return eager.run(function, args, kwargs, preserve_rng_state)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Apply modules or functions (a ``Sequential`` or a list) one after the other, in ``segments`` of about equal
    length; all but the last go through ``checkpoint``.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Sequential(*(gc.nn.ReLU() for _ in range(4)))
        >>> x = gc.tensor([-1.0, 2.0], requires_grad=True)
        >>> gc.utils.checkpoint.checkpoint_sequential(model, 2, x).sum().backward()
        >>> x.grad
        tensor([0., 1.])
    """
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= max(1, len(steps)):
        raise ArgumentError(f"checkpoint_sequential: cannot cut {len(steps)} functions into {segments} segments")
    length = len(steps) // segments
    for start in range(0, length * (segments - 1), length):
        segment = _Chain(steps[start : start + length])
        input = checkpoint(segment, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return _Chain(steps[length * (segments - 1) :])(input)


class _Chain:
    """A composition of functions."""

    def __init__(self, steps: Sequence[Callable[[Any], Any]]):
        self.steps = steps

    def __call__(self, value: Any) -> Any:
        for step in self.steps:
            value = step(value)
        return value


def _trace(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Trace the function as one node: tensors it reads from outside become operands, and tensors it writes
    become further results."""
    outer = front()
    assert isinstance(outer, Tracer)
    if not is_grad_enabled():
        return function(*args, **kwargs)
    inner = Tracer(Graph("checkpoint"), parent=outer)
    inner.differentiable, inner.host = outer.differentiable, outer.host
    before = None if outer.host is None else outer.host.token
    try:
        with dispatch.use(inner):
            leaves, structure = flatten(function(*args, **kwargs))
            returned = [refresh(inner.local(t)) for t in leaves]
            written = [(entry.tensor, refresh(entry.image)) for entry in inner.written()]
            after = None if outer.host is None else outer.host.token
            calls = [] if after is before else [refresh(inner.local(after))]
    finally:
        if outer.host is not None:
            outer.host.token = before
    # Hoist checks of a branch or a step out of the node, so that the enclosing construct can find them.
    checks = [] if outer.parent is None else taken_checks(inner.graph)
    results = [*returned, *(image for _, image in written), *calls, *(Tensor._wrap(c.operands[0]) for c in checks)]
    if not results:
        return unflatten(structure, [])
    values = [t._data for t in results]
    inner.graph.set_outputs([*values, *kept_values(inner.graph)])
    operands = as_they_were(inner.origins, [tensor for tensor, _ in written])
    outputs = outer.apply(checkpoint_op.op, operands, {"body": inner.graph, "results": len(values)})
    outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
    connected = [_connected(t, image) for t, image in zip(outputs, results, strict=False)]
    for check, value in zip(reversed(checks), reversed(connected), strict=False):
        emit(outer.graph, check.op, [refresh(value)._data], check.attrs, check.location)
    if calls and outer.host is not None:
        outer.host.token = connected[len(returned) + len(written)]
    for (tensor, image), value in zip(written, connected[len(leaves) :], strict=False):
        if image._requires_grad:
            outer.assign(tensor, value)
        else:
            with no_grad():
                outer.assign(tensor, value)
    return unflatten(structure, connected[: len(leaves)])


def _connected(result: Any, image: Tensor) -> Any:
    """Return a result, detached if the function gave it no gradient."""
    return result if image._requires_grad or not result.dtype.is_differentiable else untracked(result)
