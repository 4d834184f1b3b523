"""Files of weights in every supported format, recognized by content, never by name."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import ALL
from graphc.base.errors import ArtifactError
from graphc.checkpoints import shards
from graphc.checkpoints.pt_file import load_pt
from graphc.checkpoints.safetensors_file import read_safetensors
from graphc.checkpoints.tree import TREE, join
from graphc.files import container, model_content
from graphc.files.archive import Archive
from graphc.files.numpy_file import read_npz
from graphc.nn.module_state import StateDict
from graphc.tensors.creation import from_numpy
from graphc.tensors.tensor import Tensor

_HEAD = 512
_READ = (
    "pass a safetensors file or the index of its shards, a file of torch.save, a .npz of numpy, a folder with one of "
    "these, or a model file of graphc"
)
_TAR_AT = 257
"""Offset of the magic bytes of a tar archive."""


class WeightFile(NamedTuple):
    """Content of a file of weights."""

    path: str
    """The file itself; for a folder, the file in it."""
    format: str
    tree: Any
    """Tensors by name, or a nested checkpoint."""


class _Start(NamedTuple):
    """Facts about a file that determine its format."""

    path: str
    head: bytes
    size: int


class _Format(NamedTuple):
    """File format: its name, a test for it, and its reader."""

    name: str
    fits: Callable[[_Start], bool]
    """Return whether a file has this format."""
    read: Callable[[str], Any]


def read_weights(path: str | os.PathLike[str]) -> WeightFile:
    """Return the content of a file, an index of shards, or a folder.

    Nothing in a file is executed, and sizes are checked before memory is allocated. Raises ArtifactError for damaged
    and other files; OSError.
    """
    if Path(path).is_dir():
        path = shards.file_of(path, lambda file: format_of(file) is not None)
    name = os.fspath(path)
    kind = format_of(name)
    if kind is None:
        raise ArtifactError(f"{name}: not a file of weights, but {_described(name)}", remedy=_READ)
    return WeightFile(name, kind.name, kind.read(name))


def format_of(path: str | os.PathLike[str]) -> _Format | None:
    """Return the format of a file by its content; None if it is unknown. Raises ArtifactError unless it is a regular
    file; OSError."""
    start = _start(path)
    return next((kind for kind in _FORMATS if kind.fits(start)), None)


def _start(path: str | os.PathLike[str]) -> _Start:
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode):
        raise ArtifactError(f"{os.fspath(path)}: it is not a regular file")
    with open(path, "rb") as file:
        return _Start(os.fspath(path), file.read(_HEAD), info.st_size)


def _described(path: str) -> str:
    _, head, size = _start(path)
    if not size:
        return "empty"
    kind = next((name for start, name in container.FOREIGN.items() if head.startswith(start)), None)
    if kind is None and head[_TAR_AT:].startswith(b"ustar"):
        kind = "a tar archive; PyTorch wrote such files before version 0.2, and only PyTorch reads them"
    return kind or f"a file of unknown format (first bytes {head[:8].hex(' ')})"


# ---- the formats


def _is_zip(start: _Start) -> bool:
    return start.head.startswith((b"PK\3\4", b"PK\5\6"))


def _is_npz(start: _Start) -> bool:
    return _is_zip(start) and all(name.endswith(".npy") for name in _members(start.path))


def _members(path: str) -> list[str]:
    with Archive(path) as archive:
        return archive.names


def _is_safetensors(start: _Start) -> bool:
    return start.head[8:9] == b"{" and int.from_bytes(start.head[:8], "little") <= start.size - 8


def _read_safetensors(path: str) -> Any:
    tensors, metadata = read_safetensors(path)
    return _joined(tensors, metadata.get(TREE, ""), path)


def _read_npz(path: str) -> Any:
    arrays = read_npz(path)
    tree = arrays.pop(TREE, np.empty(0, np.uint8)).tobytes().decode("utf-8", "replace")
    return _joined({name: _tensor(f"{path}: {name!r}", a) for name, a in arrays.items()}, tree, path)


def _read_torch(path: str) -> Any:
    if _is_zip(_start(path)) and any(name.endswith("archive_format") for name in _members(path)):
        raise ArtifactError(f"{path}: it is a model of torch.export", remedy="call graphc.from_pt2(path)")
    return load_pt(path)


def _read_index(path: str) -> StateDict:
    """Read the tensors of all shards of an index."""
    state, owners = StateDict(), {}
    for shard, named in shards.read_index(path).items():
        kind = format_of(shard)
        tensors: Any = None if kind is None or kind.name == INDEX else kind.read(os.fspath(shard))
        if not is_state(tensors):
            raise ArtifactError(f"{path}: {shard.name} is not a dictionary of names and tensors")
        shards.check_names(path, shard, named, tensors, owners)
        state.update(tensors)
    return state


def _read_model(path: str) -> dict[str, Tensor]:
    return {name: from_numpy(np.array(array)) for name, array in model_content.load(path).weights.items()}


INDEX = "index of shards"
TORCH = "file of torch.save"
_FORMATS = (
    _Format("safetensors", _is_safetensors, _read_safetensors),
    _Format("model file", lambda start: start.head.startswith(container.MAGIC), _read_model),
    _Format("npz", _is_npz, _read_npz),
    _Format(TORCH, lambda start: _is_zip(start) or start.head.startswith(b"\x80"), _read_torch),
    _Format(INDEX, lambda start: start.head.lstrip().startswith(b"{"), _read_index),
)
"""Formats in the order of the checks: a safetensors file begins with a number that may look like another magic."""


def is_state(value: Any) -> bool:
    """Return whether a value is a dictionary of names and tensors."""
    return isinstance(value, dict) and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in value.items())


def _joined(tensors: dict[str, Tensor], tree: str, path: str) -> Any:
    try:
        return join(tensors, tree)
    except ArtifactError as error:
        error.what = f"{path}: {error.what}"
        raise


def _tensor(label: str, array: np.ndarray) -> Tensor:
    if array.dtype not in [d.numpy for d in ALL]:
        raise ArtifactError(
            f"{label} has element type {array.dtype}", remedy="convert it, for example to numpy.float32"
        )
    return from_numpy(array)
