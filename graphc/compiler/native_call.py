"""Callables of compiled programs that run no Python where this interpreter allows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from graphc.base import config
from graphc.base.errors import CompileError
from graphc.base.lazy import deferred
from graphc.compiler.ready import small_object
from graphc.guards.watch_words import Watch
from graphc.runtime import fast_call, tensor_call
from graphc.runtime.call import Executable

_emit_call = deferred("graphc.codegen.door.python_call:emit_call")
_emit_tensor_call = deferred("graphc.codegen.door.tensor_call:emit_tensor_call")


def _object(name: str, emit: Callable[..., str], layout: Mapping[str, int]) -> bytes:
    return small_object(name, partial(emit, layout), repr(sorted(layout.items())))


@cache
def caller() -> fast_call.Caller | None:
    """What makes native callables in this process, or None where calls go through Python."""
    layout = fast_call.layout()
    if layout is None:
        return None
    try:
        return fast_call.Caller(_object("call", _emit_call, layout))
    except CompileError as error:
        config.logger("compile").warning("calls go through Python: %s", error.what)
        return None


@cache
def tensor_caller() -> tensor_call.TensorCaller | None:
    """The same for tensors of another library."""
    layout = tensor_call.layout()
    if layout is None:
        return None
    try:
        return tensor_call.TensorCaller(_object("tensors", _emit_tensor_call, layout))
    except CompileError as error:
        config.logger("compile").warning("calls on tensors go through Python: %s", error.what)
        return None


def native(
    program: Executable,
    bound: Sequence[np.ndarray],
    fallback: Callable[..., Any],
    kind: type | None = list,
    gate: fast_call.Gate | None = None,
    watch: Watch | None = None,
    apart: bool = False,
) -> Callable[..., Any]:
    """A callable as of ``Caller.bind``; ``fallback`` itself where there are no native calls."""
    found = caller()
    return fallback if found is None else found.bind(program, bound, fallback, kind, gate, watch, apart)


def unchanged(watch: Watch) -> Callable[[], bool]:
    """A callable that tells whether all words of a watch are what they were, native where there are native calls."""
    found = caller()
    return watch.same if found is None else found.same(watch)
