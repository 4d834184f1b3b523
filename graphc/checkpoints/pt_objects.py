"""Objects in pickles of PyTorch's tensors: storages, and the functions that rebuild tensors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArtifactError
from graphc.checkpoints import foreign_types as types
from graphc.checkpoints.pickle_machine import Constant, Known, Token
from graphc.checkpoints.plain_objects import plain_names
from graphc.files.archive import FREE_BYTES
from graphc.nn.parameter import Parameter
from graphc.tensors.creation import from_numpy
from graphc.tensors.tensor import Tensor

STORAGES = {
    "torch.ComplexDoubleStorage": types.C128,
    "torch.ComplexFloatStorage": types.C64,
    "torch.DoubleStorage": types.F64,
    "torch.FloatStorage": types.F32,
    "torch.HalfStorage": types.F16,
    "torch.BFloat16Storage": types.BF16,
    "torch.LongStorage": types.I64,
    "torch.IntStorage": types.I32,
    "torch.ShortStorage": types.I16,
    "torch.CharStorage": types.I8,
    "torch.ByteStorage": types.U8,
    "torch.BoolStorage": types.BOOL,
}
"""Element types by storage class in pickles."""
SAVE_AGAIN = "load it with PyTorch and save it again: torch.save(model.state_dict(), path)"
_MAX_RANK = 64
_KEY = re.compile(r"[0-9A-Za-z_]{1,64}")


@dataclass(frozen=True)
class Storage(Token):
    """Elements of one or more tensors."""

    elements: np.ndarray


class StorageName(NamedTuple):
    """Reference to a storage in a pickle."""

    kind: str
    """Its class, ``torch.FloatStorage``."""
    key: str
    count: Any
    """Number of elements; not checked."""
    rest: tuple[Any, ...]
    """Further fields of some formats."""


def storage_name(identity: Any) -> StorageName:
    """Parse the reference to a storage in a persistent id; raises ArtifactError for any other id."""
    if not isinstance(identity, tuple) or len(identity) < 5 or identity[0] != "storage":
        raise ArtifactError("the pickle is damaged: a persistent id is not a storage")
    _, kind, key, _, count, *rest = identity
    if not isinstance(kind, Known) or not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ArtifactError(f"a storage has the name {key!r}")
    return StorageName(kind.name, key, count, tuple(rest))


def element_type(name: StorageName, member: str) -> types.ForeignType:
    """Return the element type of a storage; raises ArtifactError. ``member`` names its bytes in messages."""
    kind = STORAGES.get(name.kind)
    if kind is None:
        raise ArtifactError(f"it has no storage {member!r} of {name.kind}")
    return kind


def check_bytes(name: StorageName, member: str, size: int) -> None:
    """Raise ArtifactError unless ``size`` is the number of bytes of a storage's elements."""
    itemsize = np.dtype(element_type(name, member).stored).itemsize
    if not is_count(name.count) or name.count * itemsize != size:
        raise ArtifactError(f"storage {member!r} has {size} bytes, but {name.count} elements of {itemsize} bytes")


def is_count(value: Any) -> bool:
    """Return whether a value is a nonnegative integer."""
    return type(value) is int and value >= 0


def known_names() -> dict[str, Known | Constant]:
    """Return all names that a pickle of tensors may refer to."""
    calls = {
        "torch.Size": _size,
        "torch._utils._rebuild_tensor": _tensor,
        "torch._utils._rebuild_tensor_v2": _tensor,
        "torch._utils._rebuild_parameter": _parameter,
    }
    storages = {name: Known(name) for name in STORAGES}
    return plain_names() | storages | {name: Known(name, call) for name, call in calls.items()}


def _size(sizes: Any = ()) -> tuple[int, ...]:
    if not isinstance(sizes, tuple) or not all(map(is_count, sizes)):
        raise ArtifactError("a torch.Size holds values other than sizes")
    return sizes


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any = False, *rest: Any) -> Tensor:
    """Return a tensor of elements of a storage, after checking that every index is inside of it."""
    if not isinstance(storage, Storage):
        raise ArtifactError("a tensor has no storage")
    tensor = from_numpy(_view(storage.elements, offset, shape, strides))
    if requires_grad is True and tensor.dtype.is_differentiable:
        tensor.requires_grad_()
    return tensor


def _view(elements: np.ndarray, offset: Any, shape: Any, strides: Any) -> np.ndarray:
    lists = isinstance(shape, tuple) and isinstance(strides, tuple) and len(shape) == len(strides) <= _MAX_RANK
    if not lists or not all(map(is_count, (offset, *shape, *strides))):
        raise ArtifactError("a tensor has an offset, shape or strides other than nonnegative integers")
    last = offset + sum((d - 1) * s for d, s in zip(shape, strides, strict=True)) if all(shape) else offset - 1
    if last >= elements.size or not may_repeat(elements.size, elements.itemsize, shape):
        raise ArtifactError(
            f"a tensor of shape {list(shape)}, strides {list(strides)} and offset {offset} does not fit its storage "
            f"of {elements.size} elements"
        )
    if not all(shape):
        return np.empty(shape, elements.dtype)
    return np.lib.stride_tricks.as_strided(elements[offset:], shape, [s * elements.itemsize for s in strides])


def may_repeat(count: int, itemsize: int, shape: tuple[int, ...]) -> bool:
    """Return whether a storage of ``count`` elements may have a view of this shape.

    A view that repeats elements (``expand``) may be larger than its storage, within limits, because a copy of it needs
    memory for all elements.
    """
    return prod(shape) <= max(count, FREE_BYTES // itemsize)


def _parameter(data: Any, requires_grad: Any = True, *rest: Any) -> Parameter:
    if not isinstance(data, Tensor):
        raise ArtifactError("a parameter holds no tensor")
    return Parameter(data.detach(), requires_grad=requires_grad is True and data.dtype.is_differentiable)
