"""DistributedDataParallel: the same module in several processes, each with its part of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.distributed.agreement import agree
from graphc.distributed.channel import Channel
from graphc.distributed.group import Group, group
from graphc.nn.module import Module
from graphc.nn.parallel.buckets import BYTES, FIRST_BYTES, in_buckets


class DistributedDataParallel(Module):
    """A module of which each process has a copy; backward passes give the mean of the gradients of all of them.

    Parameters and buffers are those of rank 0 from the beginning. Gradients travel in buckets of about
    ``bucket_cap_mb`` MiB, the last parameters first.
    """

    def __init__(self, module: Module, bucket_cap_mb: float | None = None, broadcast_buffers: bool = True):
        super().__init__()
        self.module = module
        self.broadcast_buffers = broadcast_buffers
        self.require_backward_grad_sync = True
        """Whether backward passes reduce gradients: not within ``no_sync``."""
        cap = BYTES if bucket_cap_mb is None else int(bucket_cap_mb * (1 << 20))
        trained = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
        if not trained:
            raise ArgumentError("DistributedDataParallel: no parameter requires a gradient", remedy="the module itself")
        agree(group(), "parameters", _table(module), "the same model in all processes")
        self._known = _Known(group(), in_buckets(trained, min(FIRST_BYTES, cap), cap))
        self._broadcast()

    @property
    def buckets(self) -> Any:
        """The plan of the reductions: buckets, first ones first."""
        return self._known.buckets

    @property
    def channel(self) -> Channel:
        """What reduces buckets, in the order in which they are given."""
        return self._known.channel

    def _broadcast(self) -> None:
        """Parameters and buffers become those of rank 0."""
        known = self._known.group
        for tensor in [*self.module.parameters(), *self.module.buffers()]:
            tensor.data.copy_(type(tensor.data)(known.broadcast(tensor.detach().numpy())))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns for this process's part of the batch."""
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it backward passes add up gradients of this process alone; the next one outside reduces the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before


class _Known:
    """What is no part of the module's state."""

    def __init__(self, group: Group, buckets: Any):
        self.group, self.buckets = group, buckets
        self.channel = Channel(group)


def _table(module: Module) -> dict[str, str]:
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return {n: f"{t.dtype.name}{list(t.shape)}{', trained' if t.requires_grad else ''}" for n, t in tensors}
