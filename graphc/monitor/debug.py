"""``debug``: a log of what modules compute, eager or compiled, that stops at the first NaN or at a named module."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from graphc.base.errors import ArgumentError, NonFiniteError
from graphc.nn.module import Module
from graphc.nn.module_hooks import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
)
from graphc.tensors.structure import flatten
from graphc.tensors.tensor import Tensor


class TensorReport(NamedTuple):
    """What a log says of one tensor."""

    dtype: str
    shape: tuple[int, ...]
    low: float | None
    """The smallest finite element; None where there is none."""
    high: float | None
    nans: int
    infinities: int

    def __str__(self) -> str:
        text = f"{self.dtype}[{','.join(map(str, self.shape))}]"
        if self.low is not None:
            text += f" {self.low:.4g}..{self.high:.4g}"
        counts = [f"{n} {what}" for n, what in ((self.nans, "NaN"), (self.infinities, "inf")) if n]
        return " ".join([text, *counts])


class Event(NamedTuple):
    """One line of a log."""

    kind: str
    """``forward`` or ``backward``."""
    path: str
    """The module's path in the model that is debugged; empty where that is not known."""
    module: str
    """Its class."""
    inputs: tuple[TensorReport, ...]
    """Of ``backward`` the gradients of the outputs."""
    outputs: tuple[TensorReport, ...]
    """Of ``backward`` the gradients of the inputs."""
    seconds: float
    """Since the event before."""

    def __str__(self) -> str:
        name = f"{self.path} ({self.module})" if self.path else self.module
        shown = " ".join(map(str, self.outputs))
        return f"{self.kind:8} {name}: {', '.join(map(str, self.inputs))} -> {shown}  {1e3 * self.seconds:.2f} ms"


class debug:
    """Writes down what every module computes while the block runs, in eager mode and in compiled code.

    ``with graphc.debug(model) as log:`` gives one ``Event`` for each module and call in ``log.events``, in the
    order in which they end: path and class, shapes, element types, ranges and counts of NaN and infinities of what
    went in and came out, and the time since the event before. With ``backward``, also of gradients. Without a
    model, modules of all models are logged, without paths. ``print(log)`` shows the last events.

    ``stop_at_nan`` raises NonFiniteError at the first module that makes a NaN, or an infinity of finite numbers,
    with what went into it. ``stop_at`` names a module (its path): ``on_stop(module, inputs, outputs)`` is called
    there, which is ``breakpoint`` by default. ``limit`` is how many events are kept.

    Compiled code gets hooks for as long, so its kernels are not fused across modules, and the first call of each
    signature is compiled once more.
    """

    def __init__(
        self,
        model: Module | None = None,
        *,
        stop_at_nan: bool = False,
        stop_at: str = "",
        on_stop: Callable[[Any, Any, Any], Any] | None = None,
        backward: bool = False,
        limit: int = 100_000,
    ):
        self.events: list[Event] = []
        self._paths = {id(m): name for name, m in model.named_modules()} if model is not None else None
        if stop_at and (self._paths is None or stop_at not in self._paths.values()):
            raise ArgumentError(f"debug: there is no module {stop_at!r} to stop at", remedy="a path of named_modules()")
        self._stop_at_nan, self._stop_at, self._on_stop = stop_at_nan, stop_at, on_stop
        self._backward, self._limit = backward, limit
        self._handles: list[Any] = []
        self._before = 0.0

    def __enter__(self) -> Self:
        self._before = time.perf_counter()
        self._handles = [register_module_forward_hook(self._forward)]
        if self._stop_at:
            self._handles.append(register_module_forward_pre_hook(self._check_stop))
        if self._backward:
            self._handles.append(register_module_full_backward_hook(self._gradients))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __str__(self) -> str:
        return "\n".join(map(str, self.events[-100:]))

    def _check_stop(self, module: Any, args: Any) -> None:
        if self._path(module) == self._stop_at:
            (self._on_stop or _breakpoint)(module, args, None)

    def _forward(self, module: Any, args: Any, output: Any) -> None:
        self._note("forward", module, args, output)

    def _gradients(self, module: Any, grad_input: Any, grad_output: Any) -> None:
        self._note("backward", module, grad_output, grad_input)

    def _path(self, module: Any) -> str | None:
        return "" if self._paths is None else self._paths.get(id(module))

    def _note(self, kind: str, module: Any, given: Any, made: Any) -> None:
        path = self._path(module)
        if path is None:
            return
        now = time.perf_counter()
        inputs, outputs = (tuple(map(report, _tensors(v))) for v in (given, made))
        event = Event(kind, path, type(module).__name__, inputs, outputs, now - self._before)
        if len(self.events) < self._limit:
            self.events.append(event)
        if self._stop_at_nan and any(t.nans or t.infinities for t in outputs):
            self._raise_if_new(event)
        self._before = time.perf_counter()

    def _raise_if_new(self, event: Event) -> None:
        """Raises NonFiniteError unless what is no number was there before."""
        if any(t.nans or t.infinities for t in event.inputs):
            return
        name = f"{event.path} ({event.module})" if event.path else event.module
        made = " and ".join(str(t) for t in event.outputs if t.nans or t.infinities)
        raise NonFiniteError(
            f"{name} made {made} in its {event.kind} pass",
            where=f"{'gradients of its outputs' if event.kind == 'backward' else 'inputs'}: "
            f"{', '.join(map(str, event.inputs)) or 'none'}",
            remedy="look at its parameters; a logarithm or root of 0, a division by 0, an overflow of exp",
        )


def _breakpoint(module: Any, inputs: Any, outputs: Any) -> None:
    breakpoint()


def _tensors(value: Any) -> list[Tensor]:
    return [t for t in flatten(value)[0] if isinstance(t, Tensor)]


def report(tensor: Tensor) -> TensorReport:
    """Type, shape, range, and counts of what is no finite number."""
    array = tensor.detach().cpu().numpy()
    if not np.issubdtype(array.dtype, np.floating):
        low, high = (float(array.min()), float(array.max())) if array.size else (None, None)
        return TensorReport(tensor.dtype.name, tuple(tensor.shape), low, high, 0, 0)
    finite = np.isfinite(array)
    some = array[finite]
    low, high = (float(some.min()), float(some.max())) if some.size else (None, None)
    nans = int(np.isnan(array).sum())
    return TensorReport(tensor.dtype.name, tuple(tensor.shape), low, high, nans, int(array.size - finite.sum()) - nans)
