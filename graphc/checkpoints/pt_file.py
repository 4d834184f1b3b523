"""Reader of PyTorch's files: loads tensors in containers, refuses everything else by name."""

from __future__ import annotations

import os
from typing import Any

from graphc.base.errors import ArtifactError
from graphc.checkpoints import foreign_types as types
from graphc.checkpoints.pickle_machine import Machine, Token
from graphc.checkpoints.pt_legacy import is_legacy, read_legacy
from graphc.checkpoints.pt_objects import (
    SAVE_AGAIN,
    STORAGES,
    Storage,
    StorageName,
    check_bytes,
    element_type,
    known_names,
    storage_name,
)
from graphc.files.archive import Archive

_HEAD = 64


def load_pt(path: str | os.PathLike[str]) -> Any:
    """Load a file of ``torch.save``: tensors in dictionaries, lists and tuples, with numbers, strings, bools and None,
    and pure data such as namespaces and sets (see ``plain_objects``).

    Nothing in the file is executed or imported. Tensors share memory if they did when saved. Zip archives and the
    format before PyTorch 1.6, a stream of pickles, are supported. Raises ArtifactError for a damaged file, a
    TorchScript archive, and any other class or function in the file; OSError.
    """
    name = os.fspath(path)
    with open(name, "rb") as file:
        head = file.read(_HEAD)
    if head[:1] == b"\x80" and not is_legacy(head):
        raise ArtifactError(f"{name}: it is a bare pickle, which graphc does not read", remedy=SAVE_AGAIN)
    try:
        if is_legacy(head):
            return read_legacy(name)
        with Archive(path) as archive:
            return _ArchiveReader(archive).load()
    except ArtifactError as error:
        if not error.what.startswith(name):
            error.what = f"{name}: {error.what}"
        raise


class _ArchiveReader:
    """Reader of one archive: its prefix, and the storages read so far."""

    def __init__(self, archive: Archive):
        self.archive = archive
        self.prefix = self._find_prefix()
        self.storages: dict[tuple[str, str], Storage] = {}
        self.big_endian = self._byte_order() == b"big"

    def _find_prefix(self) -> str:
        for name in self.archive.names:
            components = name.split("/")
            if name.startswith("/") or "\\" in name or ".." in components or "\0" in name:
                raise ArtifactError(f"member {name!r} points outside of the archive")
        pickles = [n for n in self.archive.names if n.endswith("data.pkl") and n.count("/") <= 1]
        if len(pickles) != 1:
            raise ArtifactError(f"it has {len(pickles)} data.pkl, a file of torch.save has one", remedy=SAVE_AGAIN)
        prefix = pickles[0].removesuffix("data.pkl")
        if f"{prefix}constants.pkl" in self.archive.names:
            raise ArtifactError("it is a TorchScript archive, which holds code", remedy=SAVE_AGAIN)
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
        """Return the object in ``data.pkl``."""
        loaded = Machine(known_names(), self._storage).load(self.archive.read(f"{self.prefix}data.pkl").tobytes())
        if isinstance(loaded, Token):
            raise ArtifactError("it holds neither a tensor nor a container")
        return loaded

    def _storage(self, identity: Any) -> Storage:
        name = storage_name(identity)
        if name.rest:
            raise ArtifactError("the pickle is damaged: a persistent id is not a storage")
        storage = self.storages.get((name.kind, name.key))
        return storage or self._read_storage(name)

    def _read_storage(self, name: StorageName) -> Storage:
        member = f"{self.prefix}data/{name.key}"
        if name.kind not in STORAGES or member not in self.archive.names:
            raise ArtifactError(f"it has no storage {member!r} of {name.kind}")
        check_bytes(name, member, self.archive.size(member))
        kind = element_type(name, member)
        storage = Storage(types.decode(self.archive.read(member), kind, self.big_endian))
        self.storages[name.kind, name.key] = storage
        return storage
