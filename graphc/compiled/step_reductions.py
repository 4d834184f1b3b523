"""Reductions over processes in a training step's graph, which make gradients the means of those of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError, GradientError
from graphc.compiled.step_options import StepOptions
from graphc.distributed.agreement import agree
from graphc.distributed.channel import Channel
from graphc.ir.types import TensorType
from graphc.nn.parallel import DistributedDataParallel
from graphc.nn.parallel.buckets import Bucket
from graphc.ops import elementwise as ew
from graphc.ops.checkpoint import later
from graphc.ops.shape import concat
from graphc.runtime.host_calls import OPEN
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


class Reductions:
    """The reductions of a step: which modules ask for them, and what has been agreed on."""

    def __init__(self, options: StepOptions):
        self.modules = _distributed(options)
        """Those with several processes."""
        self._agreed: set[tuple[Any, ...]] = set()

    def check(self) -> None:
        """Raises GradientError inside of ``no_sync``, where a step would leave the processes with different weights."""
        if any(not module.require_backward_grad_sync for module in self.modules):
            raise GradientError(
                "compile_step: a step inside of no_sync() updates the weights of each process in another way",
                remedy="compile_step(..., accumulate=N), which reduces the sums of N micro-batches once",
            )

    def means(self, tracer: Any, gradients: Mapping[Any, Any], params: Mapping[Any, Any], held: set[int]) -> Any:
        """The gradients with the means of all processes in the places of those that a module reduces. ``params`` are
        the parameters by what gradients are known by, ``held`` all that the step updates, by identity. All processes
        call it; raises DistributedError on all of them where their reductions differ."""
        parts = self._parts({id(param): key for key, param in params.items()}, held)
        if not parts:
            return gradients
        self._agree(parts, params)
        begun: list[tuple[_Part, Tensor, Tensor]] = []
        for part in parts:
            share = 1.0 / part.channel.group.size
            given = [ew.mul(gradients[key], share) for _, key in part.named]
            flat: Any = concat(*[g.reshape(-1) for g in given], axis=0) if len(given) > 1 else given[0].reshape(-1)
            start = _Start(part.title, part.channel)
            kind = TensorType(flat.dtype, tuple(flat.shape))
            begun.append((part, flat, lend_python(tracer, f"reduction of {part.title}", start, [flat], [kind])[1]))
        memory = [tensor for _, *both in begun for tensor in both]
        token = lend_python(tracer, "reductions", _wait, memory, checked=True)[0]
        found = dict(gradients)
        for part, _, reduced in begun:
            done: Any = later(reduced, token)
            at = 0
            for _, key in part.named:
                before = gradients[key]
                found[key] = done[at : at + before.numel()].reshape(before.shape)
                at += before.numel()
        return found

    def _parts(self, known: Mapping[int, Any], held: set[int]) -> list[_Part]:
        found: list[_Part] = []
        for module in self.modules:
            missing = [n for b in module.buckets for n, p in _of(b) if id(p) in held and id(p) not in known]
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


def _wait(state: dict[Any, Any], *memory: np.ndarray) -> None:
    """Returns when all that was begun is done; raises what went wrong."""
    for pending in state[OPEN]:
        pending.wait()
    del state[OPEN]
