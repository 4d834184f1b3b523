"""PyTorch's .pt and .pth files: tensors in containers are read, anything else is refused by name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from graphc.base.errors import ArtifactError
from graphc.files.archive import Archive
from graphc.nn.module_state import StateDict
from graphc.serialize import foreign_types as types
from graphc.serialize.pickle_machine import Known, Machine, Token
from graphc.tensors.creation import from_numpy
from graphc.tensors.tensor import Tensor

_MAX_RANK = 64
_STORAGES = {
    "DoubleStorage": types.F64,
    "FloatStorage": types.F32,
    "HalfStorage": types.F16,
    "BFloat16Storage": types.BF16,
    "LongStorage": types.I64,
    "IntStorage": types.I32,
    "ShortStorage": types.I16,
    "CharStorage": types.I8,
    "ByteStorage": types.U8,
    "BoolStorage": types.BOOL,
}
_KEY = re.compile(r"[0-9A-Za-z_]{1,64}")
_AGAIN = "load it with PyTorch and save it again: torch.save(model.state_dict(), path)"


def load_pt(path: str | os.PathLike[str]) -> Any:
    """What ``torch.save`` wrote: tensors in dictionaries, lists and tuples, with numbers, texts, bools and None.

    Nothing in the file is executed or imported. Tensors share memory where they did when they were saved; f16 and bf16
    become f32, and i16 becomes i32, which hold every value exactly. Raises ArtifactError for a damaged file, the format
    from before PyTorch 1.6, a TorchScript archive, and for any class or function that the file names; OSError.
    """
    _check_format(os.fspath(path))
    with Archive(path) as archive:
        try:
            return _Reader(archive).load()
        except ArtifactError as error:
            if not error.what.startswith(archive.path):
                error.what = f"{archive.path}: {error.what}"
            raise


def _check_format(place: str) -> None:
    with open(place, "rb") as file:
        head = file.read(4)
    if head[:2] == b"\x80\x02":
        raise ArtifactError(f"{place}: it is in PyTorch's format from before version 1.6, a bare pickle", remedy=_AGAIN)
    if head[:1] == b"\x80":
        raise ArtifactError(f"{place}: it is a bare pickle, which is not read", remedy=_AGAIN)


@dataclass(frozen=True)
class _Storage(Token):
    """Elements that tensors are made of."""

    elements: np.ndarray


class _Reader:
    """One archive: its prefix, and the storages read so far."""

    def __init__(self, archive: Archive):
        self.archive = archive
        self.prefix = self._find_prefix()
        self.storages: dict[tuple[str, str], _Storage] = {}
        self.big_endian = self._byte_order() == b"big"

    def _find_prefix(self) -> str:
        for name in self.archive.names:
            parts = name.split("/")
            if name.startswith("/") or "\\" in name or ".." in parts or "\0" in name:
                raise ArtifactError(f"member {name!r} points outside of the archive")
        pickles = [n for n in self.archive.names if n.endswith("data.pkl") and n.count("/") <= 1]
        if len(pickles) != 1:
            raise ArtifactError(f"it has {len(pickles)} data.pkl, a file of torch.save has one", remedy=_AGAIN)
        prefix = pickles[0].removesuffix("data.pkl")
        if f"{prefix}constants.pkl" in self.archive.names:
            raise ArtifactError("it is a TorchScript archive, which holds code", remedy=_AGAIN)
        return prefix

    def _byte_order(self) -> bytes:
        name = f"{self.prefix}byteorder"
        if name not in self.archive.names:
            return b"little"
        order = self.archive.read(name).tobytes()
        if order not in (b"little", b"big"):
            raise ArtifactError(f"its byte order is {order[:20]!r}")
        return order

    def load(self) -> Any:
        """The object in ``data.pkl``."""
        known = {f"torch.{name}": Known(f"torch.{name}") for name in _STORAGES}
        calls = {
            "collections.OrderedDict": _new_dict,
            "torch.Size": _size,
            "torch._utils._rebuild_tensor": _tensor,
            "torch._utils._rebuild_tensor_v2": _tensor,
            "torch._utils._rebuild_parameter": _parameter,
        }
        known |= {name: Known(name, call) for name, call in calls.items()}
        loaded = Machine(known, self._storage).load(self.archive.read(f"{self.prefix}data.pkl").tobytes())
        if isinstance(loaded, Token):
            raise ArtifactError("it holds neither a tensor nor a container")
        return loaded

    def _storage(self, identity: Any) -> _Storage:
        if not isinstance(identity, tuple) or len(identity) != 5 or identity[0] != "storage":
            raise ArtifactError("the pickle is damaged: a persistent id is no storage")
        _, kind, key, _, count = identity
        if not isinstance(kind, Known) or not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ArtifactError(f"a storage has the name {key!r}")
        found = self.storages.get((kind.name, key))
        return found or self._read_storage(kind.name, key, count)

    def _read_storage(self, kind: str, key: str, count: Any) -> _Storage:
        foreign = _STORAGES.get(kind.removeprefix("torch."))
        member = f"{self.prefix}data/{key}"
        if foreign is None or member not in self.archive.names:
            raise ArtifactError(f"it has no storage {member!r} of {kind}")
        size, itemsize = self.archive.size(member), np.dtype(foreign.stored).itemsize
        if not _is_count(count) or count * itemsize != size:
            raise ArtifactError(f"storage {member!r} has {size} bytes, {count} elements of {itemsize} do not fit them")
        elements = types.decode(self.archive.read(member), foreign, self.big_endian)
        self.storages[kind, key] = _Storage(elements)
        return self.storages[kind, key]


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _new_dict(entries: Any = ()) -> StateDict:
    if entries:
        raise ArtifactError("an OrderedDict has entries where none are written")
    return StateDict()


def _size(sizes: Any = ()) -> tuple[int, ...]:
    if not isinstance(sizes, tuple) or not all(map(_is_count, sizes)):
        raise ArtifactError("a torch.Size holds no sizes")
    return sizes


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *rest: Any) -> Tensor:
    """The tensor of these elements of a storage, after every index has been found to lie inside of it."""
    if not isinstance(storage, _Storage):
        raise ArtifactError("a tensor has no storage")
    elements = storage.elements
    lists = isinstance(shape, tuple) and isinstance(strides, tuple) and len(shape) == len(strides) <= _MAX_RANK
    if not lists or not all(map(_is_count, (offset, *shape, *strides))):
        raise ArtifactError("a tensor has an offset, shape or strides that are no sizes")
    last = offset + sum((d - 1) * s for d, s in zip(shape, strides, strict=True)) if all(shape) else offset - 1
    if last >= elements.size or prod(shape) > elements.size:
        raise ArtifactError(
            f"a tensor of shape {list(shape)}, strides {list(strides)} and offset {offset} does not fit its storage "
            f"of {elements.size} elements"
        )
    if not all(shape):
        return from_numpy(np.empty(shape, elements.dtype))
    steps = [s * elements.itemsize for s in strides]
    return from_numpy(np.lib.stride_tricks.as_strided(elements[offset:], shape, steps))


def _parameter(data: Any, requires_grad: Any = True, *rest: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise ArtifactError("a parameter holds no tensor")
    return data


def state_of(loaded: Any, place: str) -> Mapping[str, Tensor]:
    """The state dictionary in what a file held: itself, or its entry state_dict, model_state_dict or model."""
    if _is_state(loaded):
        return loaded
    if isinstance(loaded, Mapping):
        for name in ("state_dict", "model_state_dict", "model"):
            if _is_state(loaded.get(name)):
                return loaded[name]
    held = ", ".join(map(repr, list(loaded)[:8])) if isinstance(loaded, Mapping) else f"a {type(loaded).__name__}"
    raise ArtifactError(
        f"{place}: it holds {held} and no dictionary of names and tensors", remedy="graphc.serialize.load_pt(path)"
    )


def _is_state(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in value.items())
