"""Files in the safetensors format, with the package ``safetensors`` (extra ``interop``)."""

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
"""Size of the first field of a file, the length of its header."""
_METADATA = "__metadata__"


def save_safetensors(
    tensors: Mapping[str, Any], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors or arrays by name to a file that replaces ``path`` atomically.

    ``metadata`` are strings by name, stored in the header. Raises ArgumentError for values other than tensors, for
    element types and names that the format does not support, and for metadata other than strings; OSError.
    """
    if metadata and not all(isinstance(text, str) for item in metadata.items() for text in item):
        raise ArgumentError("metadata of a safetensors file are strings by name", remedy="convert them: str(value)")
    arrays = {name: array_of(name, value) for name, value in tensors.items()}
    # The largest elements first, so that the offset of each array is a multiple of its element size.
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    entries: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    end = 0
    for name in order:
        start, end = end, end + arrays[name].nbytes
        kind = layout_of(arrays[name].dtype).name.upper()
        if kind not in _TYPES or name == _METADATA:
            raise ArgumentError(
                f"the safetensors format does not support {name!r} of type {kind}", remedy=f"use {', '.join(_TYPES)}"
            )
        entries[name] = {"dtype": kind, "shape": list(arrays[name].shape), "data_offsets": [start, end]}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _LENGTH_BYTES)
    with replacing(path) as file:
        file.write(len(header).to_bytes(_LENGTH_BYTES, "little") + header)
        for name in order:
            file.write(arrays[name].tobytes())


def load_safetensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Return the tensors of a file by name.

    Raises ArtifactError for a damaged file and for element types that graphc lacks, ArgumentError without the package
    ``safetensors``; OSError.
    """
    return read_safetensors(path)[0]


def read_safetensors(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a file by name, and its metadata."""
    name = os.fspath(path)
    package = _package()
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES:
        raise ArtifactError(f"{name}: it is not a regular file of at most {MAX_BYTES} bytes")
    try:
        with package.safe_open(name, framework="np") as file:
            metadata = file.metadata() or {}
    except package.SafetensorError as error:
        raise ArtifactError(f"{name}: not a readable safetensors file: {error}") from None
    with open(path, "rb") as file:
        tensors = _tensors(file, name)
    return tensors, {k: v for k, v in metadata.items() if isinstance(v, str)}


def _tensors(file: BinaryIO, source: str) -> dict[str, Tensor]:
    """Read each tensor into new memory; the package has checked the header before."""
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    entries = json.loads(file.read(length))
    entries.pop(_METADATA, None)
    tensors = {}
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        start, end = entry["data_offsets"]
        file.seek(_LENGTH_BYTES + length + start)
        tensors[name] = _tensor(f"{source}: {name!r}", entry, file, end - start)
    return tensors


def _tensor(name: str, entry: Mapping[str, Any], file: BinaryIO, size: int) -> Tensor:
    kind = _TYPES.get(entry["dtype"])
    if kind is None:
        raise ArtifactError(
            f"{name} has element type {entry['dtype']}", remedy=f"convert it to one of {', '.join(_TYPES)}"
        )
    shape = entry["shape"]
    if prod(shape) * np.dtype(kind.stored).itemsize != size:
        raise ArtifactError(f"{name} has {size} bytes, which do not fit its shape {list(shape)}")
    data = np.empty(size, np.uint8)
    if fill(file, data) != size:
        raise ArtifactError(f"{name}: the file changed while it was read")
    return from_numpy(types.decode(data, kind).reshape(shape))


def array_of(name: str, value: Any) -> np.ndarray:
    """Return the values of a tensor or array as a dense array; raises ArgumentError for anything else."""
    if not isinstance(value, Tensor | np.ndarray | np.generic):
        raise ArgumentError(f"{name!r} is a {type(value).__name__}, not a tensor")
    tensor = value if isinstance(value, Tensor) else as_tensor(np.asarray(value))
    return np.ascontiguousarray(tensor._values(force=True)).reshape(tensor.shape)


def _package() -> Any:
    try:
        import safetensors
    except ImportError:
        remedy = f"install safetensors: {install_command('interop')}"
        raise ArgumentError("safetensors files need the package safetensors", remedy=remedy) from None
    return safetensors
