"""Cache of kernels: object code of single functions by the digest of their LLVM text, which programs share.

The memory of the process holds the latest ones. On disk, the kernels that one compilation built form a pack, one file;
an index names the pack of each kernel. Packs are trusted, counted and evicted as programs are (see compiler.cache).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from graphc.base import config
from graphc.base.errors import ArtifactError
from graphc.base.locks import Lock
from graphc.compiler import cache
from graphc.files.container import read_sections, write_sections
from graphc.files.private_folders import check_owner

MEMORY_BYTES = 1 << 24
"""Limit on the object code in memory."""
INDEX_BYTES = 1 << 20
"""Size from which the index starts again; the kernels of 20,000 records."""
_DIGEST, _PACK = 32, 16
"""Bytes of a kernel's key, and of its pack's name, in a record of the index."""
_KEYS, _SIZES, _OBJECTS = "keys", "sizes", "objects"


class KernelCache:
    """Object code by key, in memory and in the disk cache of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._objects: OrderedDict[str, bytes] = OrderedDict()
        """Object code, least recently used first."""
        self._bytes = 0

    def load(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the object code of the keys that are cached."""
        with self._lock:
            cached = {key: self._objects[key] for key in keys if key in self._objects}
            for key in cached:
                self._objects.move_to_end(key)
        missing = [key for key in keys if key not in cached]
        disk = cache.current() if missing else None
        if disk is not None:
            read = _read_packs(disk, missing)
            self._remember(read)
            cached |= read
        config.logger("compile").info("kernels: %d of %d found in the cache", len(cached), len(keys))
        return cached

    def store(self, objects: Mapping[str, bytes]) -> None:
        """Add object code."""
        self._remember(objects)
        disk = cache.current()
        if disk is not None:
            _write_pack(disk, objects)

    def _remember(self, objects: Mapping[str, bytes]) -> None:
        with self._lock:
            for key, code in objects.items():
                self._bytes += len(code) - len(self._objects.pop(key, b""))
                self._objects[key] = code
            while self._bytes > MEMORY_BYTES:
                self._bytes -= len(self._objects.popitem(last=False)[1])

    def forget(self) -> None:
        """Empty the memory; the disk keeps its kernels."""
        with self._lock:
            self._objects.clear()
            self._bytes = 0


KERNELS = KernelCache()
"""The cache of this process."""


def _read_packs(disk: cache.Cache, keys: Sequence[str]) -> dict[str, bytes]:
    """Return the object code of keys in packs on disk. Remove packs that cannot be trusted."""
    path = disk.folder / cache.INDEX
    try:
        if not path.exists() or not disk.is_usable():
            return {}
        check_owner(path, stat.S_ISREG)
        index = path.read_bytes()
    except (OSError, ArtifactError) as error:
        cache.warn(error)
        cache.remove(path)
        return {}
    packs: dict[str, set[str]] = {}
    for key in keys:
        position = index.rfind(bytes.fromhex(key))
        name = index[position + _DIGEST : position + _DIGEST + _PACK] if position >= 0 else b""
        if len(name) == _PACK:
            packs.setdefault(name.hex(), set()).add(key)
    objects: dict[str, bytes] = {}
    for name, members in packs.items():
        objects |= {key: code for key, code in _read_pack(disk, name).items() if key in members}
    return objects


def _read_pack(disk: cache.Cache, name: str) -> dict[str, bytes]:
    path = disk.folder / f"{name}{cache.PACK}"
    try:
        if not path.exists():
            return {}
        check_owner(path, stat.S_ISREG)
        sections = read_sections(path)
        keys, sizes, objects = (sections[part].tobytes() for part in (_KEYS, _SIZES, _OBJECTS))
        lengths = np.frombuffer(sizes, "<u4").tolist()
        if len(keys) != _DIGEST * len(lengths) or sum(lengths) != len(objects) or _pack_name(keys) != name:
            raise ArtifactError(f"{path}: the sizes or the name of a pack of kernels are wrong")
    except (OSError, ArtifactError, KeyError, ValueError) as error:
        cache.warn(error)
        cache.remove(path)
        return {}
    with suppress(OSError):  # A cache that cannot be written to can be read.
        os.utime(path)
    ends = np.cumsum(lengths).tolist()
    return {
        keys[i * _DIGEST : (i + 1) * _DIGEST].hex(): objects[end - length : end]
        for i, (end, length) in enumerate(zip(ends, lengths, strict=True))
    }


def _write_pack(disk: cache.Cache, objects: Mapping[str, bytes]) -> None:
    """Write a pack, then its records in the index, in one call so that those of other processes are not torn."""
    code, keys = b"".join(objects.values()), b"".join(map(bytes.fromhex, objects))
    if len(code) > disk.limit or not disk.is_usable():
        return
    name, sizes = _pack_name(keys), np.array([len(o) for o in objects.values()], "<u4")
    records = b"".join(bytes.fromhex(key) + bytes.fromhex(name) for key in objects)
    index = disk.folder / cache.INDEX
    try:
        sections = {_KEYS: [keys], _SIZES: [sizes.tobytes()], _OBJECTS: [code]}
        write_sections(disk.folder / f"{name}{cache.PACK}", sections, durable=False)
        if index.exists() and index.stat().st_size > INDEX_BYTES:
            cache.remove(index)
        file = os.open(index, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(file, records)
        finally:
            os.close(file)
        disk.evict()
    except (OSError, ArtifactError) as error:
        cache.warn(error)


def _pack_name(keys: bytes) -> str:
    return hashlib.sha256(keys).digest()[:_PACK].hex()
