"""Views: derivation of a tensor from the one whose memory it shares, and propagation of writes to that one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base import mutation_epoch
from graphc.base.dtypes import bool_
from graphc.base.errors import GradientError
from graphc.ops.pointwise import elementwise as ew
from graphc.tape import tangents
from graphc.tape.grad_mode import is_grad_enabled, set_grad_enabled
from graphc.tensors.tensor_base import Steps, View, bump, check_writable, front, refresh


def become_view(result: Any, operand: Any, steps: Steps, detaches: bool) -> None:
    """Make ``result``, a new tensor derived by ``steps`` in the memory of ``operand``, a view of the tensor that owns
    the memory; without gradient if it ``detaches``."""
    result._counter = counter = operand._counter
    view = operand._view
    result._view = View(operand, steps) if view is None else View(view.base, view.steps + steps)
    if counter is not None and counter[0]:
        result._seen = counter[0]
    if detaches or operand._detached or not is_grad_enabled():
        result._detached = True


def write_through(tensor: Any, value: Any) -> None:
    """Give ``tensor`` the history of ``value``; for a view, give its base the history of itself with the view replaced.

    Unrecorded writes (no_grad, or a value without gradient) only change the content of traced tensors; later gradients
    still reach the former history.
    """
    recorded = is_grad_enabled() and (value._requires_grad or tensor._requires_grad)
    if recorded and tensor._node is not None and not value._requires_grad:
        # The overwritten content has gradient 0; the tensor keeps its position in the graph.
        value = ew.where(front().scalar(True, bool_), value, front().before_write(tensor))
    view = tensor._view
    if view is None:
        _take_over(tensor, value, recorded)
        return
    if tensor._detached and recorded:
        raise GradientError(
            "a value that requires gradients is written to a view from detach() or no_grad()",
            remedy="write to the tensor itself, or detach the value",
        )
    content = front().before_write(view.base) if recorded else view.base
    _take_over(view.base, _replaced(content, view.steps, value), recorded)


def write_tangents(tensor: Any, value: Any) -> None:
    """Give ``tensor``, and for a view its base, the tangents of ``value``."""
    view = tensor._view
    if view is not None and any(op.detaches for op, _ in view.steps):
        return
    base = tensor if view is None else view.base
    open_levels = tangents.levels.get()
    for depth, level in enumerate(open_levels):
        if all(tangents.tangent_of(t, level) is None for t in (value, tensor, base)):
            continue
        with tangents.only(open_levels[:depth]):
            tangent = tangents.tangent_or_zeros(value, level)
            tangents.set_tangent(tensor, level, tangent)
            if view is not None:
                content = tangents.tangent_or_zeros(base, level)
                tangents.set_tangent(base, level, _replaced(content, view.steps, tangent))


def _replaced(content: Any, steps: Steps, value: Any) -> Any:
    """Replace the view that ``steps`` lead to in ``content`` by ``value``."""
    contents = [content]
    for op, attrs in steps[:-1]:
        contents.append(front().apply(op, (contents[-1],), attrs))
    for (op, attrs), source in zip(reversed(steps), reversed(contents), strict=True):
        value = op.put_back(source, value, **attrs)
    return value


def _take_over(tensor: Any, value: Any, recorded: bool) -> None:
    if recorded:
        if not isinstance(value._data.dtype, np.dtype):
            tensor._data = value._data
        _take_history(tensor, value)
    elif not isinstance(value._data.dtype, np.dtype):
        tensor._data = front().unrecorded(tensor, value)


def _take_history(tensor: Any, value: Any) -> None:
    if tensor._keeps_grad and tensor._node is not None:
        retained = tensor._node.retained.pop(tensor._index)
        if value._node is not None:
            value._node.retained = {**(value._node.retained or {}), value._index: retained}
    mutation_epoch.note()
    tensor._node, tensor._index = value._node, value._index
    tensor._requires_grad = value._requires_grad


def change_shape(tensor: Any, function: Callable[[Any], Any]) -> Any:
    """Turn ``tensor`` into the view of itself that ``function`` returns, and return it.

    Other views of its memory are unchanged; the former tensor becomes their base. Raises GradientError if an in-place
    operation is not allowed, TraceError for a tensor from outside of the trace.
    """
    refresh(tensor)
    check_writable(tensor)
    former = _stand_in(tensor)
    front().lay_out(former, tensor)
    leaf = tensor._requires_grad and tensor._node is None
    with set_grad_enabled(not leaf):
        result = function(former)
    if tensor._view is None and result._view is not None:
        tensor._origin = former
    if not leaf:
        _take_history(tensor, result)
    mutation_epoch.note()
    bump(tensor)
    tensor._data, tensor._view, tensor._detached = result._data, result._view, result._detached
    tensor._tangents = result._tangents
    tensor._seen = 0 if tensor._counter is None else tensor._counter[0]
    front().lay_out(tensor, result)
    return tensor


def _stand_in(tensor: Any) -> Any:
    """Return another tensor with the same memory and graph position; for a leaf, without gradient."""
    other = type(tensor)._wrap(tensor._data)
    other._counter, other._view, other._seen = tensor._counter, tensor._view, tensor._seen
    other._detached, other._tangents = tensor._detached, tensor._tangents
    if tensor._node is not None:
        other._node, other._index, other._requires_grad = tensor._node, tensor._index, True
    return other
