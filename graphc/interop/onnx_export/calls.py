"""Which functions are called while a trace runs, with what, and which nodes they make.

The trace is watched from beside: it is the one that ``compile`` sees, node for node. What a call of ``layer_norm`` has
made can then be written as one operator, and what is known of no such operator as the nodes that it is.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from graphc.ir.graph.graph import Graph, Value
from graphc.ops import dispatch
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.tracer import Tracer


@dataclass
class Call:
    """One call of a function in a trace."""

    function: Callable[..., Any]
    graph: Graph
    """Where its nodes are, which may be the body of a loop or branch."""
    arguments: dict[str, Any]
    """By parameter, those with defaults too: values of the graph in the place of tensors, also in tuples and lists. A
    tensor that is still one was not used."""
    first: int
    """Nodes from this id on, and before ``last``, were made by the call."""
    last: int = 0
    results: list[Any] = field(default_factory=list)
    """The values of what it returned, in order."""
    used: list[bool] = field(default_factory=list)
    """Which of the results something reads; set by who writes the call down."""

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]


class Observer:
    """A profile function that notes calls of some functions inside of traces."""

    def __init__(self, functions: Iterable[Callable[..., Any]]):
        self._functions: dict[CodeType, Callable[..., Any]] = {inspect.unwrap(f).__code__: f for f in functions}
        self._open: list[tuple[FrameType, Tracer, Call]] = []
        self._calls: list[Call] = []

    def of(self, graph: Graph) -> list[Call]:
        """The calls that made nodes of a graph, by their first node; a call stands before those inside of it."""
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
        call = Call(function, tracer.graph, arguments, tracer.graph.next_id)
        self._calls.append(call)  # before those inside of it
        self._open.append((frame, tracer, call))

    def _leave(self, result: Any) -> None:
        _, tracer, call = self._open.pop()
        call.last = tracer.graph.next_id
        call.arguments = {name: _at_entry(tracer, value) for name, value in call.arguments.items()}
        found = result if isinstance(result, (tuple, list)) else (result,)
        flat = [x for part in found for x in (part if isinstance(part, (tuple, list)) else (part,))]
        call.results = [_now(tracer, x) for x in flat]


def _now(tracer: Tracer, argument: Any) -> Any:
    """An argument with values in the place of the tensors that the trace knows by now."""
    if isinstance(argument, (tuple, list)):
        return tuple(_now(tracer, part) for part in argument)
    if not isinstance(argument, Tensor):
        return argument
    known = tracer.captured.get(id(argument))
    if known is not None:
        return refresh(known.image)._data
    here = isinstance(argument._data, Value) and argument._data.node in tracer.graph
    return refresh(argument)._data if here else argument


def _at_entry(tracer: Tracer, argument: Any) -> Any:
    """An argument with what stands for tensors from outside that the call was the first to use."""
    if isinstance(argument, tuple):
        return tuple(_at_entry(tracer, part) for part in argument)
    known = tracer.captured.get(id(argument)) if isinstance(argument, Tensor) else None
    return argument if known is None else known.value


@contextmanager
def observed(functions: Iterable[Callable[..., Any]]) -> Iterator[Observer]:
    """Notes the calls of some functions in the traces of this thread. A profiler that runs pauses meanwhile."""
    observer, before = Observer(functions), sys.getprofile()
    sys.setprofile(observer)
    try:
        yield observer
    finally:
        # NOTE: what a profiler written in C leaves there cannot be called.
        sys.setprofile(before if callable(before) else None)
