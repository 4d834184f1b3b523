"""``debug``: a log of modules and ops, eager or compiled, that stops at the first NaN or at a named module."""

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
from graphc.base.array_report import ArrayReport, report_of
from graphc.base.errors import ArgumentError, NonFiniteError
from graphc.ir.op import REGISTRY
from graphc.monitor.call_log import CALL, GRADIENT, MODULE, NOTE, OP, CallLog, Event, Filter, matches
from graphc.monitor.op_watch import OpDone, OpWatch
from graphc.monitor.outermost_call import Begun, OutermostCall
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
from graphc.tensors.placement import on_host
from graphc.tensors.structure import flatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.trace import graph_name, is_tracing

_COMPILED = (
    "compiled code: its modules are seen, the ops inside of its kernels are not (debug(eager=True) runs its Python "
    "code; first_nan=True and graphc.compare look into the code itself)"
)


class _Running(NamedTuple):
    """A module whose call has begun."""

    module: Any
    event: Event
    start: float
    spent: float
    """What logging had taken until then."""


class debug:
    """Writes down what happens while the block runs: every module and op, forward and backward.

    ``with graphc.debug():`` prints each call on stderr as it happens: modules as headings (path, class, inputs,
    outputs), below them ops, with shapes, element types, ranges, counts of NaN and infinities, time in microseconds,
    and the user's line; in the backward pass gradients of ops, with module and line of the op in the forward pass.
    ``with graphc.debug(model, stream=False) as log:`` keeps them: iterate over ``log``, ``log.text()``,
    ``log.to_dict()``. Paths are those in ``model``, or in the outermost module that is called.

    ``ops=False``: modules only; ``backward=True``: gradients at modules, too. ``modules`` and ``names`` are patterns
    (or several) of paths or classes of modules, and of names of ops: only what fits is logged. ``stream``: a file or
    True, to print; as a default it is True where neither ``stop``, ``log`` nor ``record`` is given. ``log``: a file of
    JSON lines. ``limit``: how many events are kept; the last ones are.

    ``stop="nan"`` raises NonFiniteError at the first op, module or gradient that makes a NaN, or an infinity of finite
    numbers, with the ranges of what went in. Any other ``stop`` is a pattern of paths or classes of modules, at whose
    call StoppedError is raised; several may be given. ``on_stop`` is called with a ``Stop`` instead, which has the
    tensors (``stop.inputs``, ``stop.outputs``, ``stop.module``, ``stop.event``); ``on_stop=breakpoint`` opens the
    debugger. ``stop_at_nan=True`` is another form of ``stop="nan"``, ``stop_at`` one of patterns of modules.

    In compiled code modules are seen by hooks, so its kernels are not fused across modules and the first call of each
    signature is compiled once more; ops are not seen. With ``eager=True`` compiled functions run their Python code
    while the block runs. What other threads do is not seen.

    ``record="step.gcr"`` writes what is needed to run a step again, bit for bit, in another process: the first call of
    a function, module or compiled step in the block (or, as a decorator, of the function), its arguments, and contents
    of the modules, optimizers, generators and tensors that it refers to, before and after; ``graphc.replay`` reads it.
    With ``stop`` it is written only where that was met or an error raised. No hooks are set then, so that compiled code
    runs as ever. Raises ArgumentError for arguments that a file cannot hold.

    Raises ArgumentError inside of a trace.
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
        _check_places(stream, log, record)
        if not isinstance(limit, int) or limit < 0:
            raise ArgumentError(f"debug: limit must be a number of events from 0 on, got {limit!r}")
        if on_stop is not None and not (callable(on_stop) and stops):
            shown = "there is nothing to stop at" if callable(on_stop) else f"on_stop is no function: {on_stop!r}"
            raise ArgumentError(f"debug: {shown}", remedy='stop="nan" or stop="a.path", with on_stop=breakpoint')
        self._model = model
        self._paths = {} if model is None else {id(m): name for name, m in model.named_modules()}
        self._ops, self._backward, self._eager = ops, backward, eager
        self._stops = Stops(stops, on_stop)
        self._wanted = Filter(_several(modules, "modules"), _several(names, "names"))
        self._check_patterns(self._stops.modules, "to stop at")
        self._check_patterns(self._wanted.modules, "to log")
        for pattern in self._wanted.ops:
            if not fnmatch.filter(REGISTRY, pattern):
                near = difflib.get_close_matches(pattern, REGISTRY, 3)
                remedy = f"{' or '.join(near)}, or a pattern" if near else "names of docs/ops.md, or a pattern"
                raise ArgumentError(f"debug: there is no op {pattern!r} to log", remedy=remedy)
        self._limit, self._file = limit, log
        self._stream = stream if stream is not None else not (stops or log or record)
        self._record = record
        self._recorder = None if record is None else Recorder(stops)
        self._tap: OutermostCall | None = None
        self._log = CallLog(limit, self._wanted, None, None)
        self._exit: ExitStack | None = None
        self._is_decorator = False
        self._name = ""
        """Of the call that is recorded, where it is not that of the function."""
        self._watch: OpWatch | None = None
        self._running: list[_Running] = []
        self._known: dict[int, tuple[Any, str]] = {}
        """By identity modules that were called, and their paths."""
        self._unseen: dict[int, Any] = {}
        """By identity modules whose calls nobody sees."""
        self._spent = 0.0
        self._noted = False

    def _check_patterns(self, patterns: Sequence[str], purpose: str) -> None:
        """Raises ArgumentError where no module of the model fits a pattern."""
        if self._model is None:
            return
        named = [(path, type(m).__name__) for path, m in self._model.named_modules()]
        for pattern in patterns:
            if not any(matches((pattern,), *names) for names in named):
                raise ArgumentError(
                    f"debug: there is no module {pattern!r} {purpose}",
                    remedy="a path of named_modules(), a class, or a pattern of these",
                )

    def __enter__(self) -> Self:
        if is_tracing():
            raise ArgumentError("debug inside of a function that is compiled", remedy="debug around its call")
        if self._exit is not None:
            raise ArgumentError("debug: this session is running already", remedy="another gc.debug(...)")
        stream = sys.stderr if self._stream is True else self._stream
        write = (lambda line: print(line, file=stream)) if stream else None
        with ExitStack() as stack:
            file = stack.enter_context(open(self._file, "w", encoding="utf-8")) if self._file is not None else None
            self._log = CallLog(self._limit, self._wanted, write, file)
            stack.callback(self._log.flush)
            self._hook(stack)
            if self._eager:
                # Shortcuts of compiled functions end with the epoch.
                mutation_epoch.note()
                dispatch.AS_PYTHON[0] += 1
                stack.callback(_no_longer_as_python)
            if self._ops or self._eager or self._recorder is not None:
                watch = OpWatch(dispatch.current(), self, native=not self._eager)
                self._watch = stack.enter_context(dispatch.use(watch))  # type: ignore[assignment]
            self._exit = stack.pop_all()
        self._running, self._spent, self._noted = [], 0.0, False
        if self._recorder is not None and not self._is_decorator:
            self._tap = OutermostCall(sys._getframe(1), self._begin_call, self._recorder.end)
            self._tap.start()
        return self

    def _hook(self, stack: ExitStack) -> None:
        if self._recorder is not None:
            return  # hooks would change the kernels of compiled code, and with these its bits
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
            if id(module) not in self._unseen and self._is_wanted(module):
                self._unseen[id(module)] = module
                shown = f"{self._path(module) or 'a module'} ({type(module).__name__})"
                self._log.add(_note(f"{shown} is not seen: compiled code calls it in a loop or a branch", 0))

        return observer(lambda *given: method(*given), unseen)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._exit = self._exit, None
        if stack is None:
            return
        if self._tap is not None:
            self._tap.stop()
        stack.close()
        self._watch = None
        if self._recorder is not None:
            self._write(self._recorder, error)
        if kind is None:
            self._stops.at_end()
            for pattern in set(self._stops.modules) - self._stops.met:
                warnings.warn(f"debug: no module {pattern!r} was called to stop at", stacklevel=2)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """As a decorator: each call of the function is a session of its own."""

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            self._is_decorator = True
            try:
                with self:
                    recorder = self._recorder
                    if recorder is None:
                        return function(*args, **kwargs)
                    name = self._name or graph_name(function)
                    self._begin_call(Begun(name, args, kwargs, [(name, function)]))
                    found = function(*args, **kwargs)
                    recorder.end(found)
                    return found
            finally:
                self._is_decorator = False

        return called

    # ---- recording

    def _begin_call(self, begun: Begun) -> bool:
        assert self._recorder is not None
        with self._paused():
            return self._recorder.begin(begun.name, begun.args, begun.kwargs, begun.refers)

    def following(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """As a decorator that looks at a call as one that is recorded is looked at, without writing it."""
        self._recorder, self._name = Recorder(self._stops.patterns), name
        return self(function)

    @property
    def ops_seen(self) -> list[Any]:
        """What a recording has of ops."""
        return [] if self._recorder is None else self._recorder.ops

    def _write(self, recorder: Recorder, error: BaseException | None) -> None:
        """Writes the recording: with ``stop`` where there is a reason; raises where the result is not finite."""
        if error is not None:
            recorder.fail(error)
        what = self._bad(recorder) if error is None and self._stops.wants_finite else None
        if what is not None:
            recorder.fail(what)
        ended = error is not None or what is not None
        if self._record is not None and (recorder.has_begun if ended else not self._stops.is_any):
            size = recorder.write(self._record)
            print(f"debug: recorded {recorder.name} in {os.fspath(self._record)}, {size:,} bytes", file=sys.stderr)
        if what is not None:
            raise what

    def _bad(self, recorder: Recorder) -> NonFiniteError | None:
        found = recorder.bad()
        if not found:
            return None
        call = f"graphc.replay({os.fspath(self._record or 'step.gcr')!r}, function, eager=True)"
        return NonFiniteError(f"{recorder.name}: {found} is not finite after the call", remedy=f"{call} finds the op")

    # ---- what was logged

    @property
    def events(self) -> list[Event]:
        """Modules (when they end), ops and gradients, in the order in which they happened; the last ``limit`` ones."""
        return list(self._log)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._log)

    def __str__(self) -> str:
        return self.text(100)

    def text(self, last: int | None = None) -> str:
        """The log as text, or its last entries."""
        return self._log.text(last)

    def to_dict(self) -> dict[str, Any]:
        """The log as numbers and texts, for JSON."""
        return {"count": self._log.count, "events": [e.to_dict() for e in self._log.entries]}

    # ---- modules

    def _path(self, module: Any) -> str:
        """The path of a module in the model, or in the outermost one that runs."""
        if self._model is not None and id(module) in self._paths:
            return self._paths[id(module)]
        scope = module_path.scope()
        if scope is not None and module in scope.stack:
            return scope.path(scope.stack.index(module))
        if not self._running:
            return ""
        root = self._running[0].module
        known = {id(m): name for name, m in root.named_modules()}
        caller = self._running[-1].event.path
        return known.get(id(module), f"{caller}.{type(module).__name__}" if caller else type(module).__name__)

    def _is_wanted(self, module: Any) -> bool:
        return self._model is None or id(module) in self._paths

    def _begin(self, module: Any, args: Any) -> None:
        now = time.perf_counter()
        if not self._is_wanted(module):
            return
        scope = module_path.scope()
        is_eager = scope is not None and bool(scope.stack) and scope.stack[-1] is module
        self._unwind(module, scope.stack if is_eager and scope is not None else None)
        if not is_eager and self._ops and not self._noted:
            self._noted = True
            self._log.add(_note(_COMPILED, len(self._running)))
        tensors = _tensors(args)
        event = Event(
            CALL, "forward", self._path(module), type(module).__name__, "", "", self._reports(tensors), (), 0.0,
            len(self._running),
        )  # fmt: skip
        self._known[id(module)] = module, event.path
        self._log.add(event)
        self._running.append(_Running(module, event, time.perf_counter(), self._spent + time.perf_counter() - now))
        self._spent += time.perf_counter() - now
        found = [p for p in self._stops.modules if matches((p,), event.path, event.module)]
        if found:
            self._stops.met.update(found)
            with self._paused():
                self._stops.at_module(event, module, tensors)

    def _unwind(self, module: Any, stack: Sequence[Any] | None) -> None:
        """Forgets modules whose call an error has ended."""
        kept = self._running
        if stack is not None:
            kept = [r for r in self._running if any(r.module is m for m in stack[:-1])]
        else:
            again = next((i for i, r in enumerate(self._running) if r.module is module), len(self._running))
            kept = self._running[:again]
        self._running = kept

    def _end(self, module: Any, args: Any, output: Any) -> None:
        now = time.perf_counter()
        place = next((i for i in reversed(range(len(self._running))) if self._running[i].module is module), None)
        if place is None:
            return
        begun, self._running = self._running[place], self._running[:place]
        outputs = _tensors(output)
        seconds = max(0.0, now - begun.start - (self._spent - begun.spent))
        event = begun.event._replace(kind=MODULE, outputs=self._reports(outputs), seconds=seconds)
        self._log.add(event)
        self._spent += time.perf_counter() - now
        if self._stops.wants_finite:
            with self._paused():
                self._stops.after_module(event, module, _tensors(args), outputs)

    def _gradients(self, module: Any, grad_input: Any, grad_output: Any) -> None:
        if not self._is_wanted(module):
            return
        given, made = _tensors(grad_output), _tensors(grad_input)
        name = type(module).__name__
        path = self._known.get(id(module), (module, ""))[1]
        event = Event(MODULE, "backward", path, name, "", "", self._reports(given), self._reports(made), 0.0)
        self._log.add(event)
        if self._stops.wants_finite:
            with self._paused():
                self._stops.after_module(event, module, given, made)

    # ---- ops

    def after_op(self, done: OpDone) -> Callable[..., Any] | None:
        """Takes an op in; returns what takes its gradient in."""
        now = time.perf_counter()
        scope = module_path.scope()
        module = scope.stack[-1] if scope is not None and scope.stack else None
        if module is not None and not self._is_wanted(module):
            return None
        if self._recorder is not None:
            self._follow(scope.stack if scope is not None else ())
        phase = "backward" if done.is_backward else "forward"
        event = Event(
            OP, phase, self._path(module) if module is not None else "", type(module).__name__ if module else "",
            done.op.name, f"{done.file}:{done.line}" if done.file else "", self._reports(done.operands),
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

    def _follow(self, stack: Sequence[Any]) -> None:
        """Headings of modules without hooks: those whose call the op lies in."""
        same = 0
        while same < min(len(stack), len(self._running)) and self._running[same].module is stack[same]:
            same += 1
        self._running = self._running[:same]
        for module in stack[same:]:
            name, depth = type(module).__name__, len(self._running)
            event = Event(CALL, "forward", self._path(module), name, "", "", (), (), 0.0, depth)
            self._log.add(event)
            self._running.append(_Running(module, event, 0.0, 0.0))
            found = [p for p in self._stops.modules if matches((p,), event.path, event.module)]
            if found:
                self._stops.met.update(found)
                self._stops.at_module(event, module, ())

    def _after_gradient(self, forward: Event, inputs: Any, outputs: Any, seconds: float) -> None:
        if self._exit is None:
            return
        given, made = _tensors(inputs), _tensors(outputs)
        event = forward._replace(
            kind=GRADIENT, phase="backward", inputs=self._reports(given), outputs=self._reports(made), seconds=seconds,
            depth=0,
        )  # fmt: skip
        if self._recorder is not None:
            self._recorder.add(event, made)
        if self._ops:
            self._log.add(event)
        if self._stops.wants_finite:
            self._stops.after_gradient(event, forward, given, made)

    def _reports(self, tensors: Sequence[Tensor]) -> tuple[ArrayReport, ...]:
        with self._paused():
            return tuple([report_of(on_host(refresh(t)._data)) for t in tensors])

    def _paused(self) -> Any:
        """While this session computes something itself, ops are none of the program's."""
        return nullcontext() if self._watch is None else self._watch.paused()


def _check_model(model: Any) -> None:
    if model is None or isinstance(model, Module):
        return
    shown = model.__name__ if isinstance(model, type) else type(model).__name__
    inner = isinstance(getattr(model, "model", None), Module)
    raise ArgumentError(
        f"debug: the model must be a Module, or a compiled one, got {'the class ' * isinstance(model, type)}{shown}",
        remedy="its model: debug(step.model)" if inner else "debug() without a model",
    )


def _check_places(stream: Any, *files: str | os.PathLike[str] | None) -> None:
    """Raises ArgumentError where nothing can be written to, before anything runs."""
    if stream is not None and not isinstance(stream, bool) and not callable(getattr(stream, "write", None)):
        raise ArgumentError(f"debug: stream must be a file, True or False, got {stream!r}", remedy="stream=sys.stdout")
    for file in files:
        if file is None:
            continue
        if not isinstance(file, (str, os.PathLike)):
            raise ArgumentError(f"debug: log and record are paths of files, got {file!r}")
        if not Path(file).absolute().parent.is_dir():
            raise ArgumentError(f"debug: there is no folder to write {os.fspath(file)!r} to")


def _no_longer_as_python() -> None:
    dispatch.AS_PYTHON[0] -= 1


def _several(given: str | Sequence[str], argument: str) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else given
    if not isinstance(found, Sequence) or not all(isinstance(p, str) for p in found):
        remedy = '"nan", a pattern of modules, or several' if argument == "stop" else "a pattern, or a list of patterns"
        raise ArgumentError(f"debug: {argument} must be patterns, got {given!r}", remedy=f"{argument}={remedy}")
    return tuple(found)


def _note(text: str, depth: int) -> Event:
    return Event(NOTE, "forward", "", "", text, "", (), (), 0.0, depth)


def _tensors(value: Any) -> list[Tensor]:
    return [t for t in flatten(value)[0] if isinstance(t, Tensor)]
