"""Rules of ATen operators that move elements: views, slices, concatenations, and element type conversions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import UnsupportedError
from graphc.interop.aten.registry import rule, same
from graphc.nn import functional as F
from graphc.tensors import creation, functions
from graphc.tensors import free_functions as free
from graphc.tensors.tensor import Tensor

same("permute flip roll diagonal diag_embed tril triu unsqueeze rot90 cat stack narrow chunk")
same("unsqueeze_ t_ detach_ squeeze_ diff")
same("squeeze_", "dim dims")
same("broadcast_to column_stack hstack vstack pixel_shuffle pixel_unshuffle channel_shuffle tile")
same("movedim", "int intlist")
same("squeeze", "default dim dims")
same("select", "int")
same("unbind", "int")
same("meshgrid", "default indexing")
same("select_scatter as_strided")


@rule("view", "_unsafe_view", "reshape", "_reshape_alias")
def view(self: Tensor, size: Sequence[int], stride: Any = None) -> Tensor:
    return self.reshape(tuple(size))


@rule("_reshape_copy")
def reshape_copy(self: Tensor, size: Sequence[int]) -> Tensor:
    return self.reshape(tuple(size)).clone()


@rule("as_strided_scatter")
def as_strided_scatter(
    self: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Write ``src`` into a copy of the tensor from an offset on, by strides.

    No element may be written twice, since the order of writes is undefined.
    """
    numbers = (*self.shape, *size, *stride, storage_offset or 0)
    if not all(type(n) is int for n in numbers):
        raise UnsupportedError("as_strided_scatter needs fixed sizes")
    steps = np.array(stride, np.int64).reshape(-1, *(1,) * len(size))
    positions = ((storage_offset or 0) + (np.indices(size) * steps).sum(0)).reshape(-1)
    if len(np.unique(positions)) < len(positions):
        raise UnsupportedError("as_strided_scatter needs elements that do not overlap")
    flat = self.reshape(-1).clone()
    flat[creation.tensor(positions)] = src.reshape(-1)
    return flat.reshape(self.shape)


@rule("alias", "lift_fresh", "lift", "resolve_conj", "resolve_neg")
def alias(self: Tensor) -> Tensor:
    return self


@rule("detach")
def detach(self: Tensor) -> Tensor:
    return self.detach()


@rule("lift_fresh_copy")
def lift_fresh_copy(self: Tensor) -> Tensor:
    """Copy a constant of the graph: writes to it stay in the call."""
    return self.clone()


@rule("clone")
def clone(self: Tensor, *, memory_format: Any = None) -> Tensor:
    return self.clone()


@rule("contiguous")
def contiguous(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return the tensor, or a dense copy of it, to which writes stay local."""
    return self.contiguous()


@rule("expand")
def expand(self: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    return self.expand(tuple(size))


@rule("expand_as")
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    return self.expand(other.shape)


@rule("repeat")
def repeat(self: Tensor, repeats: Sequence[int]) -> Tensor:
    return self.repeat(*repeats)


@rule("transpose.int", "swapaxes", "swapdims")
def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    return self.transpose(dim0, dim1)


@rule("transpose_", "swapaxes_", "swapdims_")
def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    return self.transpose_(dim0, dim1)


@rule("block_diag")
def block_diag(tensors: Sequence[Tensor]) -> Tensor:
    return free.block_diag(*tensors)


@rule("t", "numpy_T")
def t(self: Tensor) -> Tensor:
    return self.T


@rule("mT")
def matrix_transpose(self: Tensor) -> Tensor:
    return self.transpose(-2, -1)


@rule("broadcast_tensors")
def broadcast_tensors(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    return free.broadcast_tensors(*tensors)


@rule("flatten.using_ints")
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    return functions.flatten(self, start_dim, end_dim)


@rule("unflatten.int")
def unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    return functions.unflatten(self, dim, tuple(sizes))


@rule("slice.Tensor")
def slice_of(self: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    return self[(*[slice(None)] * (dim % self.dim()), slice(start, end, step))]


@rule("slice_scatter")
def slice_scatter(self: Tensor, src: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    return functions.slice_scatter(self, src, dim, start, end, step)


@rule("split.Tensor", "split.sizes", "split_with_sizes", "unsafe_split.Tensor", "unsafe_split_with_sizes")
def split(self: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    return functions.split(self, split_size, dim)


@rule("unfold")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    return self.unfold(dimension, size, step)


@rule("constant_pad_nd")
def constant_pad(self: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    return F.pad(self, tuple(pad), value=value)


@rule("pad")
def pad(self: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    return F.pad(self, tuple(pad), mode, value)


@rule("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(self: Tensor, padding: Sequence[int]) -> Tensor:
    return F.pad(self, tuple(padding), "reflect")


@rule("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(self: Tensor, padding: Sequence[int]) -> Tensor:
    return F.pad(self, tuple(padding), "replicate")


@rule("_to_copy")
def to_copy(self: Tensor, *, dtype: Any = None, non_blocking: bool = False) -> Tensor:
    return to(self, dtype, copy=True)


@rule("prims.convert_element_type.default")
def convert_element_type(a: Tensor, dtype: Any) -> Tensor:
    return a.to(dtype)


@rule("to.dtype", "to.dtype_layout", "to.device")
def to(self: Tensor, dtype: Any = None, non_blocking: bool = False, copy: bool = False) -> Tensor:
    converted = self if dtype is None else self.to(dtype)
    return self.clone() if copy and converted is self else converted


@rule("to.other")
def to_other(self: Tensor, other: Tensor, non_blocking: bool = False, copy: bool = False) -> Tensor:
    return to(self, other.dtype, copy=copy)


@rule("type_as")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    return self.to(other.dtype)


@rule("im2col")
def im2col(self: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    return F.unfold(self, kernel_size, dilation, padding, stride)


@rule("col2im")
def col2im(self: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    return F.fold(self, output_size, kernel_size, dilation, padding, stride)
