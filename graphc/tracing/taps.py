"""Taps: statistics of tensors and gradients, which the kernels of compiled code compute beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base import module_path
from graphc.base.errors import TraceError
from graphc.base.location import capture
from graphc.base.size import is_size
from graphc.ops import dispatch
from graphc.ops.statistics import FIELDS, KINDS, gradient_slots, gradient_tap, kinds_of, statistics
from graphc.tape.grad_mode import is_grad_enabled, no_grad
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.host import Taker, call_python, of
from graphc.tracing.tracer import Tracer

_SLOTS = 32
"""Gradients that share one call of Python at the end of a backward pass."""
_TAP = "a tap"


class Statistics(NamedTuple):
    """What a tap tells of one tensor. What was not asked for is NaN; mean and all else are those of finite elements."""

    count: int
    """How many elements there are."""
    nonfinite: int
    """How many of them are NaN or infinite."""
    mean: float = math.nan
    std: float = math.nan
    """Root of the mean square of differences from the mean."""
    norm: float = math.nan
    """Root of the sum of squares."""
    zeros: float = math.nan
    """The share of finite elements that are 0."""
    min: float = math.nan
    max: float = math.nan
    nan: float = math.nan
    """How many elements are NaN."""

    @staticmethod
    def of_row(row: Sequence[float], kinds: Sequence[str]) -> Statistics:
        """From a row of the numbers FIELDS."""
        count, n, nan, zeros, shift, total, squares, least, most = row
        mean = std = norm = share = low = high = math.nan
        if "norm" in kinds:
            norm = math.sqrt(max(squares + 2 * shift * total + n * shift * shift, 0.0))
        if n:
            if "mean" in kinds:
                apart = total / n
                mean, std = shift + apart, math.sqrt(max(squares / n - apart * apart, 0.0))
            if "zeros" in kinds:
                share = zeros / n
            if "range" in kinds:
                low, high = least, most
        nans = nan if "nan" in kinds else math.nan
        return Statistics(int(count), int(count - n), mean, std, norm, share, low, high, nans)

    @staticmethod
    def of(values: np.ndarray, kinds: Sequence[str] = KINDS) -> Statistics:
        """Of an array, in f64."""
        values = np.asarray(values)
        wide = values.astype(np.float64)
        good = wide[np.isfinite(wide)]
        more: dict[str, float] = {}
        if "mean" in kinds and good.size:
            more |= {"mean": float(good.mean()), "std": float(good.std())}
        if "norm" in kinds:
            more["norm"] = float(np.sqrt(np.square(good).sum()))
        if "zeros" in kinds and good.size:
            more["zeros"] = float(np.mean(good == 0))
        if "range" in kinds and good.size:
            more |= {"min": float(good.min()), "max": float(good.max())}
        if "nan" in kinds:
            more["nan"] = float(np.isnan(wide).sum())
        return Statistics(values.size, values.size - good.size, **more)


Take = Callable[[Statistics], Any]


def tap(tensor: Any, take: Take, kinds: str = " ".join(KINDS)) -> None:
    """``take(statistics)`` gets those of a tensor: now in eager mode, at the end of each call in compiled code.

    There they are computed by kernels in one or two passes over the tensor, and all that a call has gathered goes to Python at once. ``kinds`` says
    which are wanted, of ``mean`` (and deviation), ``norm``, ``zeros``, ``range`` (smallest and largest) and ``nan``; how many elements there are, and how
    many of them are not finite, is always told. Nothing of it has a gradient. ``graphc.trace`` and exports leave taps out. Raises
    AttributeValueError for other kinds, TraceError in the step of a ``scan``, under ``vmap`` and for named sizes.
    """
    wanted = kinds_of(kinds)
    tracer = dispatch.current()
    if not isinstance(tracer, Tracer):
        take(Statistics.of(tensor.detach()._values(force=True), wanted))
        return
    if _is_left_out(tracer):
        return
    _check(tensor)

    def taken(row: Sequence[float]) -> None:
        take(Statistics.of_row(row, wanted))

    host = of(tracer, _TAP)
    with no_grad():
        row = statistics(tensor, wanted)
        if tracer.parent is None:
            host.pending.append((taken, row))
        else:
            call_python(tracer, _TAP, lambda given: taken(given._data.tolist()) or [], [row], [])


def tap_gradient(tensor: Tensor, take: Take, kinds: str = " ".join(KINDS)) -> Tensor:
    """The tensor, of whose gradient ``take`` gets the statistics in each backward pass that reaches what is returned; the
    tensor alone where it requires none. In eager mode that is the tensor itself, with a hook.

    ``kinds`` and errors are those of ``tap``. Statistics of a second derivative raise GradientError in compiled code.
    """
    wanted = kinds_of(kinds)
    tracer = dispatch.current()
    here = refresh(tracer.local(tensor)) if isinstance(tracer, Tracer) else refresh(tensor)
    if not here._requires_grad or not is_grad_enabled() or here.dtype.kind != "f":
        return tensor

    if not isinstance(tracer, Tracer):

        def look(gradient: Tensor) -> None:
            take(Statistics.of(gradient.detach()._values(force=True), wanted))

        tensor.register_hook(look)
        return tensor

    if _is_left_out(tracer):
        return tensor
    _check(here)

    def taken(row: Sequence[float]) -> None:
        take(Statistics.of_row(row, wanted))

    return tracer.apply(gradient_tap.op, (here, _slot(tracer, here, taken)), {"kinds": " ".join(wanted)})


def _slot(tracer: Tracer, tensor: Tensor, taken: Taker) -> Tensor:
    """A place for the row of a gradient. Places of one graph share a call of Python."""
    host = of(tracer, _TAP)
    shared = tracer.parent is None
    if not shared or not host.slots:
        takers: list[Taker] = []

        def run(state: dict[Any, Any], table: np.ndarray) -> list[np.ndarray]:
            for take, row in zip(takers, table.tolist(), strict=False):
                if row[0]:
                    take(row)
            return []

        host.start(tracer)
        count = _SLOTS if shared else 1
        number = host.add("taps", run, [((count, len(FIELDS)), np.dtype(np.float64))], [])
        attrs = {"number": number, "name": "taps", "count": count}
        host.token, *made = tracer.apply(gradient_slots.op, (host.token, tensor), attrs)
        slots = [(slot, takers) for slot in reversed(made)]
        if not shared:
            takers.append(taken)
            return slots[-1][0]
        host.slots = slots
    slot, takers = host.slots.pop()
    takers.append(taken)
    return slot


def _is_left_out(tracer: Tracer) -> bool:
    """Whether a graph is traced that is not a part of compiled code."""
    while tracer.parent is not None:
        tracer = tracer.parent
    return tracer.host is None


def _check(tensor: Any) -> None:
    if any(map(is_size, tensor.shape)):
        raise TraceError(
            "a tap of a tensor with named sizes",
            origin=capture(module_path.current_path()).describe(),
            remedy="compile without dims, so that each size has a program",
        )
