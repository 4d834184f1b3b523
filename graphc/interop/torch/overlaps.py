"""Guard for graphs that write to their arguments, by the memory that the arguments of a call share.

AOTAutograd traces such a graph for one pattern of shared memory, and no guard of Dynamo checks that pattern. Calls with
another pattern would give results that differ from PyTorch's eager mode.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import fx
from torch._guards import TracingContext

from graphc.base.errors import FallbackWarning

Sharing = list[tuple[int, int, int, int]]
"""Pairs of tensors that share memory, at least one of them written: their indices and storage offsets."""


def written_arguments(module: fx.GraphModule, count: int) -> frozenset[int]:
    """Return the indices of the ``count`` arguments to which the graph that AOTAutograd is compiling writes.

    Returns all indices where AOTAutograd has merged arguments that share written memory.
    """
    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return frozenset()
    infos = context.fw_metadata.input_info
    own = len(list(module.parameters())) + len(list(module.buffers()))
    if len(infos) != own + count:
        return frozenset(range(count))
    return frozenset(i for i in range(count) if infos[own + i].mutates_data)


class SameOverlaps:
    """Runs compiled code for arguments that share memory as the examples do, and the module itself for others."""

    def __init__(
        self,
        run: Callable[..., Any],
        module: Callable[..., Any],
        examples: Sequence[Any],
        written: Collection[int],
    ):
        """Record how the examples share memory. ``written`` are the indices of written arguments."""
        self._run = run
        self._module = module
        self._tensors = [i for i, e in enumerate(examples) if isinstance(e, torch.Tensor)]
        self._written = frozenset(written)
        self._sharing = self._shared(examples)
        self._checked: list[Any] = []
        """Addresses and shapes of the tensors in the last call that passed the check."""

    def __call__(self, *args: Any) -> Any:
        """Return the results of the compiled code, or of the module."""
        tensors = [args[i] for i in self._tensors]
        addresses = [(x.data_ptr(), x.shape) for x in tensors]
        if addresses != self._checked:
            if self._shared(args) != self._sharing:
                warnings.warn(
                    "PyTorch computes a call: an argument to which the model writes shares memory with others "
                    "differently than when the model was compiled",
                    FallbackWarning,
                    stacklevel=2,
                )
                return self._module(*args)
            self._checked = addresses
        return self._run(*args)

    def _shared(self, args: Sequence[Any]) -> Sharing:
        owners: dict[int, int] = {}
        sharing = []
        for i in sorted(self._tensors, key=lambda i: i not in self._written):
            memory = args[i].untyped_storage()._cdata
            other = owners.setdefault(memory, i) if i in self._written else owners.get(memory, i)
            if other != i:
                sharing.append((i, other, args[i].storage_offset(), args[other].storage_offset()))
        return sharing
