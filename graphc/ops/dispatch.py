"""Dispatch: every op application goes through ``apply``, and the current dispatcher decides what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from graphc.base.dtypes import DType, dtype_of, number_of
from graphc.base.lazy import deferred
from graphc.base.location import UNKNOWN, Location
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Value
from graphc.ir.op import OpDef


class Operand(Protocol):
    """An operand of an op: a Tensor (eager or traced) or a graph Value."""

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


class Dispatcher(Protocol):
    """Strategy for applying ops: compute now, append a node, or both with recording for gradients."""

    def apply(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Return the result, or a tuple of results for ops with several."""
        ...

    def scalar(self, value: bool | int | float, dtype: DType) -> Any:
        """Return a scalar constant as an operand."""
        ...

    def constant(self, array: np.ndarray) -> Any:
        """Return an array, which no other code writes to, as an operand."""
        ...


_default: list[Dispatcher] = []
_eager = deferred("graphc.eager.dispatcher:eager")
_current: ContextVar[Dispatcher | None] = ContextVar("graphc_dispatcher", default=None)


def set_default(dispatcher: Dispatcher) -> None:
    """Install the dispatcher used when none is active (the eager one, by the front end)."""
    _default[:] = [dispatcher]


def default() -> Any:
    """Return the dispatcher used when none is active. Its results outlive a trace."""
    return _default[0] if _default else _eager()


active: Callable[[], Dispatcher | None] = _current.get
"""Return the active dispatcher, or None if only the default one is."""


def is_default() -> bool:
    """Check whether no dispatcher but the default one is active."""
    return _current.get() is None


def current() -> Dispatcher:
    """Return the active dispatcher, or the default one."""
    return _current.get() or (_default[0] if _default else _eager())


AS_PYTHON = [0]
"""Number of sessions, in all threads, in which compiled functions run their Python code instead."""


def runs_python() -> bool:
    """Check whether the active dispatcher wants compiled functions to apply their ops one by one."""
    return AS_PYTHON[0] > 0 and bool(getattr(_current.get(), "runs_python", False))


class use:
    """Context in which ``dispatcher`` is the active one (per thread and task)."""

    __slots__ = ("_dispatcher", "_token")

    def __init__(self, dispatcher: Dispatcher):
        self._dispatcher = dispatcher

    def __enter__(self) -> Dispatcher:
        self._token = _current.set(self._dispatcher)
        return self._dispatcher

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


def is_front() -> bool:
    """Check whether ops are applied to tensors, eagerly or in a trace, and not to the values of a graph."""
    return not isinstance(_current.get(), GraphDispatcher)


def apply(op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Apply ``op`` under the active dispatcher."""
    return current().apply(op, operands, attrs)


class GraphDispatcher:
    """Dispatcher that appends nodes to a graph, whose values are the operands. Gradient rules and decompositions run
    under it."""

    def __init__(self, graph: Graph, location: Location = UNKNOWN, prefix: str = ""):
        self.graph = graph
        self.location = location
        """Location of every appended node."""
        self.prefix = prefix
        """Prefix of the names of results."""

    def apply(self, op: OpDef, operands: Sequence[Value], attrs: Mapping[str, Any]) -> Value | tuple[Value, ...]:
        """Append a node."""
        results = emit(self.graph, op, operands, attrs, self.location, self.prefix + op.name)
        return results[0] if len(results) == 1 else results

    def scalar(self, value: bool | int | float, dtype: DType) -> Value:
        """Return an interned scalar constant."""
        return self.graph.scalar(value, dtype)

    def constant(self, array: np.ndarray) -> Value:
        """Append a constant node; scalars are interned."""
        if not array.shape:
            return self.scalar(number_of(array), dtype_of(array.dtype))
        return emit(self.graph, CONSTANT, (), {"value": array}, self.location, self.prefix + CONSTANT.name)[0]
