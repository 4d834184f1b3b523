"""Hooks in compiled code: Python functions that every call runs on values which the code has computed."""

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
    """Mark a hook to be compiled to operations, as ``forward`` is.

    It runs once, while the code is traced, and costs no Python call afterwards. Use it for hooks that only compute
    their return value. Also a decorator.
    """

    @functools.wraps(hook)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return hook(*args, **kwargs)

    traced.is_traced_hook = True  # type: ignore[attr-defined]
    return traced


def runs_at_calls(*hooks: Hook) -> bool:
    """Check whether compiled code must call some of the hooks: in a trace for compilation, unless all are traced
    hooks."""
    tracer = front()
    while isinstance(tracer, Tracer) and tracer.parent is not None:
        tracer = tracer.parent
    if not isinstance(tracer, Tracer) or tracer.host is None:
        return False
    return not all(getattr(hook, "is_traced_hook", False) for hook in hooks)


def observer(hook: Hook, unseen: Callable[[Any], Any] | None = None) -> Hook:
    """Mark a hook as one that only looks and returns nothing.

    Where compiled code cannot call it (in steps of loops, and in graphs compiled without a host), it is left out, and
    ``unseen(module)`` is called while the code is traced.
    """
    hook.only_looks, hook.unseen = True, unseen  # type: ignore[attr-defined]
    return hook


def is_left_out(hook: Hook, module: Any) -> bool:
    """Check whether a hook is an observer which the code being traced cannot call."""
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
    """Decides which hooks of one table run at one point of the code: those registered when its first hook runs.

    As in eager mode, a hook removed earlier in the same call is not called. A hook removed by a neighbour at the same
    point still is.
    """

    __slots__ = ("_first", "_present", "_table")

    def __init__(self, table: Mapping[int, Hook]) -> None:
        self._table = table
        self._first: int | None = None
        self._present: dict[int, frozenset[int]] = {}

    def of(self, hook_id: int) -> Callable[[], bool]:
        """Return a function that says, at the point where the hook would run, whether to call it."""
        self._first = hook_id if self._first is None else self._first
        return functools.partial(self._is_present, hook_id)

    def _is_present(self, hook_id: int) -> bool:
        thread = threading.get_ident()
        if hook_id == self._first:
            self._present[thread] = frozenset(self._table)
        return hook_id in self._present[thread]


def call_forward_hook(
    hook: Hook, module: Any, args: Any, kwargs: dict[str, Any] | None, output: Any, is_present: Callable[[], bool]
) -> Any:
    """Return the output after a forward hook that each call of compiled code runs while ``is_present()``."""
    input_leaves, input_structure = flatten(args if kwargs is None else (args, kwargs))
    output_leaves, structure = flatten(output)
    name = _name("forward hook", module)

    def run(*tensors: Tensor) -> Sequence[Tensor]:
        current = tensors[: len(output_leaves)]
        if not is_present():
            return current
        inputs = unflatten(input_structure, tensors[len(output_leaves) :])
        replaced = call_hook(hook, module, *((inputs,) if kwargs is None else inputs), unflatten(structure, current))
        return current if replaced is None else _replacement(name, replaced, structure)

    # The hook may only look at the inputs: a replaced output takes over the gradient of the output.
    results = call_python(front(), name, run, output_leaves, _types(output_leaves), shown=input_leaves)
    return unflatten(structure, results)


def call_pre_hook(
    hook: Hook, module: Any, args: Any, kwargs: dict[str, Any] | None, is_present: Callable[[], bool]
) -> tuple[Any, Any]:
    """Return the arguments after a forward pre-hook that each call of compiled code runs while ``is_present()``.

    For a hook without kwargs, ``kwargs`` are None.
    """
    leaves, structure = flatten(args if kwargs is None else (args, kwargs))
    name = _name("forward pre-hook", module)

    def run(*tensors: Tensor) -> Sequence[Tensor]:
        if not is_present():
            return tensors
        current = unflatten(structure, tensors)
        replaced = call_hook(hook, module, *((current,) if kwargs is None else current))
        if replaced is None:
            return tensors
        if kwargs is None:
            replaced = replaced if isinstance(replaced, tuple) else (replaced,)
        elif not (isinstance(replaced, tuple) and len(replaced) == 2):
            raise HookError(f"a forward pre-hook with kwargs returns None or (args, kwargs), got {replaced!r}")
        return _replacement(name, replaced, structure)

    results = unflatten(structure, call_python(front(), name, run, leaves, _types(leaves)))
    return (results, {}) if kwargs is None else results


def _replacement(name: str, replaced: Any, structure: Any) -> Sequence[Tensor]:
    leaves, new_structure = flatten(replaced)
    if new_structure != structure:
        raise HookError(
            f"{name}: the returned value differs in structure, or in its numbers, from the value that it replaces",
            remedy="return a tensor for each tensor and leave everything else as it was; mark a hook that computes the "
            "same at each call with graphc.hooks.traced(hook)",
        )
    return leaves


def _types(leaves: Sequence[Tensor]) -> list[TensorType]:
    return [TensorType(t.dtype, tuple(t.shape)) for t in leaves]


def watched(watch: Callable[[tuple[Any, ...]], tuple[Any, ...]], module: Any, tensors: Sequence[Tensor]) -> Any:
    """Return the tensors, with their gradients going through ``watch`` in each backward pass of compiled code."""
    return tuple(watch_gradients(front(), _name("backward hook", module), watch, tensors))
