"""How the elements of PyTorch's tensors lie in memory, and what a program takes them for: dense arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from graphc.interop.torch.fx import memory_of
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True)
class Layout:
    """An order of dimensions in which elements are dense. A program takes such a tensor for an array with its
    dimensions in that order, whatever order the tensor has them in (channels last, a transposed weight), so that no
    element moves."""

    order: tuple[int, ...]
    """From the dimension with the largest stride to that with the smallest."""

    @property
    def is_plain(self) -> bool:
        """Whether it is the order that the tensor has them in."""
        return self.order == tuple(range(len(self.order)))

    def shape(self, sizes: Sequence[Any]) -> tuple[Any, ...]:
        """The shape of the array for these sizes of the tensor."""
        return tuple([sizes[d] for d in self.order])

    def sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The sizes of the tensor for this shape of the array."""
        return tuple([shape[self.order.index(d)] for d in range(len(self.order))])

    def strides(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """The strides of the tensor, in elements."""
        found, step = [1] * len(sizes), 1
        for d in reversed(self.order):
            found[d] = step
            step *= max(sizes[d], 1)
        return tuple(found)

    def fits(self, sizes: Sequence[int], strides: Sequence[int]) -> bool:
        """Whether a tensor of these sizes and strides lies so. What the stride of a dimension with one element is, and
        those of a tensor with none, means nothing."""
        wanted = self.strides(sizes)
        return 0 in sizes or all(s == 1 or a == b for s, a, b in zip(sizes, strides, wanted, strict=True))

    def viewed(self, array: Tensor) -> Tensor:
        """The tensor of an array."""
        return array if self.is_plain else array.permute(*[self.order.index(d) for d in range(len(self.order))])

    def stored(self, tensor: Tensor) -> Tensor:
        """The array of a tensor."""
        return tensor if self.is_plain else tensor.permute(*self.order)

    def held(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor, without history, where it lies so, else a copy that does."""
        found = tensor.detach()
        if self.fits(found.shape, found.stride()) and not is_lazy(found):
            return found
        sizes = tuple(found.shape)
        return torch.empty_strided(sizes, self.strides(sizes), dtype=found.dtype).copy_(found)

    def array(self, tensor: torch.Tensor) -> np.ndarray:
        """The array of a tensor, in the same memory where it lies so."""
        found = self.held(tensor)
        return memory_of(found if self.is_plain else found.permute(self.order))


def layout_of(example: torch.Tensor) -> Layout:
    """The order in which a tensor lies, which may be a fake one. Sizes that calls give are taken for what they are
    expected to be; where nobody knows, it is the order that the tensor has."""
    sizes, strides = ([_expected(s) for s in part] for part in (example.shape, example.stride()))
    plain = Layout(tuple(range(len(sizes))))
    if None in sizes or None in strides or plain.fits(sizes, strides):  # type: ignore[arg-type]
        return plain
    return Layout(tuple(sorted(plain.order, key=lambda d: -(strides[d] or 0))))


def exact_strides(example: torch.Tensor) -> tuple[int, ...] | None:
    """The strides that PyTorch gives a result, where it is dense and no call changes them."""
    return tuple(example.stride()) if is_dense(example) else None


def is_dense(example: torch.Tensor) -> bool:
    """Whether a tensor has no gaps and nothing twice, in sizes that no call changes."""
    sizes, strides = tuple(example.shape), tuple(example.stride())
    return all(isinstance(s, int) for s in (*sizes, *strides)) and layout_of(example).fits(sizes, strides)


def is_lazy(tensor: torch.Tensor) -> bool:
    """Whether the memory of a tensor does not hold its elements: those of conjugated views, and of their imaginary
    parts, change their sign when they are read, and known zeros have no memory."""
    return tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor()


def _expected(size: Any) -> int | None:
    """What a size is, or is expected to be."""
    if isinstance(size, int):
        return size
    node = size.node
    found = node.maybe_as_int()
    return node.hint if found is None and node.has_hint() else found
