"""Reductions over processes in a training step's graph: they average gradients over all processes."""

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
from graphc.ops.flow.checkpoint import later
from graphc.ops.movement.shape import concat
from graphc.ops.pointwise import elementwise as ew
from graphc.runtime.host_calls import OPEN
from graphc.steps.step_options import StepOptions
from graphc.tensors.tensor import Tensor
from graphc.tracing.host import lend_python
from graphc.tracing.trace import modules_of

SHOWN = 5
"""Limit on the parameters that a message lists."""


class _ProgramBucket(NamedTuple):
    """The gradients of a program in one bucket."""

    title: str
    channel: Channel
    named: tuple[tuple[str, Any], ...]
    """Names of the parameters, and keys of their gradients."""

    def flat(self, gradients: Mapping[Any, Any]) -> Any:
        """Return this process's contribution to the means, as one array."""
        weight = 1.0 / self.channel.group.size
        contributions = [ew.mul(gradients[key], weight).reshape(-1) for _, key in self.named]
        return concat(*contributions, axis=0)

    def unflattened(self, reduced: Any, gradients: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
        """Yield the means in the shapes of the gradients, with the keys of the gradients."""
        start = 0
        for _, key in self.named:
            gradient = gradients[key]
            yield key, reduced[start : start + gradient.numel()].reshape(gradient.shape)
            start += gradient.numel()


class Reductions:
    """The reductions of a step: the modules that need them, and the agreement of the processes on them."""

    def __init__(self, options: StepOptions):
        self.modules = _distributed(options)
        """DistributedDataParallel modules with several processes."""
        self._held = options.held
        self._agreed: set[tuple[Any, ...]] = set()
        if self.modules and options.first_nan:
            raise ArgumentError(
                "compile_step: first_nan stops the step of one process while the others go on",
                remedy="use loss_scale='dynamic', which all processes follow alike; or run first_nan with one process",
            )

    def check(self) -> None:
        """Raise GradientError inside ``no_sync``, where a step would give the processes different weights."""
        if any(not module.require_backward_grad_sync for module in self.modules):
            raise GradientError(
                "compile_step: a step inside no_sync() updates the weights of each process differently",
                remedy="use compile_step(..., accumulate=N), which reduces the sums of N micro-batches once",
            )

    def append(self, tracer: Any, gradients: Mapping[Any, Any], params: Mapping[Any, Any]) -> dict[Any, Any]:
        """Append reductions to a graph. Return the gradients, with the means over all processes for gradients
        reduced by a module.

        ``params`` maps keys of gradients to parameters. Each bucket but the last is handed over as soon as it is full.
        The last one has no computation to overlap with. It is reduced after the others are done, so that nothing is
        updated if one fails. All processes must call this. Raise DistributedError on all of them where their reductions
        differ.
        """
        buckets = self._agreed_buckets(params)
        if not buckets:
            return dict(gradients)
        buffers: list[Tensor] = []
        for bucket in buckets[:-1]:
            flat = bucket.flat(gradients)
            start = _Start(bucket.title, bucket.channel)
            buffers += flat, lend_python(tracer, f"reduction of {bucket.title}", start, [flat], [_type(flat)])[1]
        flat, end = buckets[-1].flat(gradients), _End(buckets[-1].title, buckets[-1].channel)
        # The call takes every buffer that it waits for, not only the results, so that none is reused before.
        token, last = lend_python(tracer, "reductions", end, [flat, *buffers], [_type(flat)], checked=True)
        means = dict(gradients)
        for bucket, reduced in zip(buckets, [*buffers[1::2], last], strict=True):
            means.update(bucket.unflattened(later(reduced, token), gradients))
        return means

    def run(self, gradients: Mapping[Any, Any], params: Mapping[Any, Any]) -> dict[Any, Any]:
        """Reduce existing gradients immediately; otherwise as ``append``."""
        means = dict(gradients)
        for bucket in self._agreed_buckets(params):
            flat = bucket.flat(gradients).numpy()
            reduced = np.empty_like(flat)
            bucket.channel.reduce_now(bucket.title, flat, reduced)
            means.update(bucket.unflattened(Tensor._wrap(reduced), gradients))
        return means

    def _agreed_buckets(self, params: Mapping[Any, Any]) -> list[_ProgramBucket]:
        buckets = self._program_buckets({id(param): key for key, param in params.items()})
        if buckets:
            self._agree(buckets, params)
        return buckets

    def _program_buckets(self, keys: Mapping[int, Any]) -> list[_ProgramBucket]:
        program_buckets: list[_ProgramBucket] = []
        for module in self.modules:
            missing = [n for b in module.buckets for n, p in _of(b) if id(p) in self._held and id(p) not in keys]
            if missing and not getattr(module, "find_unused_parameters", False):
                raise _unused(missing)
            for bucket in module.buckets:
                named = tuple((name, keys[id(p)]) for name, p in _of(bucket) if id(p) in keys)
                if named:
                    program_buckets.append(
                        _ProgramBucket(f"bucket {len(program_buckets)} ({named[0][0]} ...)", module.channel, named)
                    )
        return program_buckets

    def _agree(self, buckets: Sequence[_ProgramBucket], params: Mapping[Any, Any]) -> None:
        """Compare the reductions with the other processes, unless the same ones were compared before."""
        table = {
            name: f"{params[key].dtype.name}{list(params[key].shape)} in bucket {number}"
            for number, bucket in enumerate(buckets)
            for name, key in bucket.named
        }
        key = tuple(table.items())
        if key not in self._agreed:
            remedy = "use the same model, optimizers and options in all processes"
            agree(buckets[0].channel.group, "reductions of a compiled step", table, remedy)
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
        f"compile_step: the loss does not depend on {', '.join(names[:SHOWN])}{more}, but the processes would wait for "
        "their gradients",
        remedy="pass find_unused_parameters=True to DistributedDataParallel if all processes leave out the same ones; "
        "or call requires_grad_(False) on them",
    )


class _Start:
    """Starts the reduction of a bucket."""

    def __init__(self, title: str, channel: Channel):
        self.title, self.channel = title, channel

    def __call__(self, state: dict[Any, Any], flat: np.ndarray, reduced: np.ndarray) -> None:
        state.setdefault(OPEN, []).append(self.channel.reduce(self.title, flat, reduced))


class _End:
    """Reduces the last bucket after all pending reductions are done, and raises their errors."""

    def __init__(self, title: str, channel: Channel):
        self.title, self.channel = title, channel

    def __call__(self, state: dict[Any, Any], flat: np.ndarray, *buffers: np.ndarray) -> None:
        open_reductions = state.get(OPEN, ())
        for pending in open_reductions:
            pending.settle()
        # Even if a reduction failed: the other processes wait for this one.
        self.channel.reduce_now(self.title, flat, buffers[-1])
        for pending in open_reductions:
            pending.check()
        state.pop(OPEN, None)


def _type(value: Tensor) -> TensorType:
    return TensorType(value.dtype, tuple(value.shape))
