"""Reductions of gradients over processes as part of a graph, or immediately: they average over all processes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.distributed.agreement import agree
from graphc.distributed.channel import Channel, LentEnd, LentStart
from graphc.ir.types import TensorType
from graphc.nn.parallel.buckets import Bucket
from graphc.ops.flow.checkpoint import later
from graphc.ops.movement.shape import concat
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.host import lend_python
from graphc.tracing.trace import is_tracing

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


class GraphReductions:
    """The reductions of gradients of some modules, and the agreement of the processes on them."""

    def __init__(self, modules: Sequence[Any]):
        self.modules = modules
        """DistributedDataParallel modules with several processes."""
        self._agreed: set[tuple[Any, ...]] = set()

    def reduced(self, gradients: Mapping[int, Any], held: Collection[int] | None = None) -> dict[int, Any]:
        """Return the gradients, by ``id`` of the parameter, with means over all processes for those in buckets.

        Only parameters in ``held`` need a gradient; None is all. All processes must call this. Raise DistributedError
        on all of them where their reductions differ.
        """
        buckets = self._program_buckets(gradients, held)
        if buckets:
            self._agree(buckets, gradients)
        if buckets and is_tracing():
            return self._appended(front(), buckets, gradients)
        means = dict(gradients)
        for bucket in buckets:
            flat = bucket.flat(gradients).numpy()
            reduced = np.empty_like(flat)
            bucket.channel.reduce_now(bucket.title, flat, reduced)
            means.update(bucket.unflattened(Tensor._wrap(reduced), gradients))
        return means

    def _appended(self, tracer: Any, buckets: Sequence[_ProgramBucket], gradients: Mapping[Any, Any]) -> dict[Any, Any]:
        """Append the reductions to a graph.

        Each bucket but the last is handed over as soon as it is full. The last one has no computation to overlap with.
        It is reduced after the others are done, so that nothing is updated if one fails.
        """
        buffers: list[Tensor] = []
        for bucket in buckets[:-1]:
            flat = bucket.flat(gradients)
            start = LentStart(bucket.title, bucket.channel)
            buffers += flat, lend_python(tracer, f"reduction of {bucket.title}", start, [flat], [_type(flat)])[1]
        flat, end = buckets[-1].flat(gradients), LentEnd(buckets[-1].title, buckets[-1].channel)
        # The call takes every buffer that it waits for, not only the results, so that none is reused before.
        token, last = lend_python(tracer, "reductions", end, [flat, *buffers], [_type(flat)], checked=True)
        means = dict(gradients)
        for bucket, reduced in zip(buckets, [*buffers[1::2], last], strict=True):
            means.update(bucket.unflattened(later(reduced, token), gradients))
        return means

    def _program_buckets(self, keys: Mapping[int, Any], held: Collection[int] | None) -> list[_ProgramBucket]:
        program_buckets: list[_ProgramBucket] = []
        for module in self.modules:
            trained = [(n, p) for b in module.buckets for n, p in _of(b) if held is None or id(p) in held]
            missing = [n for n, p in trained if id(p) not in keys]
            if missing and not getattr(module, "find_unused_parameters", False):
                raise _unused(missing)
            for bucket in module.buckets:
                named = tuple((name, id(p)) for name, p in _of(bucket) if id(p) in keys)
                if named:
                    program_buckets.append(
                        _ProgramBucket(f"bucket {len(program_buckets)} ({named[0][0]} ...)", module.channel, named)
                    )
        return program_buckets

    def _agree(self, buckets: Sequence[_ProgramBucket], gradients: Mapping[int, Any]) -> None:
        """Compare the reductions with the other processes, unless the same ones were compared before."""
        table = {
            name: f"{gradients[key].dtype.name}{list(gradients[key].shape)} in bucket {number}"
            for number, bucket in enumerate(buckets)
            for name, key in bucket.named
        }
        key = tuple(table.items())
        if key not in self._agreed:
            remedy = "use the same model, optimizers and options in all processes"
            agree(buckets[0].channel.group, "reductions of compiled code", table, remedy)
            self._agreed.add(key)


def _of(bucket: Bucket) -> Any:
    return zip(bucket.names, bucket.parameters, strict=True)


def _unused(names: Sequence[str]) -> ArgumentError:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ArgumentError(
        f"the loss does not depend on {', '.join(names[:SHOWN])}{more}, but the processes would wait for "
        "their gradients",
        remedy="pass find_unused_parameters=True to DistributedDataParallel if all processes leave out the same ones; "
        "or call requires_grad_(False) on them",
    )


def _type(value: Tensor) -> TensorType:
    return TensorType(value.dtype, tuple(value.shape))
