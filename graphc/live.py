"""What a compiled graph needs of the outside: tensors as they are now, and checks that nothing else has changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphc.tensor import Tensor
from graphc.trace import Constant


class Modules:
    """The modules of a model, by the dictionaries that hold their flags and children."""

    def __init__(self, roots: Iterable[Any]):
        seen: dict[int, Any] = {}
        for root in roots:
            for module in root.modules():
                seen[id(module)] = module
        self.modules = list(seen.values())
        self._fields = [vars(m) for m in self.modules]
        self._children = [(f["_modules"], tuple(f["_modules"].values())) for f in self._fields if "_modules" in f]

    def training(self) -> tuple[bool, ...]:
        """The training flag of every module."""
        return tuple([f.get("training", True) for f in self._fields])

    def is_current(self) -> bool:
        """Whether no child was added, removed or replaced."""
        for now, then in self._children:
            if len(now) != len(then):
                return False
            for a, b in zip(now.values(), then, strict=True):
                if a is not b:
                    return False
        return True

    def places(self) -> dict[int, tuple[dict[Any, Any], Any]]:
        """For each parameter and buffer, by identity, the dictionary and key that hold it."""
        found: dict[int, tuple[dict[Any, Any], Any]] = {}
        for fields in self._fields:
            for table in (fields.get("_parameters"), fields.get("_buffers")):
                for key, tensor in (table or {}).items():
                    if tensor is not None:
                        found.setdefault(id(tensor), (table, key))
        return found


class Slot:
    """Where a tensor outside is found at each call, and what it must be like."""

    __slots__ = ("dtype", "key", "requires_grad", "shape", "table")

    def __init__(self, tensor: Tensor, place: tuple[dict[Any, Any], Any] | None):
        self.table, self.key = place or ({0: tensor}, 0)
        self.dtype = tensor.dtype
        self.shape = tensor.shape
        self.requires_grad = tensor._requires_grad

    def tensor(self) -> Any:
        """The tensor, or None where there is none any more."""
        return self.table.get(self.key)

    def fits(self) -> bool:
        """Whether the tensor there has the type and flags that the graph was made for."""
        found = self.table.get(self.key)
        return (
            found is not None
            and found.dtype is self.dtype
            and found.shape == self.shape
            and found._requires_grad is self.requires_grad
        )


class Binding:
    """The arrays of parameters and states in the order that a program takes them."""

    def __init__(self, slots: Sequence[Slot], written: Sequence[bool]):
        self.slots = tuple(slots)
        self.written = tuple(i for i, w in enumerate(written) if w)
        self._tensors: tuple[Any, ...] = ()
        self._arrays: tuple[np.ndarray, ...] = ()

    def fits(self) -> bool:
        """Whether every tensor has the type and flags that the graph was made for."""
        tensors = self._tensors
        if len(tensors) == len(self.slots):
            for slot, tensor, array in zip(self.slots, tensors, self._arrays, strict=True):
                if (
                    slot.table.get(slot.key) is not tensor
                    or tensor._data is not array
                    or tensor._requires_grad is not slot.requires_grad
                ):
                    break
            else:
                return True
        if not all(slot.fits() for slot in self.slots):
            return False
        self._tensors = tuple(slot.tensor() for slot in self.slots)
        self._arrays = tuple(t._data for t in self._tensors)
        return True

    def tensors(self) -> tuple[Any, ...]:
        """The tensors as ``fits`` found them."""
        return self._tensors

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Their data; the same tuple while nothing was replaced."""
        return self._arrays

    def note_writes(self) -> None:
        """Counts a write to every tensor that the program writes."""
        for i in self.written:
            counter = self._tensors[i]._counter
            if counter is not None:
                counter[0] += 1


def are_current(constants: Iterable[Constant]) -> bool:
    """Whether no captured constant was written to since."""
    return all(c.is_current() for c in constants)
