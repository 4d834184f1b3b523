"""Taps: statistics of tensors and gradients, fused into the kernels of compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphc.base.records import NamedTuple
from graphc.ops import dispatch
from graphc.ops.effects.host import host_call
from graphc.ops.movement.shape import concat, reshape
from graphc.ops.reduction.statistics import (
    FIELDS,
    ROW,
    USUAL,
    gradient_slots,
    gradient_tap,
    kinds_of,
    row_of,
    statistics,
)
from graphc.tape.grad_mode import is_grad_enabled, no_grad
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.host import HostCalls, of, outside_of_traces
from graphc.tracing.tracer import Tracer

_SLOTS = 32
"""Number of gradients that share one host call at the end of a backward pass."""
_TAP, _TAPS = "a tap", "taps"


class Statistics(NamedTuple):
    """Statistics of one tensor. Statistics not requested are NaN; all from ``mean`` on cover the finite
    elements."""

    size: int
    """Number of elements."""
    nonfinite: int
    """Number of NaN and infinite elements."""
    mean: float = math.nan
    std: float = math.nan
    """Root of the mean squared difference from the mean."""
    norm: float = math.nan
    """Root of the sum of squares."""
    zeros: float = math.nan
    """Fraction of finite elements that are 0."""
    min: float = math.nan
    max: float = math.nan
    nan: float = math.nan
    """Number of NaN elements."""
    histogram: tuple[int, ...] = ()
    """Number of finite elements in each of 30 equal bins between the smallest and the largest."""

    @staticmethod
    def of(values: np.ndarray, kinds: str = USUAL) -> Statistics:
        """Compute the statistics of an array, in f64."""
        return next(_all_of(row_of(np.asarray(values), kinds)[None]))


def _all_of(table: np.ndarray) -> Iterator[Statistics]:
    """Yield the statistics of each row of a table."""
    counted: list[bool] = np.any(table[:, _FIRST:], axis=1).tolist()
    for index, row in enumerate(table[:, :_FIRST].tolist()):
        counts = tuple(table[index, _FIRST:].astype(np.int64).tolist()) if counted[index] else ()
        size, nonfinite, *others = row
        yield Statistics._make((int(size), int(nonfinite), *others, counts))


_FIRST = len(FIELDS)
"""Column of a row at which the histogram starts."""
Take = Callable[[Statistics], Any]


def tap(tensor: Any, take: Take, kinds: str = USUAL) -> None:
    """Call ``take(statistics)`` with the statistics of a tensor: now in eager mode, after the call in compiled code.

    Compiled code computes them in one pass over the tensor and passes all statistics of a call to Python at once. So
    changes that ``take`` makes, and its exceptions, appear after the call. ``kinds`` selects from ``mean`` (and
    deviation), ``norm``, ``zeros``, ``range`` (smallest and largest), ``nan`` and ``histogram``, which needs a second,
    sequential pass. The number of elements and of non-finite ones is always included. Sums are in f32 for elements of
    up to 32 bits. Statistics are not differentiable. ``graphc.trace`` and exports omit taps.

    Raises AttributeValueError for other kinds, and TraceError in the step of a ``scan`` and under ``vmap``.
    """
    kinds_of(kinds, "a tap")
    tracer = dispatch.current()
    if not isinstance(tracer, Tracer):
        take(Statistics.of(tensor.detach()._values(force=True), kinds))
        return
    if _is_left_out(tracer):
        return
    host = of(tracer, _TAP)
    with no_grad():
        host.pending.append((take, statistics(tensor, kinds=kinds)))
    if tracer.parent is not None:
        deliver(tracer)


def deliver(tracer: Any) -> None:
    """End a graph with one host call that delivers all pending rows."""
    if tracer.host is None or not tracer.host.pending:
        return
    host, pending = tracer.host, tracer.host.pending
    host.pending = []
    host.start(tracer)
    number = _add(host, [take for take, _ in pending], len(pending))
    with no_grad():
        table = concat(*(reshape(row, shape=(1, *ROW.shape)) for _, row in pending), axis=0)
        host.token = tracer.apply(host_call.op, (host.token, table), {"number": number, "name": _TAPS})


def _add(host: HostCalls, takers: Sequence[Take], count: int) -> int:
    """Register a host function that delivers ``count`` rows, and return its index. Its exceptions are raised after the
    call."""

    def run(state: dict[Any, Any], table: np.ndarray) -> list[np.ndarray]:
        with outside_of_traces(), no_grad():
            for take, row in zip(takers, _all_of(table), strict=False):
                # NOTE: a gradient that is not reached leaves zeros.
                if row.size or row.mean:
                    take(row)
        return []

    return host.add(_TAPS, run, [((count, *ROW.shape), ROW.dtype.numpy)], [], takes_only=True)


def tap_gradient(tensor: Tensor, take: Take, kinds: str = USUAL) -> Tensor:
    """Call ``take`` with the statistics of a tensor's gradient in each backward pass that reaches the returned tensor.

    In eager mode the returned tensor is the given one, with a hook. A tensor that requires no gradient is returned
    unchanged.

    ``kinds`` and errors are those of ``tap``. Statistics of a second derivative raise GradientError in compiled code.
    """
    kinds_of(kinds, "a tap")
    tracer = dispatch.current()
    traced = refresh(tracer.local(tensor)) if isinstance(tracer, Tracer) else refresh(tensor)
    if not traced._requires_grad or not is_grad_enabled() or not traced.dtype.is_differentiable:
        return tensor

    if not isinstance(tracer, Tracer):

        def look(gradient: Tensor) -> None:
            take(Statistics.of(gradient.detach()._values(force=True), kinds))

        tensor.register_hook(look)
        return tensor

    if _is_left_out(tracer):
        return tensor
    return tracer.apply(gradient_tap.op, (traced, _slot(tracer, traced, take)), {"kinds": kinds})


def _slot(tracer: Tracer, tensor: Tensor, take: Take) -> Tensor:
    """Return the slot for the row of a gradient. Slots of one graph share a host call."""
    host = of(tracer, _TAP)
    shared = tracer.parent is None
    if not shared or not host.slots:
        takers: list[Take] = []
        host.start(tracer)
        count = _SLOTS if shared else 1
        attrs = {"number": _add(host, takers, count), "name": _TAPS, "count": count}
        host.token, *slot_values = tracer.apply(gradient_slots.op, (host.token, tensor), attrs)
        slots = [(slot, takers) for slot in reversed(slot_values)]
        if not shared:
            takers.append(take)
            return slots[-1][0]
        host.slots = slots
    slot, takers = host.slots.pop()
    takers.append(take)
    return slot


def _is_left_out(tracer: Tracer) -> bool:
    """Return whether a graph is traced on its own, not as part of compiled code."""
    while isinstance(tracer.parent, Tracer):
        tracer = tracer.parent
    return tracer.parent is None and tracer.host is None
