"""Writer of files for ``torch.load``: a zip archive of a pickle and the bytes of storages."""

from __future__ import annotations

import os
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

import numpy as np

from graphc.base.dtypes import bfloat16, float16
from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass
from graphc.checkpoints.pickle_writer import Name, Persistent, PickledCall, PickleWriter
from graphc.checkpoints.pt_objects import may_repeat
from graphc.files.container import ALIGNMENT, replacing
from graphc.nn.parameter import Parameter
from graphc.tensors.tensor import Tensor

_STORAGES = {
    np.dtype(np.complex128): "ComplexDoubleStorage",
    np.dtype(np.complex64): "ComplexFloatStorage",
    np.dtype(np.float64): "DoubleStorage",
    np.dtype(np.float32): "FloatStorage",
    float16.numpy: "HalfStorage",
    bfloat16.numpy: "BFloat16Storage",
    np.dtype(np.int64): "LongStorage",
    np.dtype(np.int32): "IntStorage",
    np.dtype(np.int16): "ShortStorage",
    np.dtype(np.int8): "CharStorage",
    np.dtype(np.uint8): "ByteStorage",
    np.dtype(np.bool_): "BoolStorage",
}
_FOLDER = "archive"
_LOCAL_HEADER = 30
_ZIP64_EXTRA = 20
_PADDING = b"FB"
"""Id of an extra field for alignment, the same as PyTorch's."""


def save(obj: Any, path: str | os.PathLike[str]) -> None:
    """Write an object to a file that ``torch.load(path, weights_only=True)`` and ``graphc.load`` read, atomically.

    Args:
        obj: tensors and numpy arrays, nested in dictionaries (with strings, numbers, bools or None as keys), lists and
            tuples, next to numbers, strings, bools and None. Tensors keep their strides and share memory after loading
            if they do now; elements outside of a tensor that shares no memory are left out. Arrays become tensors,
            numpy scalars numbers.
        path: file to write.

    Returns:
        None.

    Raises:
        ArgumentError: any other value; the message has its path in ``obj``.
        OSError: the file cannot be written.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Linear(2, 1)
        >>> gc.save({"model": model.state_dict(), "epoch": 3}, "checkpoint.pt")
        >>> list(gc.load("checkpoint.pt")["model"])
        ['weight', 'bias']
    """
    if hasattr(path, "write"):
        raise ArgumentError("graphc.save takes a path, got an open file", remedy="call graphc.save(obj, path)")
    arrays = {id(value): _array(value) for value in _tensors(obj)}
    views, storages = _share_storages(arrays)

    def describe(value: Any) -> PickledCall | None:
        return _described(value, views[id(value)]) if id(value) in views else None

    data = PickleWriter(describe).dump(obj)
    with replacing(path) as file:
        _write_archive(file, data, storages)


@dataclass(frozen=True)
class _Storage:
    """Elements in a file, with the name of the member that holds them."""

    key: str
    elements: np.ndarray


@dataclass(frozen=True)
class _View:
    """Part of a storage with the elements of a tensor."""

    storage: _Storage
    offset: int
    array: np.ndarray


# ---- tensors in the object


def _tensors(obj: Any) -> Iterable[Any]:
    """Yield the tensors and arrays in an object, each once."""
    visited: dict[int, Any] = {}
    stack = [obj]
    while stack:
        value = stack.pop()
        if id(value) in visited:
            continue
        visited[id(value)] = value
        if isinstance(value, Tensor | np.ndarray):
            yield value
        elif isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list | tuple):
            stack.extend(value)


def _array(value: Tensor | np.ndarray) -> np.ndarray:
    """Return the elements of a tensor or array, sharing its memory if the format can express the strides."""
    array = value._values(force=True) if isinstance(value, Tensor) else value.view(np.ndarray)
    if array.dtype.newbyteorder("=") not in _STORAGES:
        raise ArgumentError(
            f"arrays of {array.dtype} cannot be saved", remedy="convert it: array.astype(numpy.float32)"
        )
    array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    odd = any(step < 0 or step % array.itemsize for step in array.strides)
    return np.ascontiguousarray(array).reshape(array.shape) if odd else array


def _described(value: Any, view: _View) -> PickledCall:
    """Return the call that rebuilds a tensor from its storage."""
    storage, array = view.storage, view.array
    kind = Name("torch", _STORAGES[array.dtype])
    strides = tuple(step // array.itemsize for step in array.strides)
    needs = isinstance(value, Tensor) and value.requires_grad
    parameter = isinstance(value, Parameter)
    reference = Persistent(("storage", kind, storage.key, "cpu", storage.elements.size))
    arguments = (reference, view.offset, tuple(array.shape), strides, needs and not parameter, OrderedDict())
    tensor = PickledCall(Name("torch._utils", "_rebuild_tensor_v2"), arguments)
    if not parameter:
        return tensor
    return PickledCall(Name("torch._utils", "_rebuild_parameter"), (tensor, needs, OrderedDict()))


# ---- storages


def _share_storages(arrays: dict[int, np.ndarray]) -> tuple[dict[int, _View], list[_Storage]]:
    """Assign arrays to storages: arrays that overlap in memory share one."""
    spans = sorted(((*_bounds(array), key) for key, array in arrays.items()), key=lambda span: span[:2])
    groups: list[list[int]] = []
    end = -1
    for low, high, key in spans:
        if low < end and low < high:
            groups[-1].append(key)
        else:
            groups.append([key])
        end = max(end, high)
    views: dict[int, _View] = {}
    storages = []
    order = {key: i for i, key in enumerate(arrays)}
    for group in sorted(groups, key=lambda group: min(order[key] for key in group)):
        members = [arrays[key] for key in group] if len(group) > 1 else [_compact(arrays[group[0]])]
        storages.append(_Storage(str(len(storages)), _spanned(members)))
        start = _bounds(members[0])[0]
        for key, array in zip(group, members, strict=True):
            offset = (_bounds(array)[0] - start) // array.itemsize if array.size else 0
            views[key] = _View(storages[-1], offset, array)
    return views, storages


def _bounds(array: np.ndarray) -> tuple[int, int]:
    """Return the start and end address of an array's memory."""
    return np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)


def _compact(array: np.ndarray) -> np.ndarray:
    """Return an array that shares memory with no other, without unused elements in between."""
    low, high = _bounds(array)
    if high - low <= array.nbytes and may_repeat((high - low) // array.itemsize, array.itemsize, array.shape):
        return array
    return np.ascontiguousarray(array).reshape(array.shape)


def _spanned(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return all elements from the first of some arrays to the last, in the order of addresses."""
    first = arrays[0]
    low, high = _bounds(first)[0], max(_bounds(array)[1] for array in arrays)
    if any(a.dtype != first.dtype or (_bounds(a)[0] - low) % first.itemsize for a in arrays):
        raise ArgumentError(
            "tensors of different element types share memory, which PyTorch's format cannot express",
            remedy="clone one of them: tensor.clone()",
        )
    count = (high - low) // first.itemsize
    if not count:
        return np.empty(0, first.dtype)
    return np.lib.stride_tricks.as_strided(first, (count,), (first.itemsize,), writeable=False)


# ---- the archive


def _write_archive(file: BinaryIO, data: bytes, storages: Sequence[_Storage]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:

        def write(name: str, content: Any) -> None:
            content = memoryview(content)
            # NOTE: a fixed date, so that equal objects make equal files.
            entry = zipfile.ZipInfo(f"{_FOLDER}/{name}", (1980, 1, 1, 0, 0, 0))
            entry.file_size = content.nbytes
            entry.extra = _padding(file.tell() + _LOCAL_HEADER + len(entry.filename), content.nbytes)
            with archive.open(entry, "w") as member:
                member.write(content)

        write("data.pkl", data)
        write("byteorder", sys.byteorder.encode())
        for storage in storages:
            write(f"data/{storage.key}", storage.elements.view(np.uint8))
        write("version", b"3\n")


def _padding(start: int, size: int) -> bytes:
    """Return an extra field that moves the content after it from ``start`` to a multiple of ALIGNMENT."""
    zip64 = _ZIP64_EXTRA if size * 1.05 > zipfile.ZIP64_LIMIT else 0
    length = -(start + 4 + zip64) % ALIGNMENT
    return _PADDING + length.to_bytes(2, "little") + bytes(length)
