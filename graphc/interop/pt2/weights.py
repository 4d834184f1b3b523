"""Parameters, buffers and constants of ``.pt2`` files, as views of their storages."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

import numpy as np

from graphc.base.dtypes import DType, bool_
from graphc.base.errors import ArtifactError
from graphc.base.records import dataclass
from graphc.files.container import MAX_BYTES
from graphc.files.manifest import MAX_RANK
from graphc.interop.pt2.fields import Field
from graphc.interop.pt2.types import check_strided, element_type

MOST_REPEATED = 1 << 26
"""Bytes that all tensors together may have beyond their storages, where elements repeat (stride 0)."""
_NAME = re.compile(r"[0-9A-Za-z_]{1,64}")


@dataclass(frozen=True)
class TensorEntry:
    """Tensor of the file."""

    array: np.ndarray
    is_parameter: bool
    requires_grad: bool
    key: tuple[str, DType, int, tuple[int, ...], tuple[int, ...]]
    """Tensors with the same key are one tensor (tied weights)."""

    @property
    def memory(self) -> tuple[str, int, int, object]:
        """Return the storage, the first byte and the end of the tensor in it, and the key."""
        name, dtype, offset, sizes, strides = self.key
        end = offset + _last(sizes, strides) + 1 if all(sizes) else offset
        return name, offset * dtype.itemsize, end * dtype.itemsize, self.key


class Storages:
    """Storages of one folder, each of which is read once."""

    def __init__(self, read: Callable[[str], np.ndarray | None]):
        """Take the reader of storages. ``read`` returns the bytes of the storage with a name, None for an unknown
        one."""
        self._read = read
        self._bytes: dict[str, np.ndarray] = {}
        self._views: dict[tuple[object, ...], np.ndarray] = {}
        self._bools: dict[str, np.ndarray] = {}
        self._repeated = 0

    def tensors(self, config: Field) -> dict[str, TensorEntry]:
        """Return the tensors by qualified name.

        Raises ArtifactError where they do not fit into their storages, and UnsupportedError for pickles and element
        types that graphc lacks.
        """
        entries = config.record("config")["config"].entries()
        return {name: self._tensor(entry) for name, entry in entries.items()}

    def _tensor(self, entry: Field) -> TensorEntry:
        members = entry.record("path_name is_param use_pickle", "tensor_meta")
        if members["use_pickle"].flag():
            raise members["use_pickle"].unsupported(
                "a Python object or a tensor subclass is stored as a pickle, which graphc does not read",
                remedy="use plain tensors as parameters, buffers and constants",
            )
        meta = members["tensor_meta"].record("dtype sizes requires_grad device strides storage_offset layout")
        dtype = element_type(meta["dtype"])
        check_strided(meta["layout"])
        numbers = [[_number(n) for n in meta[name].items()] for name in ("sizes", "strides")]
        sizes, strides = map(tuple, numbers)
        offset = _number(meta["storage_offset"])
        if len(sizes) != len(strides) or len(sizes) > MAX_RANK:
            raise ArtifactError(f"{entry.path}: {len(sizes)} sizes and {len(strides)} strides do not fit")
        key = (self._name(members["path_name"]), dtype, offset, sizes, strides)
        if key not in self._views:
            self._views[key] = self._view(entry, *key)
        return TensorEntry(self._views[key], members["is_param"].flag(), meta["requires_grad"].flag(), key)

    @staticmethod
    def _name(field: Field) -> str:
        name = field.text()
        if not _NAME.fullmatch(name):
            raise field.wrong("the name of a storage")
        return name

    def _view(
        self, entry: Field, name: str, dtype: DType, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]
    ) -> np.ndarray:
        stored = self._storage(entry, name)
        if stored.size % dtype.itemsize:
            raise ArtifactError(
                f"{entry.path}: storage {name!r} has {stored.size} bytes, not a whole number of elements"
            )
        count = stored.size // dtype.itemsize
        last = offset + _last(sizes, strides) if all(sizes) else offset - 1
        if last >= count or prod(sizes) * dtype.itemsize > MOST_REPEATED + stored.size:
            raise ArtifactError(
                f"{entry.path}: sizes {list(sizes)}, strides {list(strides)} and offset {offset} do not fit the "
                f"{count} elements of storage {name!r}"
            )
        if not all(sizes):
            return _empty(entry, sizes, dtype)
        elements = self._elements(name, dtype)
        steps = [s * dtype.itemsize for s in strides]
        view = np.lib.stride_tricks.as_strided(elements[offset:], sizes, steps)
        return self._own(entry, view, prod(sizes) - count)

    def _own(self, entry: Field, view: np.ndarray, more: int) -> np.ndarray:
        """Return a view, or a copy where elements repeat and need ``more`` elements than the storage has."""
        if more <= 0:
            return view
        self._repeated += more * view.itemsize
        if self._repeated > MOST_REPEATED:
            raise ArtifactError(f"{entry.path}: tensors repeat their storages for more than {MOST_REPEATED} bytes")
        return np.ascontiguousarray(view)

    def _elements(self, name: str, dtype: DType) -> np.ndarray:
        if dtype is not bool_:
            return self._bytes[name].view(dtype.numpy)
        # NOTE: numpy's booleans must be the byte 0 or 1.
        if name not in self._bools:
            self._bools[name] = self._bytes[name] != 0
        return self._bools[name]

    def _storage(self, entry: Field, name: str) -> np.ndarray:
        if name not in self._bytes:
            data = self._read(name)
            if data is None:
                raise ArtifactError(f"{entry.path}: the file lacks the storage {name!r}")
            self._bytes[name] = data
        return self._bytes[name]


def _last(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Return the distance from the first to the last element."""
    return sum((d - 1) * s for d, s in zip(sizes, strides, strict=True))


def _empty(entry: Field, sizes: tuple[int, ...], dtype: DType) -> np.ndarray:
    if prod(s for s in sizes if s) * dtype.itemsize > MAX_BYTES:
        raise ArtifactError(f"{entry.path}: sizes {list(sizes)} are too large")
    return np.empty(sizes, dtype.numpy)


def _number(field: Field) -> int:
    kind, content = field.union()
    if kind != "as_int":
        raise ArtifactError(f"{field.path} is not a number, but sizes of stored tensors must be")
    return content.integer(0, (1 << 62) - 1)
