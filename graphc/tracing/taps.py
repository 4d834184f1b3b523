"""Taps: statistics of tensors and gradients, which the kernels of compiled code compute beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.ops import dispatch
from graphc.ops.host import host_call
from graphc.ops.shape import concat, reshape
from graphc.ops.statistics import FIELDS, ROW, USUAL, gradient_slots, gradient_tap, kinds_of, row_of, statistics
from graphc.tape.grad_mode import is_grad_enabled, no_grad
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.host import HostCalls, of, outside_of_traces
from graphc.tracing.tracer import Tracer

_SLOTS = 32
"""Gradients that share one call of Python at the end of a backward pass."""
_TAP, _TAPS = "a tap", "taps"


class Statistics(NamedTuple):
    """What a tap tells of one tensor. What was not asked for is NaN; mean and all else are those of finite elements."""

    size: int
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
    histogram: tuple[int, ...] = ()
    """How many finite elements lie in each of 30 equal parts between the smallest and the largest."""

    @staticmethod
    def of(values: np.ndarray, kinds: str = USUAL) -> Statistics:
        """Of an array, in f64."""
        return next(_all_of(row_of(np.asarray(values), kinds)[None]))


def _all_of(table: np.ndarray) -> Iterator[Statistics]:
    """Those of the rows of a table."""
    counted: list[bool] = np.any(table[:, _FIRST:], axis=1).tolist()
    for place, row in enumerate(table[:, :_FIRST].tolist()):
        counts = tuple(table[place, _FIRST:].astype(np.int64).tolist()) if counted[place] else ()
        size, nonfinite, *others = row
        yield Statistics._make((int(size), int(nonfinite), *others, counts))


_FIRST = len(FIELDS)
"""Where the counts of a histogram begin in a row."""
Take = Callable[[Statistics], Any]


def tap(tensor: Any, take: Take, kinds: str = USUAL) -> None:
    """``take(statistics)`` gets those of a tensor: now in eager mode, when the call ends in compiled code.

    There a kernel computes them in one pass over the tensor, and all that a call has gathered goes to Python at once:
    what ``take`` changes, or raises, comes after the call. ``kinds`` says which are wanted, of ``mean`` (and
    deviation), ``norm``, ``zeros``, ``range`` (smallest and largest), ``nan``, and ``histogram``, which takes a second
    pass, an element after the other; how many elements there are, and how many are not finite, is always told. Sums
    are in f32 for elements of up to 32 bits. Nothing of it has a gradient. ``graphc.trace`` and exports leave taps out.

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
    """Ends a graph with one call of Python that hands on all rows that are pending."""
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
    """The number of a function that hands on ``count`` rows. What it raises is raised when the call has ended."""

    def run(state: dict[Any, Any], table: np.ndarray) -> list[np.ndarray]:
        with outside_of_traces(), no_grad():
            for take, found in zip(takers, _all_of(table), strict=False):
                # NOTE: zeros are in the place of a gradient that does not get there.
                if found.size or found.mean:
                    take(found)
        return []

    return host.add(_TAPS, run, [((count, *ROW.shape), ROW.dtype.numpy)], [], takes_only=True)


def tap_gradient(tensor: Tensor, take: Take, kinds: str = USUAL) -> Tensor:
    """The tensor, whose gradient's statistics ``take`` gets in each backward pass that reaches what is returned; the
    tensor alone where it requires none. In eager mode that is the tensor itself, with a hook.

    ``kinds`` and errors are those of ``tap``. Statistics of a second derivative raise GradientError in compiled code.
    """
    kinds_of(kinds, "a tap")
    tracer = dispatch.current()
    here = refresh(tracer.local(tensor)) if isinstance(tracer, Tracer) else refresh(tensor)
    if not here._requires_grad or not is_grad_enabled() or not here.dtype.is_differentiable:
        return tensor

    if not isinstance(tracer, Tracer):

        def look(gradient: Tensor) -> None:
            take(Statistics.of(gradient.detach()._values(force=True), kinds))

        tensor.register_hook(look)
        return tensor

    if _is_left_out(tracer):
        return tensor
    return tracer.apply(gradient_tap.op, (here, _slot(tracer, here, take)), {"kinds": kinds})


def _slot(tracer: Tracer, tensor: Tensor, take: Take) -> Tensor:
    """A place for the row of a gradient. Places of one graph share a call of Python."""
    host = of(tracer, _TAP)
    shared = tracer.parent is None
    if not shared or not host.slots:
        takers: list[Take] = []
        host.start(tracer)
        count = _SLOTS if shared else 1
        attrs = {"number": _add(host, takers, count), "name": _TAPS, "count": count}
        host.token, *made = tracer.apply(gradient_slots.op, (host.token, tensor), attrs)
        slots = [(slot, takers) for slot in reversed(made)]
        if not shared:
            takers.append(take)
            return slots[-1][0]
        host.slots = slots
    slot, takers = host.slots.pop()
    takers.append(take)
    return slot


def _is_left_out(tracer: Tracer) -> bool:
    """Whether a graph is traced that is not a part of compiled code."""
    while isinstance(tracer.parent, Tracer):
        tracer = tracer.parent
    return tracer.parent is None and tracer.host is None
