"""Objects in pickles of PyTorch's tensors: storages, and the functions that rebuild tensors."""

from __future__ import annotations

import argparse
import posixpath
import re
from collections import Counter
from math import prod
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArtifactError
from graphc.base.records import dataclass
from graphc.checkpoints import foreign_types as types
from graphc.checkpoints.pickle_machine import KEYS, Built, Constant, Known, Token
from graphc.files.archive import FREE_BYTES
from graphc.nn.module_state import StateDict
from graphc.nn.parameter import Parameter
from graphc.tensors.creation import from_numpy
from graphc.tensors.tensor import Tensor

_DTYPES = ("float16", "bfloat16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")
_NUMBERS = "?biuf"


def plain_names() -> dict[str, Known | Constant]:
    """Return the known names of such objects in pickles. Each function builds one from checked numbers and strings, and
    calls nothing else."""
    calls = {
        "collections.OrderedDict": _new_dict,
        "collections.Counter": _counts,
        "collections.defaultdict": _default_dict,
        "argparse.Namespace": _Namespace,
        "_codecs.encode": _bytes,
        "numpy.dtype": _NumberType.of,
        "torch.device": _device,
        **{f"{module}.multiarray.scalar": _number for module in ("numpy.core", "numpy._core")},
        **{f"{module}.{kind.__name__}": _set_of(kind) for module in _BUILTINS for kind in (set, frozenset)},
        **{f"{module}.PosixPath": _path for module in ("pathlib", "pathlib._local")},
    }
    tokens = {f"{module}.{name}": None for module in _BUILTINS for name in ("list", "dict", "int", "float")}
    known: dict[str, Known | Constant] = {name: Known(name, call) for name, call in (calls | tokens).items()}
    return known | {f"torch.{name}": Constant(f"torch.{name}") for name in _DTYPES}


_BUILTINS = ("builtins", "__builtin__")


class _Namespace(argparse.Namespace, Built):
    """Command-line arguments of the program that wrote the checkpoint."""

    def __init__(self) -> None:
        super().__init__()

    def set_state(self, state: Any) -> None:
        if not isinstance(state, dict) or not all(isinstance(k, str) and not k.startswith("__") for k in state):
            raise ArtifactError("a Namespace has attributes without names")
        self.__dict__.update(state)


class _NumberType(Token, Built):
    """NumPy element type of the scalar that follows."""

    name = "numpy.dtype"

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    @staticmethod
    def of(text: Any, *rest: Any) -> _NumberType:
        dtype = np.dtype(text) if isinstance(text, str) and len(text) <= 3 else None
        if dtype is None or dtype.kind not in _NUMBERS:
            raise ArtifactError(f"it has the element type {text!r} of NumPy, which is not numeric")
        return _NumberType(dtype)

    def set_state(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", ">", "|", "="):
            raise ArtifactError("an element type of NumPy has no byte order")
        self.dtype = self.dtype.newbyteorder(state[1])


def _number(kind: Any, data: Any) -> Any:
    if not isinstance(kind, _NumberType) or not isinstance(data, bytes) or len(data) != kind.dtype.itemsize:
        raise ArtifactError("a number of NumPy does not have the bytes of its type")
    return np.frombuffer(data, kind.dtype)[0].item()


def _bytes(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise ArtifactError("bytes are written in an encoding other than Latin-1")
    return text.encode("latin-1")


def _new_dict(entries: Any = ()) -> StateDict:
    if entries:
        raise ArtifactError("an OrderedDict is constructed with entries")
    return StateDict()


def _default_dict(make: Any = None) -> dict[Any, Any]:
    if make is not None and not isinstance(make, Known):
        raise ArtifactError("a defaultdict has an unknown factory")
    return {}


def _counts(counts: Any = None) -> Counter[Any]:
    if not isinstance(counts, dict | None):
        raise ArtifactError("a Counter is not made from a dictionary")
    return Counter(counts)


def _set_of(kind: type) -> Any:
    def build(items: Any = ()) -> Any:
        if not isinstance(items, list | tuple) or not all(isinstance(item, KEYS) for item in items):
            raise ArtifactError("a set holds values other than numbers and strings")
        return kind(items)

    return build


def _path(*components: Any) -> str:
    if not all(isinstance(component, str) for component in components):
        raise ArtifactError("a path has components other than strings")
    return posixpath.join("", *components)


def _device(kind: Any, index: Any = None) -> str:
    if not isinstance(kind, str) or not (index is None or (type(index) is int and index >= 0)):
        raise ArtifactError("a torch.device has no name")
    return kind if index is None else f"{kind}:{index}"


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
