"""Ops seen one by one: a dispatcher before the eager one that tells of each op, and of its gradient rule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from graphc.base.location import capture
from graphc.eager.engine import is_running
from graphc.eager.record import OpNode
from graphc.ir.op import OpDef


class Watch(Protocol):
    """Who is told."""

    def after_op(self, done: OpDone) -> Callable[..., Any] | None:
        """After an op; what is returned is called after its gradient rule: ``(inputs, outputs, seconds)``."""
        ...


class OpDone(NamedTuple):
    """An op that was applied."""

    op: OpDef
    attrs: Mapping[str, Any]
    operands: Sequence[Any]
    results: Sequence[Any]
    seconds: float
    is_backward: bool
    """Whether a backward pass did it whose nodes are not told of."""
    file: str
    """The user's file."""
    line: int


class OpWatch:
    """A dispatcher that does what another one does, and tells of it."""

    def __init__(self, inner: Any, watch: Watch, native: bool):
        self.inner = inner
        self.mode = inner.mode if native else "reference"
        """``reference``: nothing is done natively, so that all ops are seen."""
        self._watch = watch
        self.runs_python = not native
        """Whether compiled functions run their Python code."""
        self.is_paused = False
        self._in_rule = 0
        """How many gradient rules are running one in the other."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside nothing is told of."""
        before, self.is_paused = self.is_paused, True
        try:
            yield
        finally:
            self.is_paused = before

    def apply(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Applies an op, and tells of it unless it is a part of a gradient rule that is told of as a whole."""
        running = is_running()
        if not running:
            self._in_rule = 0  # whatever an error has left
        if self.is_paused or self._in_rule:
            return self.inner.apply(op, operands, attrs)
        start = time.perf_counter()
        found = self.inner.apply(op, operands, attrs)
        seconds = time.perf_counter() - start
        results = found if found.__class__ is tuple else (found,)
        place = capture()
        with self.paused():
            done = OpDone(op, attrs, operands, results, seconds, running, place.file, place.line)
            after = self._watch.after_op(done)
        if after is not None:
            self._follow(results, op, after)
        return found

    def _follow(self, results: Sequence[Any], op: OpDef, after: Callable[..., Any]) -> None:
        """Lets the node of an op, where it has one, tell of its gradient rule."""
        node = next((t._node for t in results if isinstance(t._node, OpNode) and t._node.op is op), None)
        if node is None:
            return
        started = [0.0]

        def before_rule(gradients: Any) -> None:
            self._in_rule += 1
            started[0] = time.perf_counter()

        def after_rule(outputs: Any, inputs: Any) -> None:
            seconds = time.perf_counter() - started[0]
            self._in_rule = max(0, self._in_rule - 1)
            if self.is_paused:
                return
            with self.paused():
                after(inputs, outputs, seconds)

        node.register_prehook(before_rule)
        node.register_hook(after_rule)
