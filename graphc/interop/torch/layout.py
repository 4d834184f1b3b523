"""Memory layout of PyTorch's tensors, which programs take for dense arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from graphc.base.records import dataclass
from graphc.interop.torch.fx import memory_of
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True)
class Layout:
    """Order of dimensions in which the elements are dense.

    A program takes such a tensor for an array with its dimensions in that order, whatever their order in the tensor
    (channels last, a transposed weight). No element moves.
    """

    order: tuple[int, ...]
    """Dimensions from the largest stride to the smallest."""

    @property
    def is_plain(self) -> bool:
        """Check whether the order equals the order of the tensor's dimensions."""
        return self.order == tuple(range(len(self.order)))

    def shape(self, sizes: Sequence[Any]) -> tuple[Any, ...]:
        """Return the shape of the array for these sizes of the tensor."""
        return tuple([sizes[d] for d in self.order])

    def sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the sizes of the tensor for this shape of the array."""
        return tuple([shape[self.order.index(d)] for d in range(len(self.order))])

    def strides(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the strides of the tensor, in elements."""
        steps, step = [1] * len(sizes), 1
        for d in reversed(self.order):
            steps[d] = step
            step *= max(sizes[d], 1)
        return tuple(steps)

    def fits(self, sizes: Sequence[int], strides: Sequence[int]) -> bool:
        """Check whether a tensor of these sizes and strides has this layout.

        Ignores the strides of dimensions with one element, and of tensors without elements.
        """
        expected = self.strides(sizes)
        return 0 in sizes or all(s == 1 or a == b for s, a, b in zip(sizes, strides, expected, strict=True))

    def viewed(self, array: Tensor) -> Tensor:
        """Return the tensor of an array."""
        return array if self.is_plain else array.permute(*[self.order.index(d) for d in range(len(self.order))])

    def stored(self, tensor: Tensor) -> Tensor:
        """Return the array of a tensor."""
        return tensor if self.is_plain else tensor.permute(*self.order)

    def held(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor, detached, if it has this layout, else a copy in this layout."""
        detached = tensor.detach()
        if self.fits(detached.shape, detached.stride()) and not is_lazy(detached):
            return detached
        sizes = tuple(detached.shape)
        return torch.empty_strided(sizes, self.strides(sizes), dtype=detached.dtype).copy_(detached)

    def array(self, tensor: torch.Tensor) -> np.ndarray:
        """Return the array of a tensor, in the same memory if the tensor has this layout."""
        dense = self.held(tensor)
        return memory_of(dense if self.is_plain else dense.permute(self.order))


def layout_of(example: torch.Tensor) -> Layout:
    """Return the layout of a tensor, which may be fake.

    Open sizes count with their hints. Without hints, the order is the order of the tensor's dimensions.
    """
    sizes, strides = ([_expected(s) for s in values] for values in (example.shape, example.stride()))
    plain = Layout(tuple(range(len(sizes))))
    if None in sizes or None in strides or plain.fits(sizes, strides):  # type: ignore[arg-type]
        return plain
    return Layout(tuple(sorted(plain.order, key=lambda d: -(strides[d] or 0))))


def exact_strides(example: torch.Tensor) -> tuple[int, ...] | None:
    """Return the strides of a result in PyTorch, if it is dense and no call changes them."""
    return tuple(example.stride()) if is_dense(example) else None


def is_dense(example: torch.Tensor) -> bool:
    """Check whether a tensor has neither gaps nor overlaps, with fixed sizes."""
    sizes, strides = tuple(example.shape), tuple(example.stride())
    return all(isinstance(s, int) for s in (*sizes, *strides)) and layout_of(example).fits(sizes, strides)


def is_lazy(tensor: torch.Tensor) -> bool:
    """Check whether the memory of a tensor does not hold its elements.

    Elements of conjugated views, and of their imaginary parts, change their sign when read. Zero tensors have no
    memory.
    """
    return tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor()


def _expected(size: Any) -> int | None:
    """Return a size or its hint."""
    if isinstance(size, int):
        return size
    node = size.node
    fixed = node.maybe_as_int()
    return node.hint if fixed is None and node.has_hint() else fixed
