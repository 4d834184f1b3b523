"""Files in the safetensors format, through the ``safetensors`` package (extra ``interop``)."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from math import prod
from typing import Any, BinaryIO

import numpy as np

from graphc.base.dtypes import layout_of
from graphc.base.errors import ArgumentError, ArtifactError
from graphc.base.installation import install_command
from graphc.checkpoints import foreign_types as types
from graphc.files.archive import fill
from graphc.files.container import MAX_BYTES, replacing
from graphc.tensors.creation import as_tensor, from_numpy
from graphc.tensors.tensor import Tensor

_TYPES = {
    "C64": types.C64,
    "F64": types.F64,
    "F32": types.F32,
    "F16": types.F16,
    "BF16": types.BF16,
    "I64": types.I64,
    "I32": types.I32,
    "I16": types.I16,
    "I8": types.I8,
    "U64": types.U64,
    "U32": types.U32,
    "U16": types.U16,
    "U8": types.U8,
    "BOOL": types.BOOL,
}
_LENGTH_BYTES = 8
"""Size of the number at the head of a file, that of the bytes of its header."""
_METADATA = "__metadata__"


def save_safetensors(
    tensors: Mapping[str, Any], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes tensors or arrays by name; the file takes the place of ``path`` atomically.

    ``metadata`` are texts that the file keeps beside them. Raises ArgumentError when a value is no tensor, or is of a
    type or has a name that the format has no room for, and for metadata that are no texts; OSError.
    """
    if metadata and not all(isinstance(text, str) for item in metadata.items() for text in item):
        raise ArgumentError("metadata of a safetensors file are texts by name", remedy="str(value)")
    arrays = {name: array_of(name, value) for name, value in tensors.items()}
    # The largest elements first, so that each array lies at a multiple of its element size.
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    entries: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    end = 0
    for name in order:
        start, end = end, end + arrays[name].nbytes
        kind = layout_of(arrays[name].dtype).name.upper()
        if kind not in _TYPES or name == _METADATA:
            raise ArgumentError(f"a safetensors file has no room for {name!r}, {kind}", remedy=f"{', '.join(_TYPES)}")
        entries[name] = {"dtype": kind, "shape": list(arrays[name].shape), "data_offsets": [start, end]}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _LENGTH_BYTES)
    with replacing(path) as file:
        file.write(len(header).to_bytes(_LENGTH_BYTES, "little") + header)
        for name in order:
            file.write(arrays[name].tobytes())


def load_safetensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a file by name.

    Raises ArtifactError for a damaged file and for element types that graphc has no room for, ArgumentError without the
    ``safetensors`` package; OSError.
    """
    return read_safetensors(path)[0]


def read_safetensors(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file by name, and the texts beside them."""
    place = os.fspath(path)
    package = _package()
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES:
        raise ArtifactError(f"{place}: it is not a regular file of at most {MAX_BYTES} bytes")
    try:
        with package.safe_open(place, framework="np") as file:
            metadata = file.metadata() or {}
    except package.SafetensorError as error:
        raise ArtifactError(f"{place}: it is no safetensors file that can be read: {error}") from None
    with open(path, "rb") as file:
        tensors = _tensors(file, place)
    return tensors, {k: v for k, v in metadata.items() if isinstance(v, str)}


def _tensors(file: BinaryIO, place: str) -> dict[str, Tensor]:
    """The tensors of a file of which the package has checked the header, each read into memory of its own."""
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    entries = json.loads(file.read(length))
    entries.pop(_METADATA, None)
    found = {}
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        start, end = entry["data_offsets"]
        file.seek(_LENGTH_BYTES + length + start)
        found[name] = _tensor(f"{place}: {name!r}", entry, file, end - start)
    return found


def _tensor(place: str, entry: Mapping[str, Any], file: BinaryIO, size: int) -> Tensor:
    kind = _TYPES.get(entry["dtype"])
    if kind is None:
        raise ArtifactError(f"{place} has element type {entry['dtype']}", remedy=f"one of {', '.join(_TYPES)}")
    shape = entry["shape"]
    if prod(shape) * np.dtype(kind.stored).itemsize != size:
        raise ArtifactError(f"{place} has {size} bytes, which do not fit its shape {list(shape)}")
    data = np.empty(size, np.uint8)
    if fill(file, data) != size:
        raise ArtifactError(f"{place}: the file changed while it was read")
    return from_numpy(types.decode(data, kind).reshape(shape))


def array_of(name: str, value: Any) -> np.ndarray:
    """A dense array of a tensor's or array's values; raises ArgumentError for anything else."""
    if not isinstance(value, Tensor | np.ndarray | np.generic):
        raise ArgumentError(f"{name!r} is a {type(value).__name__}, no tensor")
    tensor = value if isinstance(value, Tensor) else as_tensor(np.asarray(value))
    return np.ascontiguousarray(tensor._values(force=True)).reshape(tensor.shape)


def _package() -> Any:
    try:
        import safetensors
    except ImportError:
        remedy = f"install safetensors: {install_command('interop')}"
        raise ArgumentError("safetensors files need the package safetensors", remedy=remedy) from None
    return safetensors
