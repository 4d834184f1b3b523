"""Reader of PyTorch's format before version 1.6, still an option of ``torch.save``: pickles, then storages."""

from __future__ import annotations

import mmap
import os
from typing import Any, BinaryIO

import numpy as np

from graphc.base.errors import ArtifactError
from graphc.checkpoints import foreign_types as types
from graphc.checkpoints.pickle_machine import Known, Machine, Token
from graphc.checkpoints.pt_objects import (
    SAVE_AGAIN,
    Storage,
    StorageName,
    check_bytes,
    element_type,
    known_names,
    storage_name,
)
from graphc.files.archive import fill
from graphc.files.container import MAX_BYTES

_MAGIC = 0x1950A86A20F9469CFC6C
_MAGIC_BYTES = _MAGIC.to_bytes(10, "little")
_PROTOCOL = 1001
_COUNT_BYTES = 8


def is_legacy(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` has this format."""
    return head[:1] == b"\x80" and _MAGIC_BYTES in head


def read_legacy(path: str) -> Any:
    """Return the object in a file of this format.

    The file is a sequence of pickles: a magic number, a version, the machine that wrote it, the object, and the keys of
    the storages. For each key, the number of elements and the bytes of its storage follow. Raises ArtifactError as
    ``load_pt`` does; OSError.
    """
    if os.path.getsize(path) > MAX_BYTES:
        raise ArtifactError(f"it has more than {MAX_BYTES} bytes")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pickles:
        return _read(file, pickles)


def _read(file: BinaryIO, pickles: mmap.mmap) -> Any:
    head = [_load(pickles), _load(pickles)]
    if head != [_MAGIC, _PROTOCOL]:
        raise ArtifactError(f"it is in version {head[1]!r} of PyTorch's old format", remedy=SAVE_AGAIN)
    machine = _load(pickles)
    big_endian = isinstance(machine, dict) and machine.get("little_endian") is False
    start = pickles.tell()
    names = _names(pickles)
    keys = _load(pickles)
    file.seek(pickles.tell())
    storages = _storages(file, names, keys, big_endian)
    pickles.seek(start)
    loaded = Machine(known_names(), lambda identity: storages[storage_name(identity).key]).load(pickles)
    if isinstance(loaded, Token):
        raise ArtifactError("it holds neither a tensor nor a container")
    return loaded


def _load(pickles: mmap.mmap) -> Any:
    """Load the next pickle, in which no names are allowed."""
    return Machine({}, storage_name).load(pickles)


def _names(pickles: mmap.mmap) -> dict[str, StorageName]:
    """Read the pickle of the object for its storages only, because their bytes follow it."""
    names: dict[str, StorageName] = {}

    def note(identity: Any) -> None:
        name = storage_name(identity)
        if name.rest != (None,) or names.setdefault(name.key, name) != name:
            raise ArtifactError(f"storage {name.key!r} is a view of another one", remedy=SAVE_AGAIN)

    tensors = {name: Known(name, _nothing) for name in known_names() if name.startswith("torch._utils.")}
    Machine(known_names() | tensors, note).load(pickles)
    return names


def _nothing(*arguments: Any) -> None:
    """Stand in for the construction of tensors before the storages are read."""


def _storages(file: BinaryIO, names: dict[str, StorageName], keys: Any, big_endian: bool) -> dict[str, Storage]:
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or sorted(keys) != sorted(names):
        raise ArtifactError("the storages in the file are not those of its tensors")
    remaining = os.fstat(file.fileno()).st_size - file.tell()
    storages = {}
    for key in keys:
        kind = element_type(names[key], key)
        count = int.from_bytes(file.read(_COUNT_BYTES), "little", signed=True)
        size = count * np.dtype(kind.stored).itemsize
        remaining -= _COUNT_BYTES + size
        if count < 0 or remaining < 0:
            raise ArtifactError(f"the file ends inside of storage {key!r} of {count} elements")
        check_bytes(names[key], key, size)
        data = np.empty(size, np.uint8)
        if fill(file, data) != size:
            raise ArtifactError("the file changed while it was read")
        storages[key] = Storage(types.decode(data, kind, big_endian))
    return storages
