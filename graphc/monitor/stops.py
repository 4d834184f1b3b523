"""Stops of ``debug``: at the first NaN or infinity, and at modules by name."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import GraphcError, NonFiniteError, StoppedError
from graphc.base.location import Location, package_files
from graphc.monitor.call_log import GRADIENT, MODULE, OP, LogEntry

_COMPOSED = ("nn/functional/", "nn/modules/", "tensors/composite.py", "tensors/sampling.py")
"""Files of functions made of several ops, whose intermediate values may be infinite although the result is finite."""

NAN = "nan"
"""Value of ``stop`` for the first number that is not finite."""


class Stop(NamedTuple):
    """Stop of a session, with the tensors at hand."""

    reason: str
    """Reason for the stop, in one sentence."""
    event: LogEntry
    module: Any
    """Module being called; None for an op."""
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    """Outputs; empty at the start of a module's call."""
    error: GraphcError
    """Error to raise without ``on_stop``."""


class Stops:
    """Checks on events that stop the session."""

    def __init__(self, patterns: Sequence[str], on_stop: Callable[[Stop], Any] | None):
        self.wants_finite = NAN in patterns
        self.modules = tuple(p for p in patterns if p != NAN)
        """Patterns of paths and classes of modules to stop at."""
        self.patterns = tuple(patterns)
        self.is_any = bool(patterns)
        self.met: set[str] = set()
        """Patterns that some module has matched."""
        self._on_stop = on_stop
        self._origins: dict[int, tuple[weakref.ref[Any], LogEntry]] = {}
        """Tensors that are not finite, by identity, with the op of a composed function that produced the first one."""

    def at_module(self, event: LogEntry, module: Any, inputs: Sequence[Any]) -> None:
        """Stop at the call of a module that matches a pattern."""
        reason = f"{event.place or event.module} is called"
        shown = ", ".join(map(str, event.inputs)) or "none"
        error = StoppedError(
            f"debug: {reason}", where=f"inputs: {shown}", remedy="pass on_stop=breakpoint to look at the tensors"
        )
        self._stop(Stop(reason, event, module, tuple(inputs), (), error))

    def after_op(
        self, event: LogEntry, operands: Sequence[Any], results: Sequence[Any], attrs: Mapping[str, Any]
    ) -> None:
        """Stop at an op that makes a NaN or infinity.

        Inside a function of several ops, stop only if the result of that function is not finite.
        """
        if all(r.is_finite for r in event.outputs):
            return
        origin, is_inner = self._origin(operands), _is_composed()
        if _is_origin(event) and not _has_nonfinite_attribute(attrs):
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

    def after_module(self, event: LogEntry, module: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Stop at a module that turns finite numbers into NaN or infinity."""
        if _is_origin(event) and event.inputs:
            origin = self._origin(outputs)
            self._forget()
            self._not_finite(origin or event, module, inputs, outputs)

    def after_gradient(self, event: LogEntry, forward: LogEntry, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Stop at an op whose gradient rule makes a NaN or infinity."""
        if _is_origin(event):
            self._not_finite(event, None, inputs, outputs, forward)

    def at_end(self) -> None:
        """Stop if a tensor from a function of several ops is not finite and still alive at the end."""
        for reference, event in list(self._origins.values()):
            tensor = reference()
            if tensor is not None:
                self._forget()
                self._not_finite(event, None, (), (tensor,))
                return

    def _forget(self) -> None:
        self._origins.clear()

    def _origin(self, tensors: Sequence[Any]) -> LogEntry | None:
        for tensor in tensors:
            entry = self._origins.get(id(tensor))
            if entry is not None and entry[0]() is tensor:
                return entry[1]
        return None

    def _not_finite(
        self,
        event: LogEntry,
        module: Any,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        forward: LogEntry | None = None,
    ) -> None:
        nonfinite = " and ".join(str(r) for r in event.outputs if not r.is_finite)
        inputs_text = ", ".join(map(str, event.inputs)) or "none"
        if event.kind == MODULE:
            what = "gradients of its outputs" if event.phase == "backward" else "inputs"
            reason, where = f"{event.place} made {nonfinite} in its {event.phase} pass", f"{what}: {inputs_text}"
            where += _bad_weights(module)
        else:
            op = f"the gradient of {event.op}" if event.kind == GRADIENT else event.op
            module_text = f" in {event.place}" if event.place else ""
            reason = f"the first number that is not finite is made by {op}{module_text}, {event.phase}: {nonfinite}"
            where = f"{'gradients of its results' if event.kind == GRADIENT else 'operands'}: {inputs_text}"
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


def _is_origin(event: LogEntry) -> bool:
    """Check whether an event produces the first NaN (no operand has one) or infinity (all operands are finite)."""
    if any(r.nans for r in event.outputs) and not any(r.nans for r in event.inputs):
        return bool(event.inputs) or event.kind != OP
    return any(r.infinities for r in event.outputs) and bool(event.inputs) and all(r.is_finite for r in event.inputs)


def _has_nonfinite_attribute(attrs: Mapping[str, Any]) -> bool:
    """Check whether an attribute of an op is infinite or NaN, such as a padding value."""
    return any(isinstance(v, float) and not np.isfinite(v) for v in attrs.values())


def _is_composed() -> bool:
    """Check whether the current op belongs to a function or layer of graphc made of several ops."""
    return any(file.startswith(_COMPOSED) for file in package_files())


def _bad_weights(module: Any) -> str:
    """List parameters and buffers with NaN or infinity of a module itself, not of its children."""
    if module is None:
        return ""
    own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    bad_names = [n for n, t in own if t.dtype.is_floating_point and not bool(np.isfinite(_array(t)).all())]
    return f"; not finite: its {', '.join(bad_names)}" if bad_names else ""


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().numpy())
