"""PyTorch's files from before version 1.6, which ``torch.save`` can still write: pickles, then bytes of storages."""

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
    """Whether a file that begins so is in this format."""
    return head[:1] == b"\x80" and _MAGIC_BYTES in head


def read_legacy(place: str) -> Any:
    """The object in a file: a pickle of a magic number, one of a version, one of the machine that wrote it, that of the
    object, one of the keys of storages, and for each key its number of elements and its bytes.

    Raises ArtifactError as ``load_pt`` does; OSError.
    """
    if os.path.getsize(place) > MAX_BYTES:
        raise ArtifactError(f"it has more than {MAX_BYTES} bytes")
    with open(place, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pickles:
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
    """The next pickle, which names nothing."""
    return Machine({}, storage_name).load(pickles)


def _names(pickles: mmap.mmap) -> dict[str, StorageName]:
    """What the pickle of the object says of storages; it is read for these alone, since their bytes come after it."""
    found: dict[str, StorageName] = {}

    def note(identity: Any) -> None:
        name = storage_name(identity)
        if name.rest != (None,) or found.setdefault(name.key, name) != name:
            raise ArtifactError(f"storage {name.key!r} is a part of another one", remedy=SAVE_AGAIN)

    tensors = {name: Known(name, _nothing) for name in known_names() if name.startswith("torch._utils.")}
    Machine(known_names() | tensors, note).load(pickles)
    return found


def _nothing(*arguments: Any) -> None:
    """What is built of tensors while there are no storages yet."""


def _storages(file: BinaryIO, names: dict[str, StorageName], keys: Any, big_endian: bool) -> dict[str, Storage]:
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or sorted(keys) != sorted(names):
        raise ArtifactError("the storages in the file are not those of its tensors")
    left = os.fstat(file.fileno()).st_size - file.tell()
    found = {}
    for key in keys:
        kind = element_type(names[key], key)
        count = int.from_bytes(file.read(_COUNT_BYTES), "little", signed=True)
        size = count * np.dtype(kind.stored).itemsize
        left -= _COUNT_BYTES + size
        if count < 0 or left < 0:
            raise ArtifactError(f"the file ends inside of storage {key!r} of {count} elements")
        check_bytes(names[key], key, size)
        data = np.empty(size, np.uint8)
        if fill(file, data) != size:
            raise ArtifactError("the file changed while it was read")
        found[key] = Storage(types.decode(data, kind, big_endian))
    return found
