"""Graphs that write to their arguments: a call whose arguments share memory otherwise than the examples did.

AOTAutograd traces such a graph for the memory that what is written shares with others, and no guard of Dynamo sees
whether a call's arguments share the same: what is then written and read is not what PyTorch's eager mode does.
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
"""Of each two tensors that share memory to one of which is written: their numbers and where in it they begin."""


def written_arguments(module: fx.GraphModule, count: int) -> frozenset[int]:
    """To which of ``count`` arguments the graph writes that AOTAutograd is having compiled for ``module``. All of them
    where it has put some together, the memory of which is shared and written."""
    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return frozenset()
    known = context.fw_metadata.input_info
    own = len(list(module.parameters())) + len(list(module.buffers()))
    if len(known) != own + count:
        return frozenset(range(count))
    return frozenset(i for i in range(count) if known[own + i].mutates_data)


class SameOverlaps:
    """Runs compiled code for arguments that share memory as the examples do, and the module itself for others."""

    def __init__(
        self,
        run: Callable[..., Any],
        module: Callable[..., Any],
        examples: Sequence[Any],
        written: Collection[int],
    ):
        """``written`` are the numbers of the arguments that are written to."""
        self._run = run
        self._module = module
        self._tensors = [i for i, e in enumerate(examples) if isinstance(e, torch.Tensor)]
        self._written = frozenset(written)
        self._sharing = self._shared(examples)
        self._seen: list[Any] = []
        """Where the tensors of the last call lay, of what shapes, that shared memory as the examples do."""

    def __call__(self, *args: Any) -> Any:
        """What the compiled code gives, or the module."""
        tensors = [args[i] for i in self._tensors]
        places = [(x.data_ptr(), x.shape) for x in tensors]
        if places != self._seen:
            if self._shared(args) != self._sharing:
                warnings.warn(
                    "PyTorch computes a call: an argument to which the model writes shares memory with others in "
                    "another way than when it was compiled",
                    FallbackWarning,
                    stacklevel=2,
                )
                return self._module(*args)
            self._seen = places
        return self._run(*args)

    def _shared(self, args: Sequence[Any]) -> Sharing:
        owners: dict[int, int] = {}
        found = []
        for i in sorted(self._tensors, key=lambda i: i not in self._written):
            memory = args[i].untyped_storage()._cdata
            other = owners.setdefault(memory, i) if i in self._written else owners.get(memory, i)
            if other != i:
                found.append((i, other, args[i].storage_offset(), args[other].storage_offset()))
        return found
