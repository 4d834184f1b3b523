"""DistributedDataParallel: the same module in several processes, each with its own chunk of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphc.autograd import engine
from graphc.base.errors import ArgumentError, MemberError
from graphc.distributed.agreement import agree
from graphc.distributed.channel import Channel
from graphc.distributed.collectives import broadcast
from graphc.distributed.group import Group, group
from graphc.nn.module import Module
from graphc.nn.parallel.buckets import BYTES, FIRST_BYTES, Bucket, in_buckets
from graphc.nn.parallel.graph_reductions import GraphReductions
from graphc.nn.parallel.reducer import Reducer, is_reduced_by_graph
from graphc.tape.grad_mode import is_grad_enabled, no_grad
from graphc.tensors.free_functions import cat
from graphc.tensors.placement import on_host
from graphc.tensors.share import sharing
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.host import pass_gradients, watch_gradients

_ABSENT = {
    "join": "use DistributedSampler, which gives all processes the same number of samples",
    "register_comm_hook": "leave it out: the process group sums the buckets",
}
"""Methods of PyTorch's class that are missing here, and remedies."""


class DistributedDataParallel(Module):
    """A module replicated in several processes; a backward pass averages the gradients of all replicas.

    All processes construct it together, call it equally often, and run equally many backward passes. Rank 0 sends its
    parameters and buffers to the others at construction (not with ``init_sync=False``), and its buffers again at each
    call in training whose gradients are reduced (``broadcast_buffers``).

    Gradients are reduced in buckets of about ``bucket_cap_mb`` MiB (25; the first one 1), last parameters first, while
    the backward pass runs. When ``backward()`` returns, ``grad`` of each parameter is the mean over all processes. With
    ``gradient_as_bucket_view`` it is a view of the bucket, and the next pass overwrites it.

    A parameter without a gradient in some process is an error in all of them, which names it. With
    ``find_unused_parameters`` (or ``static_graph``) it counts as zeros; if no process has a gradient, ``grad`` stays
    unchanged. ``torch.autograd.grad`` reduces nothing. Within a call each process draws the random numbers of its own
    rows of the whole batch: row i of rank r is row ``i * size + r``, in the order in which DistributedSampler deals
    them.

    ``process_group`` is a Group; ``device_ids`` may only name the device of the parameters. Raises ArgumentError when
    no parameter requires a gradient, and DistributedError when the modules of the processes differ.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Group | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ):
        super().__init__()
        self.module = module
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = True
        """True when backward passes reduce gradients; False within ``no_sync``."""
        self.bucket_bytes_cap = BYTES if bucket_cap_mb is None else int(bucket_cap_mb * (1 << 20))
        self._check(dim, (*(device_ids or ()), *(() if output_device is None else (output_device,))))
        self._connect(process_group or group())
        if init_sync:
            self._send_state()

    def _check(self, dim: int, devices: Any) -> None:
        """Raise ArgumentError for unsupported arguments."""
        trained = [p for p in self.module.parameters() if p.requires_grad]
        if not trained:
            raise ArgumentError(
                "DistributedDataParallel: no parameter requires a gradient",
                remedy="call the module without wrapping it",
            )
        if dim != 0:
            raise ArgumentError(
                f"DistributedDataParallel: dim={dim} is not supported",
                remedy="make the first dimension that of the batch, dim=0",
            )
        device = str(trained[0].device)
        if [d for d in devices if str(d) != device]:
            raise ArgumentError(
                f"DistributedDataParallel: device_ids={[*map(str, devices)]}, but the parameters are on {device}",
                remedy="pass device_ids=None to use the device of the parameters",
            )

    def _connect(self, chosen: Group) -> None:
        """Check that all processes hold the same module, plan the reductions and open a channel for them."""
        agree(chosen, "parameters", _table(self.module), "construct the same model in all processes")
        trained = [(n, p) for n, p in self.module.named_parameters() if p.requires_grad]
        buckets = in_buckets(trained, min(FIRST_BYTES, self.bucket_bytes_cap), self.bucket_bytes_cap)
        options = self.find_unused_parameters or self.static_graph, self.gradient_as_bucket_view
        self._reducer = Reducer(chosen, Channel(chosen), buckets, *options)
        self._reducer.listen()

    @property
    def process_group(self) -> Group:
        """Processes that train the module together."""
        return self._reducer.group

    @property
    def buckets(self) -> list[Bucket]:
        """Buckets in the order of their reduction."""
        return [*self._reducer.buckets]

    @property
    def channel(self) -> Channel:
        """Channel that reduces buckets in the order in which they are submitted."""
        return self._reducer.channel

    def _send_state(self) -> None:
        """Copy rank 0's parameters and buffers to all processes."""
        with no_grad():
            for tensor in [*self.module.parameters(), *self.module.buffers()]:
                values = self.process_group.broadcast(np.asarray(on_host(tensor._data)))
                tensor.copy_(Tensor._wrap(values))

    def _send_buffers(self) -> None:
        """Copy rank 0's buffers to all processes, in one message per element type."""
        kinds: dict[Any, list[Tensor]] = {}
        for buffer in self.module.buffers():
            kinds.setdefault(buffer.dtype, []).append(buffer)
        with no_grad():
            for buffers in kinds.values():
                chunks = broadcast(cat([b.reshape(-1) for b in buffers])).split([b.numel() for b in buffers])
                for buffer, chunk in zip(buffers, chunks, strict=True):
                    buffer.copy_(chunk.reshape(buffer.shape))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the module's output for this process's chunk of the batch."""
        reduces = self.require_backward_grad_sync and is_grad_enabled()
        if reduces and self.training and self.broadcast_buffers and self.process_group.size > 1:
            self._send_buffers()
        with sharing(self.process_group.rank, self.process_group.size):
            output = self.module(*args, **kwargs)
        return self._watched(output) if reduces and not is_reduced_by_graph() else output

    def _watched(self, output: Any) -> Any:
        """Return the output; a backward pass that reaches it tells the reducer to begin."""
        leaves, structure = flatten(output)
        chosen = [t for t in leaves if t._requires_grad and t._node is not None]
        if not hasattr(front(), "host"):  # nothing is traced
            for tensor in chosen:
                tensor.register_hook(self._begin)
            return output
        watched = watch_gradients(front(), "DistributedDataParallel", self._begin_compiled, chosen)
        call = _TracedCall(self, watched)
        for node, index in [(t._node, t._index) for t in watched]:
            assert node is not None
            node.hooks_of(index)[id(call)] = call
        fresh = {id(t): w for t, w in zip(chosen, watched, strict=True)}
        return unflatten(structure, [fresh.get(id(t), t) for t in leaves])

    def _begin(self, gradient: Tensor) -> None:
        self._reducer.begin()

    def _begin_compiled(self, gradients: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        self._reducer.begin()
        return gradients

    def sharded_state_dict(self) -> dict[str, Any]:
        """Return the entries of ``state_dict`` that this process saves, for ``graphc.distributed.checkpoint``.

        Where each call overwrites the buffers with rank 0's, only rank 0 saves buffers.
        """
        state = self.state_dict()
        is_first = self.process_group.rank == 0 or not self.broadcast_buffers
        left_out = () if is_first else [f"module.{name}" for name, _ in self.module.named_buffers()]
        return {name: value for name, value in state.items() if name not in left_out}

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate gradients of this process alone for calls within the block.

        The next backward pass of a call outside reduces the sums.
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def __getattr__(self, name: str) -> Any:
        if name in _ABSENT:
            raise MemberError(f"'DistributedDataParallel' object has no attribute {name!r}", remedy=_ABSENT[name])
        return super().__getattr__(name)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_reducer"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._connect(group())


class _TracedCall:
    """One call of a module in a trace. The graph reduces the gradients where it holds the backward pass.

    Else the reducer acts in each backward pass outside.
    """

    is_traced_hook = True

    def __init__(self, module: DistributedDataParallel, watched: Sequence[Tensor]):
        self._module, self._watched = module, watched

    def __call__(self, gradient: Tensor) -> None:
        """Note that a traced backward pass reaches an output: reduce the gradients at its end."""
        for tensor in self._watched:
            pass_gradients(tensor)
        outermost = engine.current_pass().outermost
        is_reduced = outermost.accumulate and self._module.process_group.size > 1
        if is_reduced and self._module not in outermost.reduced:
            outermost.reduced.append(self._module)
            outermost.finishers.append(self._reduce)

    def _reduce(self) -> None:
        """Replace the gradients by their means over all processes, in the graph."""
        params = [p for bucket in self._module.buckets for p in bucket.parameters if p.grad is not None]
        with no_grad():
            means = GraphReductions([self._module]).reduced({id(p): p.grad for p in params})
        for param in params:
            param.grad = means[id(param)]


def _table(module: Module) -> dict[str, str]:
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return {n: f"{t.dtype.name}{list(t.shape)}{', trained' if t.requires_grad else ''}" for n, t in tensors}
