"""Where ``debug`` stops: at the first NaN or infinity, and at modules by name."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import GraphcError, NonFiniteError, StoppedError
from graphc.base.location import Location, package_files
from graphc.monitor.call_log import GRADIENT, MODULE, OP, Event

_COMPOSED = ("nn/functional/", "nn/modules/", "tensors/composite.py", "tensors/sampling.py")
"""Files whose functions are made of several ops, some of which may be infinite on the way to a finite result."""

NAN = "nan"
"""The word that asks for a stop at the first number that is not finite."""


class Stop(NamedTuple):
    """Where a session has stopped, with the tensors at hand."""

    reason: str
    """What is the matter, in one sentence."""
    event: Event
    module: Any
    """The module that is called; None of an op."""
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    """Empty where a module begins."""
    error: GraphcError
    """What is raised where nothing else is asked for."""


class Stops:
    """Looks at events, and stops."""

    def __init__(self, patterns: Sequence[str], on_stop: Callable[[Stop], Any] | None):
        self.wants_finite = NAN in patterns
        self.modules = tuple(p for p in patterns if p != NAN)
        """Patterns of paths and classes of modules to stop at."""
        self.patterns = tuple(patterns)
        self.is_any = bool(patterns)
        self.met: set[str] = set()
        """Those that were met."""
        self._on_stop = on_stop
        self._origins: dict[int, tuple[weakref.ref[Any], Event]] = {}
        """By identity tensors that are not finite, with the op of a composed function that began it."""

    def at_module(self, event: Event, module: Any, inputs: Sequence[Any]) -> None:
        """Stops where a module of a pattern begins."""
        reason = f"{event.place or event.module} is called"
        shown = ", ".join(map(str, event.inputs)) or "none"
        error = StoppedError(f"debug: {reason}", where=f"inputs: {shown}", remedy="on_stop=breakpoint to look around")
        self._stop(Stop(reason, event, module, tuple(inputs), (), error))

    def after_op(self, event: Event, operands: Sequence[Any], results: Sequence[Any], attrs: Mapping[str, Any]) -> None:
        """Stops where an op makes a number that is not finite; within a function of several ops only where the result
        of that function is not finite."""
        if all(r.is_finite for r in event.outputs):
            return
        origin, is_inner = self._origin(operands), _is_composed()
        if _begins(event) and not _asks_for_it(attrs):
            origin = origin or event
            if not is_inner:
                self._not_finite(origin, None, operands, results)
                return
        if origin is None:
            return
        if not is_inner:
            self._forget()
            self._not_finite(origin, None, operands, results)
            return
        for result, report in zip(results, event.outputs, strict=True):
            if not report.is_finite:
                self._origins[id(result)] = weakref.ref(result), origin

    def after_module(self, event: Event, module: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Stops where a module makes numbers that are not finite of ones that are."""
        if _begins(event) and event.inputs:
            origin = self._origin(outputs)
            self._forget()
            self._not_finite(origin or event, module, inputs, outputs)

    def after_gradient(self, event: Event, forward: Event, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Stops where the gradient rule of an op makes a number that is not finite."""
        if _begins(event):
            self._not_finite(event, None, inputs, outputs, forward)

    def at_end(self) -> None:
        """Stops where a number that is not finite has left a function of several ops and is there to the end."""
        for reference, event in list(self._origins.values()):
            tensor = reference()
            if tensor is not None:
                self._forget()
                self._not_finite(event, None, (), (tensor,))
                return

    def _forget(self) -> None:
        self._origins.clear()

    def _origin(self, tensors: Sequence[Any]) -> Event | None:
        for tensor in tensors:
            found = self._origins.get(id(tensor))
            if found is not None and found[0]() is tensor:
                return found[1]
        return None

    def _not_finite(
        self, event: Event, module: Any, inputs: Sequence[Any], outputs: Sequence[Any], forward: Event | None = None
    ) -> None:
        made = " and ".join(str(r) for r in event.outputs if not r.is_finite)
        given = ", ".join(map(str, event.inputs)) or "none"
        if event.kind == MODULE:
            what = "gradients of its outputs" if event.phase == "backward" else "inputs"
            reason, where = f"{event.place} made {made} in its {event.phase} pass", f"{what}: {given}"
            where += _bad_weights(module)
        else:
            op = f"the gradient of {event.op}" if event.kind == GRADIENT else event.op
            place = f" in {event.place}" if event.place else ""
            reason = f"the first number that is not finite is made by {op}{place}, {event.phase}: {made}"
            where = f"{'gradients of its results' if event.kind == GRADIENT else 'operands'}: {given}"
            if forward is not None:
                where += f"; operands of {event.op}: {', '.join(map(str, forward.inputs))}"
        file, _, line = event.line.rpartition(":")
        origin = Location(event.path, file, int(line)).describe() if file else None
        remedy = "a logarithm or root of 0, a division by 0, an overflow of exp, weights that are not finite"
        error = NonFiniteError(reason, where=where, origin=origin, remedy=f"look for {remedy}")
        self._stop(Stop(reason, event, module, tuple(inputs), tuple(outputs), error))

    def _stop(self, stop: Stop) -> None:
        stop.error.stop = stop  # type: ignore[attr-defined]
        if self._on_stop is None:
            raise stop.error
        if self._on_stop is breakpoint:
            breakpoint()  # `stop` has the tensors: stop.inputs, stop.outputs, stop.module; `up` goes to your code.
        else:
            self._on_stop(stop)


def _begins(event: Event) -> bool:
    """Whether a NaN begins here (no operand has one), or an infinity (all operands are finite)."""
    if any(r.nans for r in event.outputs) and not any(r.nans for r in event.inputs):
        return bool(event.inputs) or event.kind != OP
    return any(r.infinities for r in event.outputs) and bool(event.inputs) and all(r.is_finite for r in event.inputs)


def _asks_for_it(attrs: Mapping[str, Any]) -> bool:
    """Whether an attribute of an op is an infinity or a NaN, such as what is padded with."""
    return any(isinstance(v, float) and not np.isfinite(v) for v in attrs.values())


def _is_composed() -> bool:
    """Whether the op that is applied now is a part of a function or layer of graphc that consists of several."""
    return any(file.startswith(_COMPOSED) for file in package_files())


def _bad_weights(module: Any) -> str:
    """The parameters and buffers of a module itself that are not finite."""
    if module is None:
        return ""
    own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    found = [n for n, t in own if t.dtype.is_floating_point and not bool(np.isfinite(_array(t)).all())]
    return f"; not finite: its {', '.join(found)}" if found else ""


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().numpy())
