"""Hooks in compiled code: Python functions that each call runs on what the code has computed."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.errors import HookError
from graphc.ir.types import TensorType
from graphc.tape.hooks import call_hook
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.host import call_python, watch_gradients
from graphc.tracing.tracer import Tracer

Hook = Callable[..., Any]


def traced_hook(hook: Hook) -> Hook:
    """A hook that compiled code holds as operations, as it holds ``forward``.

    It runs once, while the code is traced, and costs no call of Python. For hooks that do nothing but compute what they
    return. Also a decorator.
    """

    @functools.wraps(hook)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return hook(*args, **kwargs)

    traced.is_traced_hook = True  # type: ignore[attr-defined]
    return traced


def runs_at_calls(*hooks: Hook) -> bool:
    """Whether hooks are called by compiled code: in a trace for it, unless they are traced themselves."""
    tracer = front()
    while isinstance(tracer, Tracer) and tracer.parent is not None:
        tracer = tracer.parent
    if not isinstance(tracer, Tracer) or tracer.host is None:
        return False
    return not all(getattr(hook, "is_traced_hook", False) for hook in hooks)


def observer(hook: Hook, unseen: Callable[[Any], Any] | None = None) -> Hook:
    """A hook that returns nothing. Where compiled code cannot call it, in steps of loops and in graphs by themselves,
    it is left out, and ``unseen(module)`` is called while the code is traced."""
    hook.only_looks, hook.unseen = True, unseen  # type: ignore[attr-defined]
    return hook


def is_left_out(hook: Hook, module: Any) -> bool:
    """Whether a hook is an observer that what is traced now cannot call."""
    if not getattr(hook, "only_looks", False):
        return False
    tracer = front()
    if not isinstance(tracer, Tracer) or tracer.host is not None:
        return False
    unseen = getattr(hook, "unseen", None)
    if unseen is not None:
        unseen(module)
    return True


def _name(kind: str, module: Any) -> str:
    return f"{kind} of {type(module).__name__}"


class Presence:
    """Which hooks of one table run at one place of the code: those that are there when the first of them runs.

    As in eager mode: one that was removed earlier in the same call is not called again, one that is removed by its
    neighbour is.
    """

    __slots__ = ("_first", "_present", "_table")

    def __init__(self, table: Mapping[int, Hook]) -> None:
        self._table = table
        self._first: int | None = None
        self._present: dict[int, frozenset[int]] = {}

    def of(self, hook_id: int) -> Callable[[], bool]:
        """Whether a hook is called, asked for when its place is reached."""
        self._first = hook_id if self._first is None else self._first
        return functools.partial(self._there, hook_id)

    def _there(self, hook_id: int) -> bool:
        thread = threading.get_ident()
        if hook_id == self._first:
            self._present[thread] = frozenset(self._table)
        return hook_id in self._present[thread]


def call_forward_hook(
    hook: Hook, module: Any, args: Any, kwargs: dict[str, Any] | None, output: Any, there: Callable[[], bool]
) -> Any:
    """The output after a forward hook that each call of compiled code runs while the hook is ``there``."""
    before, around = flatten(args if kwargs is None else (args, kwargs))
    after, nested = flatten(output)
    name = _name("forward hook", module)

    def run(*tensors: Tensor) -> Sequence[Tensor]:
        if not there():
            return tensors[: len(after)]
        given = unflatten(around, tensors[len(after) :])
        shown = unflatten(nested, tensors[: len(after)])
        found = call_hook(hook, module, *((given,) if kwargs is None else given), shown)
        return tensors[: len(after)] if found is None else _replacement(name, found, nested)

    # The inputs are shown only: what replaces the output has the gradient of the output.
    found = call_python(front(), name, run, after, _types(after), shown=before)
    return unflatten(nested, found)


def call_pre_hook(
    hook: Hook, module: Any, args: Any, kwargs: dict[str, Any] | None, there: Callable[[], bool]
) -> tuple[Any, Any]:
    """The arguments after a forward pre-hook that each call of compiled code runs while the hook is ``there``;
    ``kwargs`` are None for a hook that does not see them."""
    given = args if kwargs is None else (args, kwargs)
    leaves, nested = flatten(given)
    name = _name("forward pre-hook", module)

    def run(*tensors: Tensor) -> Sequence[Tensor]:
        if not there():
            return tensors
        present = unflatten(nested, tensors)
        found = call_hook(hook, module, *((present,) if kwargs is None else present))
        if found is None:
            return tensors
        if kwargs is None:
            found = found if isinstance(found, tuple) else (found,)
        elif not (isinstance(found, tuple) and len(found) == 2):
            raise HookError(f"a forward pre-hook with kwargs returns None or (args, kwargs), got {found!r}")
        return _replacement(name, found, nested)

    found = unflatten(nested, call_python(front(), name, run, leaves, _types(leaves)))
    return (found, {}) if kwargs is None else found


def _replacement(name: str, found: Any, nested: Any) -> Sequence[Tensor]:
    leaves, form = flatten(found)
    if form != nested:
        raise HookError(
            f"{name}: what it returned is nested otherwise, or holds other numbers, than what it replaces",
            remedy="tensors in the place of tensors, everything else as it was; graphc.hooks.traced(hook) for a hook "
            "that computes the same at each call",
        )
    return leaves


def _types(leaves: Sequence[Tensor]) -> list[TensorType]:
    return [TensorType(t.dtype, tuple(t.shape)) for t in leaves]


def watched(watch: Callable[[tuple[Any, ...]], tuple[Any, ...]], module: Any, tensors: Sequence[Tensor]) -> Any:
    """The tensors, whose gradients go through ``watch`` in each backward pass of compiled code."""
    return tuple(watch_gradients(front(), _name("backward hook", module), watch, tensors))
