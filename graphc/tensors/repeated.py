"""Composite functions: after repeated use of a signature, eager mode runs them as compiled programs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from graphc.base.autocast_state import USED as AUTOCAST
from graphc.base.autocast_state import is_autocast_enabled
from graphc.base.dtypes import DType
from graphc.base.lazy import deferred
from graphc.base.switches import are_deterministic_algorithms_enabled
from graphc.ops.dispatch import active, default
from graphc.tape.grad_mode import is_anomaly_enabled, is_grad_enabled, is_inference_mode_enabled
from graphc.tape.saved import saving
from graphc.tape.tangents import USED, levels
from graphc.tensors.tensor_base import VOLATILE, refresh

REPEATS = 24
"""Number of calls of one signature that numpy computes; the next one compiles the program. A number of calls rather
than seconds, so that the same script always computes the same bits. That many calls of a composite function take about
as long as finding its program on disk."""
SIGNATURES = 1000
"""Number of signatures of one function with call counts; beyond it, counting restarts."""
PROGRAMS = 64
"""Number of programs compiled for one function; numpy computes further signatures."""
PLAIN: set[type] = set()
"""Tensor classes that programs accept; other classes may observe each operation."""

_STATIC = frozenset((int, float, bool, str, type(None), DType))
_program = deferred("graphc.calls.repeated:program")
_F = TypeVar("_F", bound=Callable[..., Any])


def _entries(values: Iterable[Any], key: list[Any], tensors: list[Any], records: bool) -> bool:
    """Add arguments to the key; return False if no program accepts them."""
    for value in values:
        kind = value.__class__
        key.append(kind)
        if kind in _STATIC:
            # NOTE: -0.0 equals 0.0, but is a different constant.
            key.append(value if value or kind is not float else str(value))
        elif kind in PLAIN:
            if not _tensor(value, key, records):
                return False
            tensors.append(value)
        elif isinstance(value, (tuple, list)):
            key.append(len(value))
            if not _entries(value, key, tensors, records):
                return False
        else:
            return False
    return True


def _tensor(tensor: Any, key: list[Any], records: bool) -> bool:
    if tensor._view is not None:
        refresh(tensor)
    data = tensor._data
    if data.__class__ is not np.ndarray or (VOLATILE[0] and tensor._volatile):
        return False
    key += data.dtype, data.shape, records and tensor._requires_grad
    return True


def signature(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], list[Any]] | None:
    """Return the key of a call's program, and the tensors of the call; None if no program accepts them."""
    key: list[Any] = []
    tensors: list[Any] = []
    records = is_grad_enabled()
    if not _entries(args, key, tensors, records):
        return None
    if kwargs:
        key += kwargs
        if not _entries(kwargs.values(), key, tensors, records):
            return None
    if len(tensors) > 1:
        numbers = [*map(id, tensors)]
        if len(set(numbers)) < len(numbers):
            key.append(tuple(map(numbers.index, numbers)))
    return (tuple(key), tensors) if tensors else None


def is_watched() -> bool:
    """Return whether something observes each operation, or its saved tensors."""
    return (
        is_anomaly_enabled()
        or (AUTOCAST[0] and is_autocast_enabled())
        or saving.get() is not None
        or is_inference_mode_enabled()
        or (USED[0] and bool(levels.get()))
        or default().mode != "auto"
    )


def compiled_when_repeated(function: _F) -> _F:
    """Decorate a composite function without side effects, of tensors and constants, whose results own their memory.

    A compiled program computes it after ``REPEATS`` calls of one signature, or at once with
    ``use_deterministic_algorithms``. Not with GRAPHC_EAGER=reference, nor if something observes each operation (anomaly
    mode, hooks for saved tensors, forward mode, ``gc.debug``). The results equal compiled code, within the same
    error bounds.
    """
    programs: dict[Any, Any] = {}
    program_count = [0]

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if active() is not None or is_watched():
            return function(*args, **kwargs)
        call_signature = signature(args, kwargs)
        if call_signature is None:
            return function(*args, **kwargs)
        key, tensors = call_signature
        run = programs.get(key, 0)
        if run.__class__ is int:
            run = _counted(run, key, args, kwargs)
        if run is not None and (result := run(tensors)) is not None:
            return result
        return function(*args, **kwargs)

    def _counted(count: int, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if (count < REPEATS or program_count[0] >= PROGRAMS) and not are_deterministic_algorithms_enabled():
            if count == 0 and len(programs) >= SIGNATURES:
                for old in [k for k, v in programs.items() if v.__class__ is int]:
                    del programs[old]
            programs[key] = min(count + 1, REPEATS)
            return None
        program_count[0] += 1
        run = programs[key] = _program(function, args, kwargs)
        return run

    return called  # type: ignore[return-value]
