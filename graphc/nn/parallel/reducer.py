"""Reduction of gradients when several processes train one module: a backward pass fills buckets and sends them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from graphc.autograd import engine
from graphc.base.dtypes import bfloat16, elements, numbers
from graphc.base.errors import DistributedError, GradientError
from graphc.distributed.channel import Channel, Pending
from graphc.distributed.group import Group
from graphc.nn.parallel.buckets import Bucket
from graphc.tape.grad_mode import no_grad
from graphc.tensors.placement import on_host
from graphc.tensors.tensor import Tensor

SHOWN = 8
"""Maximum number of parameters that an error message lists."""
_by_graph: ContextVar[bool] = ContextVar("graphc_reduced_by_graph", default=False)


def is_reduced_by_graph() -> bool:
    """Check whether the graph being traced reduces the gradients of the current call."""
    return _by_graph.get()


@contextmanager
def reduced_by_graph() -> Iterator[None]:
    """Leave the reductions of calls within the block to the traced graph."""
    token = _by_graph.set(True)
    try:
        yield
    finally:
        _by_graph.reset(token)


def _nothing() -> None:
    pass


class _Flat:
    """Memory of one bucket: gradients in the order of its parameters, then one flag per parameter.

    The flag says whether a process has a gradient. It is reduced with the gradients, so it needs no message of its own.
    """

    def __init__(self, bucket: Bucket, number: int):
        self.bucket, self.title = bucket, f"bucket {number}"
        sizes = [p.numel() for p in bucket.parameters]
        self.stops = np.cumsum(sizes).tolist()
        self.starts = [stop - size for stop, size in zip(self.stops, sizes, strict=True)]
        length = bucket.elements + len(sizes)
        self.source = np.zeros(length, bucket.dtype.numpy)
        self.result = np.zeros(length, bucket.dtype.numpy)
        self.ready: set[int] = set()
        """Indices of the parameters whose gradients this pass has written."""

    def fill(self, index: int, processes: int) -> None:
        """Write the gradient of one parameter, divided by the number of processes."""
        parameter, segment = self.bucket.parameters[index], slice(self.starts[index], self.stops[index])
        if parameter._grad is None:
            self.source[segment] = np.zeros((), self.source.dtype)
            return
        values = np.asarray(on_host(parameter._grad._data)).reshape(-1)
        if self.bucket.dtype is bfloat16:
            self.source[segment] = elements(numbers(values) / processes, bfloat16)
        else:
            np.divide(values, processes, out=self.source[segment])

    def flag(self, flags: Sequence[bool]) -> None:
        """Write the flags after the gradients."""
        self.source[self.bucket.elements :] = elements(np.array(flags, np.float32), self.bucket.dtype)

    def flagged(self) -> list[bool]:
        """Return for each parameter whether some process set its flag."""
        return (numbers(self.result[self.bucket.elements :]) != 0).tolist()


class Reducer:
    """Averages the gradients of the parameters of ``buckets`` over all processes.

    It acts in backward passes that begin at outputs whose hooks call ``begin``. Buckets are sent in order, each once it
    and all before it are full. A parameter may lack a gradient in such a pass only with ``finds_unused``.
    """

    def __init__(self, group: Group, channel: Channel, buckets: Sequence[Bucket], finds_unused: bool, as_views: bool):
        self.group, self.channel, self.buckets = group, channel, buckets
        self.finds_unused, self.as_views = finds_unused, as_views
        self._flats = [_Flat(bucket, i) for i, bucket in enumerate(buckets)]
        self._positions = {id(p): (i, k) for i, b in enumerate(buckets) for k, p in enumerate(b.parameters)}
        self._pass: Any = None
        """The backward pass whose gradients are reduced."""
        self._pending: list[Pending] = []
        self._used: set[int] = set()
        """Ids of the parameters that got a gradient since the last reduction."""
        self._early: tuple[Callable[[], Any], list[Any]] = (_nothing, [])
        """A reference to the running backward pass, and the parameters that got a gradient in it before it reached a
        watched output."""

    def listen(self) -> None:
        """Receive the gradients of the parameters from now on, in place of any earlier reducer of the same
        parameters."""
        for bucket in self.buckets:
            for parameter in bucket.parameters:
                parameter._listener = self._arrived

    def begin(self) -> None:
        """Reduce the gradients of the current backward pass, which runs the caller (a hook of an output)."""
        if not engine.is_running():
            raise GradientError(
                "DistributedDataParallel: the backward pass is part of compiled code, which does not reduce gradients",
                remedy="use gc.compile_step; or compile the forward pass only, and call loss.backward() outside",
            )
        outermost = engine.current_pass().outermost
        if outermost.accumulate and outermost is not self._pass:
            self._pass, self._pending = outermost, []
            for flat in self._flats:
                flat.ready.clear()
            outermost.finishers.append(self._finish)
            for parameter in self._early[1] if self._early[0]() is outermost else ():
                self._take(parameter)
            self._early = (_nothing, [])

    def _arrived(self, parameter: Any) -> None:
        """Record an addition to a parameter's gradient in a backward pass."""
        self._used.add(id(parameter))
        outermost = engine.current_pass().outermost if engine.is_running() else None
        if outermost is self._pass and outermost is not None:
            self._take(parameter)
        elif self._early[0]() is outermost:
            self._early[1].append(parameter)
        else:
            self._early = (_nothing if outermost is None else weakref.ref(outermost), [parameter])

    def _take(self, parameter: Any) -> None:
        """Write a gradient into its bucket, and send all full buckets."""
        number, index = self._positions[id(parameter)]
        if number < len(self._pending):
            name = self.buckets[number].names[index]
            raise GradientError(
                f"DistributedDataParallel: a backward pass adds to the gradient of {name!r} after it was reduced",
                remedy="pass use_reentrant=False to checkpoints that use a part of the model twice",
            )
        flat = self._flats[number]
        flat.fill(index, self.group.size)
        flat.ready.add(index)
        self._send_full()

    def _send_full(self) -> None:
        while len(self._pending) < len(self._flats):
            flat = self._flats[len(self._pending)]
            if len(flat.ready) < len(flat.bucket.parameters):
                return
            used = [id(p) in self._used for p in flat.bucket.parameters]
            flat.flag(used if self.finds_unused else [False] * len(used))
            self._pending.append(self.channel.reduce(flat.title, flat.source, flat.result))

    def _finish(self) -> None:
        """Finish the pass: send the remaining buckets, wait for all, and hand out the means."""
        missing = [self._close(flat) for flat in self._flats[len(self._pending) :]]
        for pending in self._pending:
            pending.wait()
        self._pass, self._pending, self._used = None, [], set()
        flagged = [flat.flagged() for flat in self._flats]
        if not self.finds_unused and any(map(any, flagged)):
            raise self._unused([name for names in missing for name in names])
        with no_grad():
            for flat, has_gradient in zip(self._flats, flagged, strict=True):
                for index, parameter in enumerate(flat.bucket.parameters):
                    if has_gradient[index] or not self.finds_unused:
                        self._give(parameter, flat, index)

    def _close(self, flat: _Flat) -> list[str]:
        """Send a partly filled bucket; return the names of its parameters without a gradient."""
        bucket = flat.bucket
        missing = [i for i in range(len(bucket.parameters)) if i not in flat.ready]
        for index in missing:
            flat.fill(index, self.group.size)
        used = [id(p) in self._used for p in bucket.parameters]
        flat.flag(used if self.finds_unused else [i in missing for i in range(len(used))])
        self._pending.append(self.channel.reduce(flat.title, flat.source, flat.result))
        return [bucket.names[i] for i in missing]

    def _give(self, parameter: Any, flat: _Flat, index: int) -> None:
        mean = flat.result[flat.starts[index] : flat.stops[index]].reshape(parameter.shape)
        if parameter._grad is None or self.as_views:
            parameter._grad = Tensor._wrap(mean if self.as_views else mean.copy())
        else:
            parameter._grad.copy_(Tensor._wrap(mean))

    def _unused(self, mine: list[str]) -> DistributedError:
        """Build the same error in all processes, after each has seen that some parameter got no gradient somewhere."""
        everywhere = self.group.gather_objects(mine)
        ranks: dict[str, list[str]] = {}
        for rank, names in enumerate(everywhere):
            for name in names:
                ranks.setdefault(name, []).append(str(rank))
        shown = [f"{name!r} (rank {', '.join(missing_on)})" for name, missing_on in [*ranks.items()][:SHOWN]]
        shown += [f"{len(ranks) - SHOWN} more"] * (len(ranks) > SHOWN)
        return DistributedError(
            f"DistributedDataParallel: the loss does not depend on {len(ranks)} parameters: {', '.join(shown)}",
            remedy="pass find_unused_parameters=True; or call requires_grad_(False) on them before wrapping the module",
        )
