"""NumPy's .npy and .npz files: read with every size checked and without pickle, written atomically."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import bfloat16, bfloat16x2
from graphc.base.errors import ArgumentError, ArtifactError
from graphc.files.archive import Archive
from graphc.files.container import MAX_BYTES, replacing

__all__ = ["read_npy", "read_npz"]

_KINDS = "?biufc"
_NARROW = (bfloat16.numpy, bfloat16x2.numpy)
"""Layouts without a NumPy type, which only graphc's own files hold."""
_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 1 << 14


def read_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the array of a .npy file: numbers or booleans, in the byte order of this machine.

    Raises ArtifactError if the file is damaged, its length does not match its shape, or it holds objects (which only
    pickle could read); OSError.
    """
    name = os.fspath(path)
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES:
        raise ArtifactError(f"{name}: it is not a regular file of at most {MAX_BYTES} bytes")
    return parse_npy(np.fromfile(path, np.uint8), name)


def read_npz(path: str | os.PathLike[str], narrow: bool = False) -> dict[str, np.ndarray]:
    """Return the arrays of a .npz file by name, in the order of the file. ``narrow`` allows bf16.

    Raises ArtifactError as ``read_npy`` does, and for a damaged archive or members other than .npy arrays; OSError.
    """
    with Archive(path) as archive:
        wrong = [name for name in archive.names if not name.endswith(".npy")]
        if wrong:
            raise archive.error(f"member {wrong[0]!r} is not a .npy array", remedy="pass a file that numpy.savez wrote")
        return {
            n.removesuffix(".npy"): parse_npy(archive.read(n), f"{archive.path}: {n}", narrow) for n in archive.names
        }


def parse_npy(data: np.ndarray, source: str, narrow: bool = False) -> np.ndarray:
    """Return the array in the bytes of a .npy file, without a copy if possible; ``source`` names it in errors."""
    shape, fortran, dtype, start = _header(data, source)
    if (dtype.kind not in _KINDS or dtype.hasobject) and not (narrow and dtype in _NARROW):
        raise ArtifactError(
            f"{source}: it holds {dtype} and no numbers", remedy="save an array of numbers with numpy.save"
        )
    if any(type(d) is not int for d in shape):
        raise ArtifactError(f"{source}: shape {list(shape)} is not made of integers")
    needed = prod(shape) * dtype.itemsize
    if any(d < 0 or d >> 62 for d in shape) or needed != data.size - start:
        raise ArtifactError(
            f"{source}: {data.size - start} bytes follow the header, and shape {list(shape)} of {dtype} needs {needed}"
        )
    array = data[start:].view(dtype) if needed else np.empty(0, dtype)
    array = array.reshape(shape, order="F" if fortran else "C")
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _header(data: np.ndarray, source: str) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Return shape, Fortran order, element type, and the offset of the elements."""
    head = data[: _LONGEST_HEADER + 12].tobytes()
    if not head.startswith(_MAGIC):
        raise ArtifactError(f"{source}: not a .npy file: it begins with {head[:6].hex(' ') or 'nothing'}")
    stream = io.BytesIO(head)
    try:
        version = np.lib.format.read_magic(stream)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise ValueError(f"version {version[0]}.{version[1]} of the format is not supported")
        shape, fortran, dtype = readers[version](stream, max_header_size=_LONGEST_HEADER)
    # NOTE: numpy parses the header as a Python literal; the parser raises errors of many classes.
    except Exception as error:
        raise ArtifactError(f"{source}: the header of the .npy file cannot be read: {error}") from None
    return shape, fortran, dtype, stream.tell()


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Write arrays of numbers by name to an uncompressed .npz file, which replaces ``path`` atomically.

    Raises ArgumentError for other values; OSError.
    """
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, value in arrays.items():
            array = np.asarray(value)
            if (array.dtype.kind not in _KINDS or array.dtype.hasobject) and array.dtype not in _NARROW:
                raise ArgumentError(f"{name!r} is a {type(value).__name__} of {array.dtype}, not an array of numbers")
            # NOTE: a fixed date, so that equal arrays make equal files.
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
