"""Data parallelism: one module on parts of a batch."""

from __future__ import annotations

from typing import Any

from graphc.errors import ArgumentError
from graphc.nn.module import Module
from graphc.ops.shape import concat
from graphc.tensor import Tensor


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Calls ``module`` on one part of the batch per entry of ``device_ids`` and joins the outputs along ``dim``.

    The parts run one after another in the same memory, so gradients of all parts add up in the module's parameters as
    they do on several devices. Without ``device_ids`` the module is called once.
    """
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    kwargs = module_kwargs or {}
    parts = len(device_ids) if device_ids else 1
    if parts == 1:
        return module(*args, **kwargs)
    split = [a.chunk(parts, dim) if isinstance(a, Tensor) else (a,) * parts for a in args]
    count = min((len(s) for a, s in zip(args, split, strict=True) if isinstance(a, Tensor)), default=1)
    return _gather([module(*(s[i] for s in split), **kwargs) for i in range(count)], dim)


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
    """A module whose call is ``data_parallel`` of the one it holds."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        self.module = module
        self.device_ids = list(device_ids) if device_ids else []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module returns for the whole batch."""
        return data_parallel(self.module, inputs, self.device_ids, self.output_device, self.dim, kwargs)
