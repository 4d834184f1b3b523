"""``debug``: log modules and ops, eager or compiled, and stop at the first NaN or at a named module."""

from __future__ import annotations

import difflib
import fnmatch
import functools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from graphc.base import module_path, mutation_epoch
from graphc.base.errors import ArgumentError, NonFiniteError
from graphc.ir.op import REGISTRY
from graphc.monitor.call_log import CALL, GRADIENT, MODULE, NOTE, OP, CallLog, Filter, LogEntry, matches
from graphc.monitor.op_watch import OpDone, OpWatch
from graphc.monitor.outermost_call import OutermostCall, StepCall
from graphc.monitor.recording import Recorder
from graphc.monitor.stops import NAN, Stop, Stops
from graphc.nn.compiled_hooks import observer
from graphc.nn.module import Module
from graphc.nn.module_hooks import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
)
from graphc.ops import dispatch
from graphc.tensors.array_report import ArrayReport, report_of
from graphc.tensors.placement import on_host
from graphc.tensors.structure import flatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.trace import graph_name, is_tracing

_COMPILED = (
    "compiled code: its modules are logged, the ops inside its kernels are not (debug(eager=True) runs its Python "
    "code; first_nan=True and graphc.compare look into the code itself)"
)


class _Running(NamedTuple):
    """Module whose call is in progress."""

    module: Any
    event: LogEntry
    start: float
    spent: float
    """Seconds spent on logging before the call."""


class debug:
    """Log of every module and op that runs in a block, forward and backward.

    ``with graphc.debug():`` prints each call on stderr as it happens. As a decorator, each call of the function is a
    session. Iterate over the session, or call ``text()`` or ``to_dict()``, to read it. docs/debugging.md explains the
    lines, and what is logged in compiled code.

    Args:
        model: log only modules inside ``model``, with their paths in it (default: paths in the outermost module).
        ops: log ops too.
        backward: also log gradients at modules.
        modules: patterns of module paths or classes to log.
        names: patterns of op names to log.
        stop: ``"nan"`` raises NonFiniteError at the first op, module or gradient that makes a NaN, or an infinity from
            finite numbers. Other values are patterns of module paths or classes; a matching call raises StoppedError.
        on_stop: function called with a ``Stop`` instead of raising: ``stop.inputs``, ``stop.outputs``, ``stop.module``,
            ``stop.event``. ``breakpoint`` opens the debugger.
        eager: run the Python code of compiled functions, so that their ops are logged.
        stream: a text file, or True for stderr, to print to; False prints nothing (default: True without ``stop``,
            ``log`` and ``record``).
        log: a file to write as lines of JSON.
        limit: number of events to keep; the last ones are kept.
        record: a file for a recording of the first call in the block, which ``graphc.replay`` runs again, bit for bit,
            in another process. With ``stop`` it is written only after a stop or an error.
        stop_at_nan: the same as ``stop="nan"``.
        stop_at: the same as patterns in ``stop``.

    Returns:
        The session.

    Raises:
        ArgumentError: inside a function during its compilation; for arguments of the wrong kind; for patterns that
            match nothing in ``model``; for values that cannot be recorded.

    Example:
        >>> import graphc as gc
        >>> with gc.debug(stop="nan"):
        ...     y = gc.tensor([-1.0, 1.0]).sqrt()
        Traceback (most recent call last):
            ...
        graphc.errors.NonFiniteError: the first number that is not finite is made by sqrt, forward: f32[2] 1..1 1 NaN...
    """

    def __init__(
        self,
        model: Module | None = None,
        *,
        ops: bool = True,
        backward: bool = False,
        modules: str | Sequence[str] = (),
        names: str | Sequence[str] = (),
        stop: str | Sequence[str] = (),
        on_stop: Callable[[Stop], Any] | None = None,
        eager: bool = False,
        stream: Any = None,
        log: str | os.PathLike[str] | None = None,
        limit: int = 100_000,
        record: str | os.PathLike[str] | None = None,
        stop_at_nan: bool = False,
        stop_at: str | Sequence[str] = (),
    ):
        stops = (*_several(stop, "stop"), *([NAN] if stop_at_nan else []), *_several(stop_at, "stop_at"))
        model = getattr(model, "_target", model)
        _check_model(model)
        _check_files(stream, log, record)
        if not isinstance(limit, int) or limit < 0:
            raise ArgumentError(f"debug: limit must be a number of events of at least 0, got {limit!r}")
        if on_stop is not None and not (callable(on_stop) and stops):
            problem = "on_stop needs stop=" if callable(on_stop) else f"on_stop must be a function, got {on_stop!r}"
            raise ArgumentError(f"debug: {problem}", remedy='pass stop="nan" or stop="a.path" with on_stop=breakpoint')
        self._model = model
        self._paths = {} if model is None else {id(m): name for name, m in model.named_modules()}
        self._ops, self._backward, self._eager = ops, backward, eager
        self._stops = Stops(stops, on_stop)
        self._filter = Filter(_several(modules, "modules"), _several(names, "names"))
        self._check_patterns(self._stops.modules, "to stop at")
        self._check_patterns(self._filter.modules, "to log")
        for pattern in self._filter.ops:
            if not fnmatch.filter(REGISTRY, pattern):
                near = difflib.get_close_matches(pattern, REGISTRY, 3)
                remedy = (
                    f"write {' or '.join(near)}, or a pattern" if near else "choose a name in docs/ops.md, or a pattern"
                )
                raise ArgumentError(f"debug: there is no op {pattern!r} to log", remedy=remedy)
        self._limit, self._file = limit, log
        self._stream = stream if stream is not None else not (stops or log or record)
        self._record = record
        self._recorder = None if record is None else Recorder(stops)
        self._outermost_call: OutermostCall | None = None
        self._log = CallLog(limit, self._filter, None, None)
        self._exit: ExitStack | None = None
        self._is_decorator = False
        self._name = ""
        """Name of the recorded call; empty for the name of the function."""
        self._watch: OpWatch | None = None
        self._running: list[_Running] = []
        self._called: dict[int, tuple[Any, str]] = {}
        """Modules that were called, and their paths, by identity."""
        self._unseen: dict[int, Any] = {}
        """Modules whose calls cannot be observed, by identity."""
        self._spent = 0.0
        self._noted = False

    def _check_patterns(self, patterns: Sequence[str], purpose: str) -> None:
        """Raise ArgumentError for a pattern that matches no module of the model."""
        if self._model is None:
            return
        named = [(path, type(m).__name__) for path, m in self._model.named_modules()]
        for pattern in patterns:
            if not any(matches((pattern,), *names) for names in named):
                raise ArgumentError(
                    f"debug: there is no module {pattern!r} {purpose}",
                    remedy="write a path of named_modules(), a class, or a pattern of these",
                )

    def __enter__(self) -> Self:
        if is_tracing():
            raise ArgumentError(
                "debug cannot run inside a function that is being compiled", remedy="put debug around its call"
            )
        if self._exit is not None:
            raise ArgumentError("debug: this session is running already", remedy="start another gc.debug(...)")
        stream = sys.stderr if self._stream is True else self._stream
        write = (lambda line: print(line, file=stream)) if stream else None
        with ExitStack() as stack:
            file = stack.enter_context(open(self._file, "w", encoding="utf-8")) if self._file is not None else None
            self._log = CallLog(self._limit, self._filter, write, file)
            stack.callback(self._log.flush)
            self._hook(stack)
            if self._eager:
                # A new epoch invalidates the fast paths of compiled functions.
                mutation_epoch.note()
                dispatch.AS_PYTHON[0] += 1
                stack.callback(_no_longer_as_python)
            if self._ops or self._eager or self._recorder is not None:
                watch = OpWatch(dispatch.current(), self, native=not self._eager)
                self._watch = stack.enter_context(dispatch.use(watch))  # type: ignore[assignment]
            self._exit = stack.pop_all()
        self._running, self._spent, self._noted = [], 0.0, False
        if self._recorder is not None and not self._is_decorator:
            self._outermost_call = OutermostCall(sys._getframe(1), self._begin_call, self._recorder.end)
            self._outermost_call.start()
        return self

    def _hook(self, stack: ExitStack) -> None:
        if self._recorder is not None:
            return  # hooks would change the kernels of compiled code, and with them the bits of results
        handles = [
            register_module_forward_pre_hook(self._observer(self._begin)),
            register_module_forward_hook(self._observer(self._end)),
        ]
        if self._backward:
            handles.append(register_module_full_backward_hook(self._observer(self._gradients)))
        for handle in handles:
            stack.callback(handle.remove)

    def _observer(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def unseen(module: Any) -> None:
            if id(module) not in self._unseen and self._is_logged(module):
                self._unseen[id(module)] = module
                name = f"{self._path(module) or 'a module'} ({type(module).__name__})"
                self._log.add(_note(f"{name} is not logged: compiled code calls it in a loop or a branch", 0))

        return observer(lambda *args: method(*args), unseen)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._exit = self._exit, None
        if stack is None:
            return
        if self._outermost_call is not None:
            self._outermost_call.stop()
        stack.close()
        self._watch = None
        if self._recorder is not None:
            self._write(self._recorder, error)
        if kind is None:
            self._stops.at_end()
            for pattern in set(self._stops.modules) - self._stops.met:
                warnings.warn(f"debug: no module {pattern!r} was called to stop at", stacklevel=2)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function so that each call is a session."""

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            self._is_decorator = True
            try:
                with self:
                    recorder = self._recorder
                    if recorder is None:
                        return function(*args, **kwargs)
                    name = self._name or graph_name(function)
                    self._begin_call(StepCall(name, args, kwargs, [(name, function)]))
                    result = function(*args, **kwargs)
                    recorder.end(result)
                    return result
            finally:
                self._is_decorator = False

        return called

    # ---- recording

    def _begin_call(self, call: StepCall) -> bool:
        assert self._recorder is not None
        with self._paused():
            return self._recorder.begin(call.name, call.args, call.kwargs, call.refers)

    def following(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Decorate a function so that its calls are observed as in a recording, without writing a file."""
        self._recorder, self._name = Recorder(self._stops.patterns), name
        return self(function)

    @property
    def ops_seen(self) -> list[Any]:
        """Return the ops of the recording."""
        return [] if self._recorder is None else self._recorder.ops

    def _write(self, recorder: Recorder, error: BaseException | None) -> None:
        """Write the recording (with ``stop`` only after a stop or error). Raises NonFiniteError for a bad result."""
        if error is not None:
            recorder.fail(error)
        nonfinite = self._nonfinite_error(recorder) if error is None and self._stops.wants_finite else None
        if nonfinite is not None:
            recorder.fail(nonfinite)
        ended = error is not None or nonfinite is not None
        if self._record is not None and (recorder.has_begun if ended else not self._stops.is_any):
            size = recorder.write(self._record)
            print(f"debug: recorded {recorder.name} in {os.fspath(self._record)}, {size:,} bytes", file=sys.stderr)
        if nonfinite is not None:
            raise nonfinite

    def _nonfinite_error(self, recorder: Recorder) -> NonFiniteError | None:
        value = recorder.first_nonfinite()
        if not value:
            return None
        call = f"graphc.replay({os.fspath(self._record or 'step.gcr')!r}, function, eager=True)"
        return NonFiniteError(
            f"{recorder.name}: {value} is not finite after the call", remedy=f"run {call} to find the op"
        )

    # ---- the log

    @property
    def events(self) -> list[LogEntry]:
        """Return the last ``limit`` events in order: modules (when they end), ops and gradients."""
        return list(self._log)

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(self._log)

    def __str__(self) -> str:
        return self.text(100)

    def text(self, last: int | None = None) -> str:
        """Format the log, or its last ``last`` events, as text."""
        return self._log.text(last)

    def to_dict(self) -> dict[str, Any]:
        """Return the log as numbers and strings, for JSON."""
        return {"count": self._log.count, "events": [e.to_dict() for e in self._log.entries]}

    # ---- modules

    def _path(self, module: Any) -> str:
        """Return the path of a module in the model, or in the outermost running module."""
        if self._model is not None and id(module) in self._paths:
            return self._paths[id(module)]
        scope = module_path.scope()
        if scope is not None and module in scope.stack:
            return scope.path(scope.stack.index(module))
        if not self._running:
            return ""
        root = self._running[0].module
        paths = {id(m): name for name, m in root.named_modules()}
        caller = self._running[-1].event.path
        return paths.get(id(module), f"{caller}.{type(module).__name__}" if caller else type(module).__name__)

    def _is_logged(self, module: Any) -> bool:
        return self._model is None or id(module) in self._paths

    def _begin(self, module: Any, args: Any) -> None:
        now = time.perf_counter()
        if not self._is_logged(module):
            return
        scope = module_path.scope()
        is_eager = scope is not None and bool(scope.stack) and scope.stack[-1] is module
        self._unwind(module, scope.stack if is_eager and scope is not None else None)
        if not is_eager and self._ops and not self._noted:
            self._noted = True
            self._log.add(_note(_COMPILED, len(self._running)))
        tensors = _tensors(args)
        event = LogEntry(
            CALL, "forward", self._path(module), type(module).__name__, "", "", self._reports(tensors), (), 0.0,
            len(self._running),
        )  # fmt: skip
        self._called[id(module)] = module, event.path
        self._log.add(event)
        self._running.append(_Running(module, event, time.perf_counter(), self._spent + time.perf_counter() - now))
        self._spent += time.perf_counter() - now
        patterns = [p for p in self._stops.modules if matches((p,), event.path, event.module)]
        if patterns:
            self._stops.met.update(patterns)
            with self._paused():
                self._stops.at_module(event, module, tensors)

    def _unwind(self, module: Any, stack: Sequence[Any] | None) -> None:
        """Drop modules whose call an error has ended."""
        running = self._running
        if stack is not None:
            running = [r for r in self._running if any(r.module is m for m in stack[:-1])]
        else:
            depth = next((i for i, r in enumerate(self._running) if r.module is module), len(self._running))
            running = self._running[:depth]
        self._running = running

    def _end(self, module: Any, args: Any, output: Any) -> None:
        now = time.perf_counter()
        depth = next((i for i in reversed(range(len(self._running))) if self._running[i].module is module), None)
        if depth is None:
            return
        call, self._running = self._running[depth], self._running[:depth]
        outputs = _tensors(output)
        seconds = max(0.0, now - call.start - (self._spent - call.spent))
        event = call.event._replace(kind=MODULE, outputs=self._reports(outputs), seconds=seconds)
        self._log.add(event)
        self._spent += time.perf_counter() - now
        if self._stops.wants_finite:
            with self._paused():
                self._stops.after_module(event, module, _tensors(args), outputs)

    def _gradients(self, module: Any, grad_input: Any, grad_output: Any) -> None:
        if not self._is_logged(module):
            return
        inputs, outputs = _tensors(grad_output), _tensors(grad_input)
        name = type(module).__name__
        path = self._called.get(id(module), (module, ""))[1]
        event = LogEntry(MODULE, "backward", path, name, "", "", self._reports(inputs), self._reports(outputs), 0.0)
        self._log.add(event)
        if self._stops.wants_finite:
            with self._paused():
                self._stops.after_module(event, module, inputs, outputs)

    # ---- ops

    def after_op(self, done: OpDone) -> Callable[..., Any] | None:
        """Log an op, and return the function that logs its gradient."""
        now = time.perf_counter()
        scope = module_path.scope()
        module = scope.stack[-1] if scope is not None and scope.stack else None
        if module is not None and not self._is_logged(module):
            return None
        if self._recorder is not None:
            self._enter_modules(scope.stack if scope is not None else ())
        phase = "backward" if done.is_backward else "forward"
        event = LogEntry(
            OP, phase, self._path(module) if module is not None else "", type(module).__name__ if module else "",
            done.name, f"{done.file}:{done.line}" if done.file else "", self._reports(done.operands),
            self._reports(done.results), done.seconds, len(self._running),
        )  # fmt: skip
        if self._recorder is not None:
            self._recorder.add(event, done.results)
        if self._ops:
            self._log.add(event)
        self._spent += time.perf_counter() - now
        if self._stops.wants_finite and not done.is_backward:
            self._stops.after_op(event, done.operands, done.results, done.attrs)
        return functools.partial(self._after_gradient, event)

    def _enter_modules(self, stack: Sequence[Any]) -> None:
        """Log headings of the modules around an op, for recordings, which have no hooks."""
        same = 0
        while same < min(len(stack), len(self._running)) and self._running[same].module is stack[same]:
            same += 1
        self._running = self._running[:same]
        for module in stack[same:]:
            name, depth = type(module).__name__, len(self._running)
            event = LogEntry(CALL, "forward", self._path(module), name, "", "", (), (), 0.0, depth)
            self._log.add(event)
            self._running.append(_Running(module, event, 0.0, 0.0))
            patterns = [p for p in self._stops.modules if matches((p,), event.path, event.module)]
            if patterns:
                self._stops.met.update(patterns)
                self._stops.at_module(event, module, ())

    def _after_gradient(self, forward: LogEntry, inputs: Any, outputs: Any, seconds: float) -> None:
        if self._exit is None:
            return
        input_tensors, output_tensors = _tensors(inputs), _tensors(outputs)
        event = forward._replace(
            kind=GRADIENT, phase="backward", inputs=self._reports(input_tensors), outputs=self._reports(output_tensors),
            seconds=seconds, depth=0,
        )  # fmt: skip
        if self._recorder is not None:
            self._recorder.add(event, output_tensors)
        if self._ops:
            self._log.add(event)
        if self._stops.wants_finite:
            self._stops.after_gradient(event, forward, input_tensors, output_tensors)

    def _reports(self, tensors: Sequence[Tensor]) -> tuple[ArrayReport, ...]:
        with self._paused():
            return tuple([report_of(on_host(refresh(t)._data)) for t in tensors])

    def _paused(self) -> Any:
        """Return a context in which ops of this session itself are not logged."""
        return nullcontext() if self._watch is None else self._watch.paused()


def _check_model(model: Any) -> None:
    if model is None or isinstance(model, Module):
        return
    name = model.__name__ if isinstance(model, type) else type(model).__name__
    inner = isinstance(getattr(model, "model", None), Module)
    raise ArgumentError(
        f"debug: the model must be a Module, or a compiled one, got {'the class ' * isinstance(model, type)}{name}",
        remedy="pass its model: debug(step.model)" if inner else "call debug() without a model",
    )


def _check_files(stream: Any, *files: str | os.PathLike[str] | None) -> None:
    """Raise ArgumentError before anything runs if the stream or a file cannot be written to."""
    if stream is not None and not isinstance(stream, bool) and not callable(getattr(stream, "write", None)):
        raise ArgumentError(
            f"debug: stream must be a file, True or False, got {stream!r}", remedy="pass stream=sys.stdout"
        )
    for file in files:
        if file is None:
            continue
        if not isinstance(file, (str, os.PathLike)):
            raise ArgumentError(f"debug: log and record must be paths of files, got {file!r}")
        if not Path(file).absolute().parent.is_dir():
            raise ArgumentError(f"debug: there is no folder to write {os.fspath(file)!r} to")


def _no_longer_as_python() -> None:
    dispatch.AS_PYTHON[0] -= 1


def _several(value: str | Sequence[str], argument: str) -> tuple[str, ...]:
    patterns = (value,) if isinstance(value, str) else value
    if not isinstance(patterns, Sequence) or not all(isinstance(p, str) for p in patterns):
        remedy = '"nan", a pattern of modules, or several' if argument == "stop" else "a pattern, or a list of patterns"
        raise ArgumentError(f"debug: {argument} must be patterns, got {value!r}", remedy=f"pass {argument}={remedy}")
    return tuple(patterns)


def _note(text: str, depth: int) -> LogEntry:
    return LogEntry(NOTE, "forward", "", "", text, "", (), (), 0.0, depth)


def _tensors(value: Any) -> list[Tensor]:
    return [t for t in flatten(value)[0] if isinstance(t, Tensor)]
