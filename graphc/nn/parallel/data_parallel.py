"""Data parallelism in threads: one module on chunks of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.eager.dispatcher import EAGER
from graphc.nn.module import Module
from graphc.ops.movement.shape import concat
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of, front

__all__ = ["DataParallel"]


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call ``module`` on one chunk of the batch per entry of ``device_ids`` and join the outputs along ``dim``.

    The chunks run in threads that share the module's memory, so the gradients of all chunks add up in its parameters,
    as they do on several devices. Chunks run one after another where their order matters: statistics or random draws in
    training, hooks, a trace. Without ``device_ids`` the module is called once.
    """
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    kwargs = module_kwargs or {}
    chunks = len(device_ids) if device_ids else 1
    if chunks == 1:
        return module(*args, **kwargs)
    split = [a.chunk(chunks, dim) if isinstance(a, Tensor) else (a,) * chunks for a in args]
    count = min((len(s) for a, s in zip(args, split, strict=True) if isinstance(a, Tensor)), default=1)
    calls = [functools.partial(module, *(s[i] for s in split), **kwargs) for i in range(count)]
    return _gather(_in_threads(module, calls) if _is_orderless(module) else [call() for call in calls], dim)


def _is_orderless(module: Module) -> bool:
    """Check whether calls of the module may overlap: no call writes data that another one reads."""
    if front() is not EAGER:
        return False
    for m in module.modules():
        if m._forward_hooks or m._forward_pre_hooks or m._backward_hooks:
            return False
        if m.training and (m._buffers or getattr(m, "p", 0) or getattr(m, "dropout", 0)):
            return False
    return True


def _in_threads(module: Module, calls: list[Callable[[], Any]]) -> list[Any]:
    # Kept alive until the end, so that all threads use the same leaf of the autograd graph for a parameter.
    edges = [edge_of(p) for p in module.parameters() if p.requires_grad]
    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(copy_context().run, call) for call in calls]
        results = [future.result() for future in futures]
    del edges
    return results


def _gather(outputs: list[Any], dim: int) -> Any:
    first = outputs[0]
    if isinstance(first, Tensor):
        flat = [o.reshape(1) if not o.shape else o for o in outputs]
        return concat(*flat, axis=dim % len(flat[0].shape))
    if isinstance(first, dict):
        return {key: _gather([o[key] for o in outputs], dim) for key in first}
    if isinstance(first, (tuple, list)):
        return type(first)(_gather(list(items), dim) for items in zip(*outputs, strict=True))
    raise ArgumentError(f"data_parallel: outputs of type {type(first).__name__} cannot be joined")


class DataParallel(Module):
    """A module that calls the wrapped ``module`` through ``data_parallel``."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        self.module = module
        self.device_ids = list(device_ids) if device_ids else []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the module's outputs for the whole batch."""
        return data_parallel(self.module, inputs, self.device_ids, self.output_device, self.dim, kwargs)
