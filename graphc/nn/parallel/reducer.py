"""What becomes of gradients when several processes train one module: buckets fill in a backward pass, and travel."""

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
"""Parameters that a message lists."""
_by_graph: ContextVar[bool] = ContextVar("graphc_reduced_by_graph", default=False)


def is_reduced_by_graph() -> bool:
    """Whether the gradients of what is called here are reduced by the graph that is traced."""
    return _by_graph.get()


@contextmanager
def reduced_by_graph() -> Iterator[None]:
    """Within it, calls leave the reductions to the graph that is traced."""
    token = _by_graph.set(True)
    try:
        yield
    finally:
        _by_graph.reset(token)


def _nothing() -> None:
    pass


class _Flat:
    """The memory of one bucket: gradients in the order of its parameters, and behind them a number for each, which
    says who has a gradient, so that this needs no message of its own."""

    def __init__(self, bucket: Bucket, number: int):
        self.bucket, self.title = bucket, f"bucket {number}"
        sizes = [p.numel() for p in bucket.parameters]
        self.stops = np.cumsum(sizes).tolist()
        self.starts = [stop - size for stop, size in zip(self.stops, sizes, strict=True)]
        length = bucket.elements + len(sizes)
        self.source = np.zeros(length, bucket.dtype.numpy)
        self.result = np.zeros(length, bucket.dtype.numpy)
        self.ready: set[int] = set()
        """Numbers of the parameters whose gradients this pass has written."""

    def fill(self, index: int, share: int) -> None:
        """Writes the gradient of one parameter, divided by the number of processes."""
        parameter, place = self.bucket.parameters[index], slice(self.starts[index], self.stops[index])
        if parameter._grad is None:
            self.source[place] = np.zeros((), self.source.dtype)
            return
        values = np.asarray(on_host(parameter._grad._data)).reshape(-1)
        if self.bucket.dtype is bfloat16:
            self.source[place] = elements(numbers(values) / share, bfloat16)
        else:
            np.divide(values, share, out=self.source[place])

    def flag(self, flags: Sequence[bool]) -> None:
        """Writes the numbers behind the gradients."""
        self.source[self.bucket.elements :] = elements(np.array(flags, np.float32), self.bucket.dtype)

    def flagged(self) -> list[bool]:
        """For which parameters the number was not 0 in all processes."""
        return (numbers(self.result[self.bucket.elements :]) != 0).tolist()


class Reducer:
    """Gradients of the parameters of ``buckets`` become the means over all processes, in backward passes that begin at
    outputs which the reducer ``watches``. Buckets are sent in their order, each as soon as it and those before it are
    full. A parameter may be without a gradient in such a pass only with ``finds_unused``."""

    def __init__(self, group: Group, channel: Channel, buckets: Sequence[Bucket], finds_unused: bool, as_views: bool):
        self.group, self.channel, self.buckets = group, channel, buckets
        self.finds_unused, self.as_views = finds_unused, as_views
        self._flats = [_Flat(bucket, i) for i, bucket in enumerate(buckets)]
        self._places = {id(p): (i, k) for i, b in enumerate(buckets) for k, p in enumerate(b.parameters)}
        self._pass: Any = None
        """The backward pass whose gradients are reduced."""
        self._pending: list[Pending] = []
        self._used: set[int] = set()
        """Identities of the parameters that got a gradient since the last reduction."""
        self._early: tuple[Callable[[], Any], list[Any]] = (_nothing, [])
        """What gives a backward pass while it goes on, and the parameters that got a gradient in it before it came to
        an output."""

    def listen(self) -> None:
        """Is told of gradients from now on; another reducer of the same parameters no longer is."""
        for bucket in self.buckets:
            for parameter in bucket.parameters:
                parameter._listener = self._arrived

    def begin(self) -> None:
        """Gradients of the backward pass that runs the caller, a hook of an output, are reduced."""
        if not engine.is_running():
            raise GradientError(
                "DistributedDataParallel: the backward pass is part of compiled code, which does not reduce gradients",
                remedy="gc.compile_step; or compile the forward pass only, and call loss.backward() outside",
            )
        whole = engine.current_pass().outermost
        if whole.accumulate and whole is not self._pass:
            self._pass, self._pending = whole, []
            for flat in self._flats:
                flat.ready.clear()
            whole.finishers.append(self._finish)
            for parameter in self._early[1] if self._early[0]() is whole else ():
                self._take(parameter)
            self._early = (_nothing, [])

    def _arrived(self, parameter: Any) -> None:
        """A backward pass has added to a parameter's gradient."""
        self._used.add(id(parameter))
        whole = engine.current_pass().outermost if engine.is_running() else None
        if whole is self._pass and whole is not None:
            self._take(parameter)
        elif self._early[0]() is whole:
            self._early[1].append(parameter)
        else:
            self._early = (_nothing if whole is None else weakref.ref(whole), [parameter])

    def _take(self, parameter: Any) -> None:
        """Writes a gradient into its bucket, and sends what is full."""
        number, index = self._places[id(parameter)]
        if number < len(self._pending):
            name = self.buckets[number].names[index]
            raise GradientError(
                f"DistributedDataParallel: a backward pass adds to the gradient of {name!r} again, which is reduced",
                remedy="no part of the model that is used twice within reentrant checkpoints: use_reentrant=False",
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
        """At the end of the pass: sends what is left, waits for all, and hands out the means."""
        missing = [self._close(flat) for flat in self._flats[len(self._pending) :]]
        for pending in self._pending:
            pending.wait()
        self._pass, self._pending, self._used = None, [], set()
        flagged = [flat.flagged() for flat in self._flats]
        if not self.finds_unused and any(map(any, flagged)):
            raise self._unused([name for names in missing for name in names])
        with no_grad():
            for flat, found in zip(self._flats, flagged, strict=True):
                for index, parameter in enumerate(flat.bucket.parameters):
                    if found[index] or not self.finds_unused:
                        self._give(parameter, flat, index)

    def _close(self, flat: _Flat) -> list[str]:
        """Sends a bucket that is not full; the names of parameters that got no gradient."""
        bucket = flat.bucket
        missing = [i for i in range(len(bucket.parameters)) if i not in flat.ready]
        for index in missing:
            flat.fill(index, self.group.size)
        used = [id(p) in self._used for p in bucket.parameters]
        flat.flag(used if self.finds_unused else [i in missing for i in range(len(used))])
        self._pending.append(self.channel.reduce(flat.title, flat.source, flat.result))
        return [bucket.names[i] for i in missing]

    def _give(self, parameter: Any, flat: _Flat, index: int) -> None:
        found = flat.result[flat.starts[index] : flat.stops[index]].reshape(parameter.shape)
        if parameter._grad is None or self.as_views:
            parameter._grad = Tensor._wrap(found if self.as_views else found.copy())
        else:
            parameter._grad.copy_(Tensor._wrap(found))

    def _unused(self, mine: list[str]) -> DistributedError:
        """The same error in all processes, each of which has found that some parameter got no gradient somewhere."""
        everywhere = self.group.gather_objects(mine)
        ranks: dict[str, list[str]] = {}
        for rank, names in enumerate(everywhere):
            for name in names:
                ranks.setdefault(name, []).append(str(rank))
        shown = [f"{name!r} (rank {', '.join(found)})" for name, found in [*ranks.items()][:SHOWN]]
        shown += [f"{len(ranks) - SHOWN} more"] * (len(ranks) > SHOWN)
        return DistributedError(
            f"DistributedDataParallel: the loss does not depend on {len(ranks)} parameters: {', '.join(shown)}",
            remedy="find_unused_parameters=True; or requires_grad_(False) before the module is wrapped",
        )
