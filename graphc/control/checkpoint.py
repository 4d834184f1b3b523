"""Checkpoints: functions whose intermediate values are not kept for the backward pass, but computed again by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.control.sub_graphs import as_they_were, taken_checks
from graphc.eager import checkpoint as eager
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ops import dispatch
from graphc.ops.checkpoint import checkpoint as checkpoint_op
from graphc.ops.checkpoint import kept_values
from graphc.ops.state import untracked
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
    """``function(*args, **kwargs)``, of which nothing but its arguments is kept for the gradient: the backward pass
    runs it once more, right before it needs what it computes.

    The second run sees what the first one did: the same arguments, the same random numbers, buffers as they were
    before; what it writes to buffers is undone. So it must depend on nothing else, or the backward pass raises
    GradientError. ``preserve_rng_state=False`` leaves random numbers drawn outside of any module's call as they come.
    Arguments must not be written to before the backward pass. Gradients of any order are those of the function itself.
    In traced and compiled code the values are computed again inside of the backward part, bit for bit.

    ``use_reentrant``, ``determinism_check``, ``debug`` and ``early_stop`` are accepted and change nothing: there is one
    way, with the abilities of PyTorch's ``use_reentrant=False``. ``context_fn`` raises ArgumentError.
    """
    if context_fn is not None:
        raise ArgumentError(
            "checkpoint: context_fn is not available",
            remedy='checkpoint around smaller parts; compile_step(..., memory="70%") chooses what is computed again',
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
    """Applies modules or functions one after the other (a ``Sequential`` or a list), in ``segments`` parts about as
    long as each other, of which all but the last go through ``checkpoint``."""
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= max(1, len(steps)):
        raise ArgumentError(f"checkpoint_sequential: {segments} segments of {len(steps)} functions")
    length = len(steps) // segments
    for start in range(0, length * (segments - 1), length):
        part = _Chain(steps[start : start + length])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return _Chain(steps[length * (segments - 1) :])(input)


class _Chain:
    """Functions applied one after the other."""

    def __init__(self, steps: Sequence[Callable[[Any], Any]]):
        self.steps = steps

    def __call__(self, value: Any) -> Any:
        for step in self.steps:
            value = step(value)
        return value


def _trace(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """One node; what the function reads from outside becomes operands, what it writes there further results."""
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
            made = [refresh(inner.local(t)) for t in leaves]
            written = [(entry.tensor, refresh(entry.image)) for entry in inner.written()]
            after = None if outer.host is None else outer.host.token
            calls = [] if after is before else [refresh(inner.local(after))]
    finally:
        if outer.host is not None:
            outer.host.token = before
    # A check of a branch or a step is made behind it, so it must not be hidden here.
    checks = [] if outer.parent is None else taken_checks(inner.graph)
    results = [*made, *(image for _, image in written), *calls, *(Tensor._wrap(c.operands[0]) for c in checks)]
    if not results:
        return unflatten(structure, [])
    values = [t._data for t in results]
    inner.graph.set_outputs([*values, *kept_values(inner.graph)])
    operands = as_they_were(inner.origins, [tensor for tensor, _ in written])
    found = outer.apply(checkpoint_op.op, operands, {"body": inner.graph, "results": len(values)})
    found = list(found) if isinstance(found, tuple) else [found]
    given = [_connected(t, image) for t, image in zip(found, results, strict=False)]
    for check, value in zip(reversed(checks), reversed(given), strict=False):
        emit(outer.graph, check.op, [refresh(value)._data], check.attrs, check.location)
    if calls and outer.host is not None:
        outer.host.token = given[len(made) + len(written)]
    for (tensor, image), value in zip(written, given[len(leaves) :], strict=False):
        if image._requires_grad:
            outer.assign(tensor, value)
        else:
            with no_grad():
                outer.assign(tensor, value)
    return unflatten(structure, given[: len(leaves)])


def _connected(result: Any, image: Tensor) -> Any:
    """A result, without gradient where the function gave none."""
    return result if image._requires_grad or not result.dtype.is_differentiable else untracked(result)
