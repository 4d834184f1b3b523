"""Reductions over processes in a training step's graph, which make gradients the means of those of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError, GradientError
from graphc.distributed.agreement import agree
from graphc.distributed.channel import Channel
from graphc.ir.types import TensorType
from graphc.nn.parallel import DistributedDataParallel
from graphc.nn.parallel.buckets import Bucket
from graphc.ops import elementwise as ew
from graphc.ops.checkpoint import later
from graphc.ops.shape import concat
from graphc.runtime.host_calls import OPEN
from graphc.steps.step_options import StepOptions
from graphc.tensors.tensor import Tensor
from graphc.tracing.host import lend_python
from graphc.tracing.trace import modules_of

SHOWN = 5
"""Parameters that a message lists."""


class _Part(NamedTuple):
    """What of a bucket a program has gradients of."""

    title: str
    channel: Channel
    named: tuple[tuple[str, Any], ...]
    """Names, and what the gradients are known by."""

    def flat(self, gradients: Mapping[Any, Any]) -> Any:
        """This process's share of the means, in one array."""
        share = 1.0 / self.channel.group.size
        shares = [ew.mul(gradients[key], share).reshape(-1) for _, key in self.named]
        return concat(*shares, axis=0)

    def taken(self, reduced: Any, gradients: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
        """The means in the shapes of the gradients, by what these are known by."""
        start = 0
        for _, key in self.named:
            gradient = gradients[key]
            yield key, reduced[start : start + gradient.numel()].reshape(gradient.shape)
            start += gradient.numel()


class Reductions:
    """The reductions of a step: which modules ask for them, and what the processes have agreed on."""

    def __init__(self, options: StepOptions):
        self.modules = _distributed(options)
        """Those with several processes."""
        self._held = options.held
        self._agreed: set[tuple[Any, ...]] = set()
        if self.modules and options.first_nan:
            raise ArgumentError(
                "compile_step: first_nan ends the step of one process where the others go on",
                remedy="loss_scale='dynamic', which all processes follow alike; or first_nan in one process",
            )

    def check(self) -> None:
        """Raises GradientError inside of ``no_sync``, where a step would leave the processes with different weights."""
        if any(not module.require_backward_grad_sync for module in self.modules):
            raise GradientError(
                "compile_step: a step inside of no_sync() updates the weights of each process in another way",
                remedy="compile_step(..., accumulate=N), which reduces the sums of N micro-batches once",
            )

    def append(self, tracer: Any, gradients: Mapping[Any, Any], params: Mapping[Any, Any]) -> dict[Any, Any]:
        """Appends reductions to a graph: gives the gradients, with the means of all processes in the places of those
        that a module reduces. ``params`` are the parameters by what gradients are known by.

        Each bucket but the last is handed over as soon as it is full. The last one, beside which there is nothing left
        to compute, is reduced once the others are done, so that nothing is updated where something goes wrong. All
        processes call it; raises DistributedError on all of them where their reductions differ."""
        parts = self._agreed_parts(params)
        if not parts:
            return dict(gradients)
        lent: list[Tensor] = []
        for part in parts[:-1]:
            flat = part.flat(gradients)
            start = _Start(part.title, part.channel)
            lent += flat, lend_python(tracer, f"reduction of {part.title}", start, [flat], [_type(flat)])[1]
        flat, end = parts[-1].flat(gradients), _End(parts[-1].title, parts[-1].channel)
        # Of all that it waits for, and not of the results alone: no other value may lie there before.
        token, last = lend_python(tracer, "reductions", end, [flat, *lent], [_type(flat)], checked=True)
        found = dict(gradients)
        for part, reduced in zip(parts, [*lent[1::2], last], strict=True):
            found.update(part.taken(later(reduced, token), gradients))
        return found

    def run(self, gradients: Mapping[Any, Any], params: Mapping[Any, Any]) -> dict[Any, Any]:
        """The same of gradients that are there, now."""
        found = dict(gradients)
        for part in self._agreed_parts(params):
            flat = part.flat(gradients).numpy()
            reduced = np.empty_like(flat)
            part.channel.reduce_now(part.title, flat, reduced)
            found.update(part.taken(Tensor._wrap(reduced), gradients))
        return found

    def _agreed_parts(self, params: Mapping[Any, Any]) -> list[_Part]:
        parts = self._parts({id(param): key for key, param in params.items()})
        if parts:
            self._agree(parts, params)
        return parts

    def _parts(self, known: Mapping[int, Any]) -> list[_Part]:
        found: list[_Part] = []
        for module in self.modules:
            missing = [n for b in module.buckets for n, p in _of(b) if id(p) in self._held and id(p) not in known]
            if missing and not getattr(module, "find_unused_parameters", False):
                raise _unused(missing)
            for bucket in module.buckets:
                named = tuple((name, known[id(p)]) for name, p in _of(bucket) if id(p) in known)
                if named:
                    found.append(_Part(f"bucket {len(found)} ({named[0][0]} ...)", module.channel, named))
        return found

    def _agree(self, parts: Sequence[_Part], params: Mapping[Any, Any]) -> None:
        """Compares the reductions with those of the other processes, unless the same ones have been compared before."""
        table = {
            name: f"{params[key].dtype.name}{list(params[key].shape)} in bucket {number}"
            for number, part in enumerate(parts)
            for name, key in part.named
        }
        key = tuple(table.items())
        if key not in self._agreed:
            remedy = "the same model, optimizers and options in all processes"
            agree(parts[0].channel.group, "reductions of a compiled step", table, remedy)
            self._agreed.add(key)


def _distributed(options: StepOptions) -> list[Any]:
    roots = [*modules_of(options.model), *(() if options.loss is None else modules_of(options.loss))]
    every = {id(m): m for _, root in roots for m in root.modules() if isinstance(m, DistributedDataParallel)}
    return [module for module in every.values() if module.channel.group.size > 1]


def _of(bucket: Bucket) -> Any:
    return zip(bucket.names, bucket.parameters, strict=True)


def _unused(names: Sequence[str]) -> ArgumentError:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ArgumentError(
        f"compile_step: the loss does not depend on {', '.join(names[:SHOWN])}{more}, whose gradients the processes "
        "would wait for",
        remedy="DistributedDataParallel(..., find_unused_parameters=True), where all processes leave out the same "
        "ones; or requires_grad_(False)",
    )


class _Start:
    """Begins the reduction of a bucket."""

    def __init__(self, title: str, channel: Channel):
        self.title, self.channel = title, channel

    def __call__(self, state: dict[Any, Any], flat: np.ndarray, reduced: np.ndarray) -> None:
        state.setdefault(OPEN, []).append(self.channel.reduce(self.title, flat, reduced))


class _End:
    """Reduces the last bucket when all that was begun is done; raises what went wrong."""

    def __init__(self, title: str, channel: Channel):
        self.title, self.channel = title, channel

    def __call__(self, state: dict[Any, Any], flat: np.ndarray, *lent: np.ndarray) -> None:
        begun = state.get(OPEN, ())
        for pending in begun:
            pending.settle()
        # Whatever has become of the others, other processes wait for this one.
        self.channel.reduce_now(self.title, flat, lent[-1])
        for pending in begun:
            pending.check()
        state.pop(OPEN, None)


def _type(value: Tensor) -> TensorType:
    return TensorType(value.dtype, tuple(value.shape))
