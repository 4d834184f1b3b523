"""NumPy's .npy and .npz files, read with every size checked and without pickle, and written atomically."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.files.archive import Archive
from graphc.files.container import MAX_BYTES, replacing

_KINDS = "?biufc"
_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 1 << 14


def read_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """The array of a .npy file: numbers or booleans of any size, in the byte order of this machine.

    Raises ArtifactError when the file is damaged, is not exactly as long as its shape needs, or holds objects (which
    only pickle could read); OSError.
    """
    place = os.fspath(path)
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES:
        raise ArtifactError(f"{place}: it is not a regular file of at most {MAX_BYTES} bytes")
    return parse_npy(np.fromfile(path, np.uint8), place)


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of a .npz file by name, in the order of the file.

    Raises ArtifactError as ``read_npy`` does, and for a damaged archive or members that are no arrays; OSError.
    """
    with Archive(path) as archive:
        wrong = [name for name in archive.names if not name.endswith(".npy")]
        if wrong:
            raise archive.error(f"member {wrong[0]!r} is no .npy array", remedy="a file written by numpy.savez")
        return {n.removesuffix(".npy"): parse_npy(archive.read(n), f"{archive.path}: {n}") for n in archive.names}


def parse_npy(data: np.ndarray, place: str) -> np.ndarray:
    """The array in the bytes of a .npy file, sharing their memory where it can; ``place`` names it in errors."""
    shape, fortran, dtype, start = _header(data, place)
    if dtype.kind not in _KINDS or dtype.hasobject:
        raise ArtifactError(
            f"{place}: it holds {dtype}, which are no numbers", remedy="numpy.save of an array of numbers"
        )
    if any(type(d) is not int for d in shape):
        raise ArtifactError(f"{place}: shape {list(shape)} is not made of whole numbers")
    needed = prod(shape) * dtype.itemsize
    if any(d < 0 or d >> 62 for d in shape) or needed != data.size - start:
        raise ArtifactError(
            f"{place}: {data.size - start} bytes follow the header, and shape {list(shape)} of {dtype} needs {needed}"
        )
    array = data[start:].view(dtype) if needed else np.empty(0, dtype)
    array = array.reshape(shape, order="F" if fortran else "C")
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _header(data: np.ndarray, place: str) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Shape, Fortran order, element type, and where the elements begin."""
    head = data[: _LONGEST_HEADER + 12].tobytes()
    if not head.startswith(_MAGIC):
        raise ArtifactError(f"{place}: it is no .npy file: it begins with {head[:6].hex(' ') or 'nothing'}")
    stream = io.BytesIO(head)
    try:
        version = np.lib.format.read_magic(stream)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise ValueError(f"version {version[0]}.{version[1]} of the format is not supported")
        shape, fortran, dtype = readers[version](stream, max_header_size=_LONGEST_HEADER)
    # NOTE: numpy reads the header as a Python literal, whose parser has errors of many classes.
    except Exception as error:
        raise ArtifactError(f"{place}: the header of the .npy file cannot be read: {error}") from None
    return shape, fortran, dtype, stream.tell()


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Writes arrays of numbers by name to an uncompressed .npz file, which takes the place of ``path`` atomically.

    Raises ArgumentError for what is no array of numbers; OSError.
    """
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, value in arrays.items():
            array = np.asarray(value)
            if array.dtype.kind not in _KINDS or array.dtype.hasobject:
                raise ArgumentError(f"{name!r} is a {type(value).__name__} of {array.dtype}, no array of numbers")
            # NOTE: a fixed date, so that equal arrays make equal files.
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
