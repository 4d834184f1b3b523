"""Native callables of compiled programs, which run no Python where the interpreter allows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base import config
from graphc.base.errors import CompileError
from graphc.base.lazy import deferred
from graphc.base.sizes.assumptions import Assumption
from graphc.compiler.ready import small_object
from graphc.guards.watch_words import WatchTable
from graphc.runtime import fast_call
from graphc.runtime.call import Executable

if TYPE_CHECKING:
    from graphc.runtime.tensor_call import TensorCaller

_is_building = deferred("graphc.compiler.background:is_building")
_emit_call = deferred("graphc.codegen.door.python_call:emit_call")
_tensor_layout = deferred("graphc.runtime.tensor_call:layout")
_TensorCaller = deferred("graphc.runtime.tensor_call:TensorCaller")
_emit_tensor_call = deferred("graphc.codegen.door.tensor_call:emit_tensor_call")


def _object(name: str, emit: Callable[..., str], layout: Mapping[str, int]) -> bytes:
    return small_object(name, partial(emit, layout), repr(sorted(layout.items())))


@cache
def caller() -> fast_call.Caller | None:
    """Return the factory of native callables in this process, or None where calls go through Python."""
    layout = fast_call.layout()
    if layout is None:
        return None
    try:
        return fast_call.Caller(_object("call", _emit_call, layout))
    except CompileError as error:
        config.logger("compile").warning("calls go through Python: %s", error.what)
        return None


@cache
def tensor_caller() -> TensorCaller | None:
    """Return the factory for tensors of another library, or None where calls go through Python."""
    layout = _tensor_layout()
    if layout is None:
        return None
    try:
        return _TensorCaller(_object("tensors", _emit_tensor_call, layout))
    except CompileError as error:
        config.logger("compile").warning("calls on tensors go through Python: %s", error.what)
        return None


def not_native(*_: Any, **__: Any) -> None:
    """Decline a native call: the caller then takes the Python path, which has the tensors."""


def native(
    program: Executable,
    bound: Sequence[np.ndarray],
    fallback: Callable[..., Any],
    kind: type | None = list,
    gate: fast_call.Gate | None = None,
    watch: WatchTable | None = None,
    apart: bool = False,
    assumptions: Sequence[Assumption] = (),
) -> Callable[..., Any]:
    """Return a native callable (see ``Caller.bind``); ``fallback`` itself without native calls."""
    factory = caller()
    if factory is None:
        return fallback
    return factory.bind(program, bound, fallback, kind, gate, watch, apart, assumptions)


def unchanged(watch: WatchTable) -> Callable[[], bool] | None:
    """Return a callable that tells whether all words of a watch are unchanged, native where possible.

    Return None while a child process builds a program and, with it, the native code, which this process would have to
    build too.
    """
    if not caller.cache_info().currsize and _is_building():
        return None
    factory = caller()
    return watch.same if factory is None else factory.same(watch)
