"""Observer of function calls during a trace: functions, arguments, and created nodes.

The observer does not change the trace, which equals the one of ``compile``. The nodes of a ``layer_norm`` call can then
be written as one operator. Calls without an operator are written node by node.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from types import CodeType, FrameType
from typing import Any

from graphc.base.interruptions import set_profile
from graphc.base.records import dataclass
from graphc.ir.graph.graph import Graph, Value
from graphc.ops import dispatch
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.tracer import Tracer


@dataclass
class ExportedCall:
    """One call of a function in a trace."""

    function: Callable[..., Any]
    graph: Graph
    """Graph of its nodes, which may be the body of a loop or branch."""
    arguments: dict[str, Any]
    """Arguments by parameter, defaults included. Values of the graph replace tensors, also inside of tuples and lists.
    A remaining tensor was not used."""
    first: int
    """The call created the nodes with ids from ``first`` to before ``last``."""
    last: int = 0
    results: list[Any] = field(default_factory=list)
    """Values of the returned tensors, in order."""
    used: list[bool] = field(default_factory=list)
    """Flags of the results that something reads, set by the writer of the call."""

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]


class Observer:
    """Profile function that records calls of some functions inside of traces."""

    def __init__(self, functions: Iterable[Callable[..., Any]]):
        self._functions: dict[CodeType, Callable[..., Any]] = {inspect.unwrap(f).__code__: f for f in functions}
        self._open: list[tuple[FrameType, Tracer, ExportedCall]] = []
        self._calls: list[ExportedCall] = []

    def of(self, graph: Graph) -> list[ExportedCall]:
        """Return the calls with nodes in a graph, by their first node. A call precedes those inside of it."""
        return sorted((c for c in self._calls if c.graph is graph), key=lambda c: (c.first, -c.last))

    def __call__(self, frame: FrameType, event: str, result: Any) -> None:
        if event == "call":
            function = self._functions.get(frame.f_code)
            tracer = None if function is None else dispatch.current()
            if function is not None and isinstance(tracer, Tracer):
                self._enter(frame, function, tracer)
        elif event == "return" and self._open and self._open[-1][0] is frame:
            self._leave(result)

    def _enter(self, frame: FrameType, function: Callable[..., Any], tracer: Tracer) -> None:
        code, values = frame.f_code, frame.f_locals
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        arguments = {name: _now(tracer, values[name]) for name in names}
        call = ExportedCall(function, tracer.graph, arguments, tracer.graph.next_id)
        self._calls.append(call)  # before those inside of it
        self._open.append((frame, tracer, call))

    def _leave(self, result: Any) -> None:
        _, tracer, call = self._open.pop()
        call.last = tracer.graph.next_id
        call.arguments = {name: _at_entry(tracer, value) for name, value in call.arguments.items()}
        returned = result if isinstance(result, (tuple, list)) else (result,)
        flat = [x for entry in returned for x in (entry if isinstance(entry, (tuple, list)) else (entry,))]
        call.results = [_now(tracer, x) for x in flat]


def _now(tracer: Tracer, argument: Any) -> Any:
    """Replace the tensors in an argument by their current values in the trace."""
    if isinstance(argument, (tuple, list)):
        return tuple(_now(tracer, element) for element in argument)
    if not isinstance(argument, Tensor):
        return argument
    capture = tracer.captured.get(id(argument))
    if capture is not None:
        return refresh(capture.image)._data
    here = isinstance(argument._data, Value) and argument._data.node in tracer.graph
    return refresh(argument)._data if here else argument


def _at_entry(tracer: Tracer, argument: Any) -> Any:
    """Replace tensors from outside, which the call was the first to use, by their values."""
    if isinstance(argument, tuple):
        return tuple(_at_entry(tracer, element) for element in argument)
    capture = tracer.captured.get(id(argument)) if isinstance(argument, Tensor) else None
    return argument if capture is None else capture.value


@contextmanager
def observed(functions: Iterable[Callable[..., Any]]) -> Iterator[Observer]:
    """Record calls of some functions in traces of this thread. Pauses a running profiler meanwhile."""
    observer, before = Observer(functions), sys.getprofile()
    set_profile(observer)
    try:
        yield observer
    finally:
        # NOTE: getprofile returns a non-callable object for a profiler written in C.
        set_profile(before if callable(before) else None)
