"""``profile``: record what runs in a block as a trace for Perfetto: modules, ops, compiled calls, kernels, compiles."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, Self

from graphc.base import mutation_epoch
from graphc.base.errors import ArgumentError
from graphc.base.interruptions import set_profile
from graphc.base.lazy import deferred
from graphc.base.location import is_of_package
from graphc.base.progress import MODULE, PYTHON, SHOWN, Describe, Span, timeline
from graphc.monitor import chrome_trace
from graphc.tensors.structure import shape_of
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import is_tracing

# Import the compiler and the runtime only where kernels are timed.
KernelTimer = deferred("graphc.compiler.kernel_spans:KernelTimer")
_timing = deferred("graphc.runtime.call:timing")

_LIBRARIES = {sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "purelib", "platlib")}
_HIDDEN = (*_LIBRARIES, "<frozen", "<string>", "<__array_function__")
"""Beginnings of the files whose functions are not shown. The others are for code that Python or NumPy generates."""


class _PythonCall(NamedTuple):
    """A call of a Python function that is running."""

    frame: FrameType
    kind: str
    name: str
    args: Mapping[str, Any]
    module: Any
    """The called module; None for functions."""
    begin: float


class _Thread(threading.local):
    """State of one thread."""

    def __init__(self) -> None:
        self.calls: list[_PythonCall] = []
        self.paths: dict[int, tuple[Any, str]] = {}
        """Module and path in the outermost running module, by the module's identity."""


class profile:
    """Trace of what runs in a block: modules, functions, eager ops, compiled calls, their kernels, and compiles.

    Open the file in https://ui.perfetto.dev or chrome://tracing. docs/profiling.md explains the picture.

    Args:
        path: the JSON file to write at the end of the block (default: none; see ``save`` and ``events``).
        kernels: time each kernel of compiled calls. Compiled code then runs on one thread, with a reading of the clock
            after each kernel, and is built once more for that at its first call in the block. False leaves it as it is.

    Returns:
        The session.

    Raises:
        ArgumentError: inside a function during its compilation, inside another profile, or a path without a folder.

    Example:
        >>> import graphc as gc
        >>> double = gc.compile(lambda x: x * 2)
        >>> with gc.profile() as session:
        ...     y = double(gc.ones(3))
        >>> sorted({event["cat"] for event in session.events() if event["name"] == "traced"})
        ['compile']
    """

    _running: profile | None = None

    def __init__(self, path: str | os.PathLike[str] | None = None, *, kernels: bool = True):
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise ArgumentError(
                f"profile: the path of a file is needed, got {type(path).__name__}", remedy='pass profile("trace.json")'
            )
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise ArgumentError(
                f"profile: there is no folder to write {os.fspath(path)!r} to", remedy="create the folder first"
            )
        self._path = path
        self._timer = KernelTimer() if kernels else None
        self._kinds: dict[CodeType, tuple[str, Describe] | None] = {}
        self._thread = _Thread()
        self._spans: list[Span] = []
        self._zero = 0.0
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        if is_tracing():
            raise ArgumentError(
                "profile cannot run inside a function that is being compiled", remedy="put profile around its call"
            )
        if profile._running is not None:
            raise ArgumentError("profile: another profile is running", remedy="end it first; profiles do not nest")
        self._kinds = dict(SHOWN)
        with ExitStack() as stack:
            profile._running = self
            stack.callback(_end)
            self._spans = stack.enter_context(timeline())
            if self._timer is not None:
                stack.enter_context(_timing(self._timer))
                mutation_epoch.note()  # invalidates the short ways of compiled functions, which call natively
                stack.callback(mutation_epoch.note)
            stack.callback(threading.setprofile, threading.getprofile())
            threading.setprofile(self._watch)
            stack.callback(set_profile, sys.getprofile())
            self._exit = stack.pop_all()
        self._zero = time.perf_counter()
        set_profile(self._watch)
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()
        if self._timer is not None:
            self._spans += self._timer.spans()
            self._timer = KernelTimer()
        if self._path is not None:
            self.save(self._path)

    def call(self, stages: Any, inputs: Sequence[Any], weights: Mapping[str, Any], count: int) -> None:
        """Build the program of a compilation, and call it ``count`` times on arrays of its inputs and its weights by
        path, inside the block."""
        if self._timer is not None:
            _ = stages.object  # the last stage
            self._timer.rounds(stages, inputs, weights, count)

    def events(self) -> list[dict[str, Any]]:
        """Return the events of the last block in Chrome's trace format, by time of their begin."""
        process = os.getpid()
        threads = {t.native_id: t.name for t in threading.enumerate()}
        spans = sorted(self._spans, key=lambda s: (s.begin, -s.end))
        names = [chrome_trace.named("process_name", process, 0, f"graphc: {Path(sys.argv[0] or 'python').name}")]
        for thread in dict.fromkeys(s.thread for s in spans):
            name = threads.get(thread, f"thread {thread}")
            names.append(chrome_trace.named("thread_name", process, thread, name))
        return [*names, *(chrome_trace.span_event(s, process, self._zero) for s in spans)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace of the last block as JSON."""
        Path(path).write_text(json.dumps(chrome_trace.trace(self.events())), encoding="utf-8")

    # ---- calls of Python functions

    def _watch(self, frame: FrameType, event: str, _: Any) -> None:
        """Take an event of ``sys.setprofile``."""
        if event == "call":
            code = frame.f_code
            try:
                kind = self._kinds[code]
            except KeyError:
                kind = self._kinds[code] = _function(code)
            if kind is not None:
                self._begin(frame, *kind)
        elif event == "return" and self._kinds.get(frame.f_code) is not None:
            self._end(frame)

    def _begin(self, frame: FrameType, kind: str, describe: Describe) -> None:
        calls, local = self._thread.calls, frame.f_locals
        module = local["self"] if kind == MODULE else None
        name = describe(local) if module is None else self._module_name(module)
        kind = PYTHON if kind == MODULE else kind
        calls.append(_PythonCall(frame, kind, name, _sizes(local), module, time.perf_counter()))

    def _end(self, frame: FrameType) -> None:
        end, calls = time.perf_counter(), self._thread.calls
        if not any(call.frame is frame for call in calls):
            return  # it began before the block
        while calls:
            call = calls.pop()
            span = Span(call.kind, call.name, call.begin, end, 0, threading.get_native_id(), call.args)
            self._spans.append(span)
            if call.frame is frame:
                return

    def _module_name(self, module: Any) -> str:
        """Return the path of a module in the outermost running one, and its class."""
        running = [call.module for call in self._thread.calls if call.module is not None]
        if not running or id(module) not in self._thread.paths:
            root = running[0] if running else module
            self._thread.paths = {id(m): (m, name) for name, m in root.named_modules()}
        path = self._thread.paths.get(id(module), (module, ""))[1]
        return f"{path} ({type(module).__name__})" if path else type(module).__name__


def _end() -> None:
    profile._running = None


def _function(code: CodeType) -> tuple[str, Describe] | None:
    """Return how calls of a function are shown: those of the user's code are, comprehensions and libraries are not."""
    file = code.co_filename
    hidden = code.co_name.startswith("<") and code.co_name != "<lambda>"
    if hidden or is_of_package(file) or file.startswith(_HIDDEN):
        return None
    name = f"{Path(file).name}({code.co_firstlineno}): {code.co_qualname}"
    return PYTHON, lambda call: name


def _sizes(local: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shapes and types of the tensors among the arguments of a call, by torch.profiler's names."""
    values = [local.get("operands"), local.get("args"), *(v for v in local.values() if isinstance(v, Tensor))]
    tensors = [t for v in values for t in (v if isinstance(v, (tuple, list)) else (v,)) if isinstance(t, Tensor)]
    if not tensors:
        return {}
    dims = [[n if isinstance(n, int) else str(n) for n in shape_of(t)] for t in tensors]
    return {"Input Dims": dims, "Input type": [str(t.dtype) for t in tensors]}
