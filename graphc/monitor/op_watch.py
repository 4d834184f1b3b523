"""Dispatcher in front of the eager one that reports each op, and its gradient rule, to a watch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from graphc.autograd.engine import is_running
from graphc.autograd.record import OpNode
from graphc.base.location import capture
from graphc.ir.op import OpDef


class Watch(Protocol):
    """Receiver of the ops."""

    def after_op(self, done: OpDone) -> Callable[..., Any] | None:
        """Take an op. The returned function is called after its gradient rule with ``(inputs, outputs, seconds)``."""
        ...


class OpDone(NamedTuple):
    """Applied op, or draw of random numbers, with its operands and results."""

    name: str
    attrs: Mapping[str, Any]
    operands: Sequence[Any]
    results: Sequence[Any]
    seconds: float
    is_backward: bool
    """Whether it ran in a backward pass whose nodes are not reported."""
    file: str
    """File of the user's code that applied the op."""
    line: int


class OpWatch:
    """Dispatcher that forwards to another one and reports each op."""

    def __init__(self, inner: Any, watch: Watch, native: bool):
        self.inner = inner
        self.mode = inner.mode if native else "reference"
        """``reference`` disables native code, so that every op is reported."""
        self._watch = watch
        self.runs_python = not native
        """Whether compiled functions run their Python code."""
        self.is_paused = False
        self._in_rule = 0
        """Nesting depth of the gradient rules that are running."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Report nothing inside the block."""
        before, self.is_paused = self.is_paused, True
        try:
            yield
        finally:
            self.is_paused = before

    def apply(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Apply an op, and report it unless it belongs to a gradient rule, which is reported as a whole."""
        running = is_running()
        if not running:
            self._in_rule = 0  # an error in a rule leaves the depth above 0
        if self.is_paused or self._in_rule:
            return self.inner.apply(op, operands, attrs)
        start = time.perf_counter()
        result = self.inner.apply(op, operands, attrs)
        seconds = time.perf_counter() - start
        results = result if result.__class__ is tuple else (result,)
        after = self._report(op.name, attrs, operands, results, seconds)
        if after is not None:
            self._hook_gradient(results, op, after)
        return result

    def as_one(self, name: str, run: Callable[[], Any]) -> Any:
        """Return the result of ``run``, and report its ops as a single one without operands or gradient."""
        if self.is_paused or self._in_rule:
            return run()
        start = time.perf_counter()
        with self.paused():
            result = run()
        self._report(name, {}, (), (result,), time.perf_counter() - start)
        return result

    def _report(
        self, name: str, attrs: Mapping[str, Any], operands: Sequence[Any], results: Sequence[Any], seconds: float
    ) -> Callable[..., Any] | None:
        location = capture()
        with self.paused():
            return self._watch.after_op(
                OpDone(name, attrs, operands, results, seconds, is_running(), location.file, location.line)
            )

    def _hook_gradient(self, results: Sequence[Any], op: OpDef, after: Callable[..., Any]) -> None:
        """Hook the gradient rule of an op's tape node, if it has one."""
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
