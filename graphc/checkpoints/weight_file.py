"""Files of weights in every format that is read: the content of a file says which it is, never its name."""

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
    "a safetensors file or the index of its shards, a file of torch.save, a .npz of numpy, a folder with one of these, "
    "or a model file of graphc"
)
_TAR_AT = 257
"""Where the mark of a tar archive stands."""


class WeightFile(NamedTuple):
    """What a file holds."""

    path: str
    """The file itself: of a folder the one that was found in it."""
    format: str
    tree: Any
    """Tensors by name, or what a checkpoint nests around them."""


class _Start(NamedTuple):
    """What a file is told by."""

    place: str
    head: bytes
    size: int


class _Format(NamedTuple):
    """A kind of files."""

    name: str
    fits: Callable[[_Start], bool]
    """Whether a file is of this kind."""
    read: Callable[[str], Any]


def read_weights(path: str | os.PathLike[str]) -> WeightFile:
    """What a file, an index of shards, or a folder holds. Nothing in a file is executed, and sizes are checked before
    memory is taken. Raises ArtifactError for damaged and for other files; OSError."""
    if Path(path).is_dir():
        path = shards.file_of(path, lambda file: format_of(file) is not None)
    place = os.fspath(path)
    kind = format_of(place)
    if kind is None:
        raise ArtifactError(f"{place}: it is no file of weights but {_described(place)}", remedy=_READ)
    return WeightFile(place, kind.name, kind.read(place))


def format_of(path: str | os.PathLike[str]) -> _Format | None:
    """What a file is by its content; None where it is nothing that is read. Raises ArtifactError for what is no regular
    file; OSError."""
    start = _start(path)
    return next((kind for kind in _FORMATS if kind.fits(start)), None)


def _start(path: str | os.PathLike[str]) -> _Start:
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode):
        raise ArtifactError(f"{os.fspath(path)}: it is not a regular file")
    with open(path, "rb") as file:
        return _Start(os.fspath(path), file.read(_HEAD), info.st_size)


def _described(place: str) -> str:
    _, head, size = _start(place)
    if not size:
        return "empty"
    known = next((name for start, name in container.FOREIGN.items() if head.startswith(start)), None)
    if known is None and head[_TAR_AT:].startswith(b"ustar"):
        known = "a tar archive; PyTorch wrote such files before version 0.2, and only PyTorch reads them"
    return known or f"something else, which begins with {head[:8].hex(' ')}"


# ---- the formats


def _is_zip(start: _Start) -> bool:
    return start.head.startswith((b"PK\3\4", b"PK\5\6"))


def _is_npz(start: _Start) -> bool:
    return _is_zip(start) and all(name.endswith(".npy") for name in _members(start.place))


def _members(place: str) -> list[str]:
    with Archive(place) as archive:
        return archive.names


def _is_safetensors(start: _Start) -> bool:
    return start.head[8:9] == b"{" and int.from_bytes(start.head[:8], "little") <= start.size - 8


def _read_safetensors(place: str) -> Any:
    tensors, metadata = read_safetensors(place)
    return _joined(tensors, metadata.get(TREE, ""), place)


def _read_npz(place: str) -> Any:
    arrays = read_npz(place)
    tree = arrays.pop(TREE, np.empty(0, np.uint8)).tobytes().decode("utf-8", "replace")
    return _joined({name: _tensor(f"{place}: {name!r}", a) for name, a in arrays.items()}, tree, place)


def _read_torch(place: str) -> Any:
    if _is_zip(_start(place)) and any(name.endswith("archive_format") for name in _members(place)):
        raise ArtifactError(f"{place}: it is a model of torch.export", remedy="graphc.from_pt2(path)")
    return load_pt(place)


def _read_index(place: str) -> StateDict:
    """The tensors of all shards that an index names."""
    found, owners = StateDict(), {}
    for shard, named in shards.read_index(place).items():
        kind = format_of(shard)
        tensors: Any = None if kind is None or kind.name == INDEX else kind.read(os.fspath(shard))
        if not is_state(tensors):
            raise ArtifactError(f"{place}: {shard.name} holds no tensors by name")
        shards.check_names(place, shard, named, tensors, owners)
        found.update(tensors)
    return found


def _read_model(place: str) -> dict[str, Tensor]:
    return {name: from_numpy(np.array(array)) for name, array in model_content.load(place).weights.items()}


INDEX = "index of shards"
TORCH = "file of torch.save"
_FORMATS = (
    _Format("safetensors", _is_safetensors, _read_safetensors),
    _Format("model file", lambda start: start.head.startswith(container.MAGIC), _read_model),
    _Format("npz", _is_npz, _read_npz),
    _Format(TORCH, lambda start: _is_zip(start) or start.head.startswith(b"\x80"), _read_torch),
    _Format(INDEX, lambda start: start.head.lstrip().startswith(b"{"), _read_index),
)
"""In the order in which they are tried: a safetensors file begins with a number, which may look like other marks."""


def is_state(value: Any) -> bool:
    """Whether a value is a dictionary of names and tensors."""
    return isinstance(value, dict) and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in value.items())


def _joined(tensors: dict[str, Tensor], tree: str, place: str) -> Any:
    try:
        return join(tensors, tree)
    except ArtifactError as error:
        error.what = f"{place}: {error.what}"
        raise


def _tensor(place: str, array: np.ndarray) -> Tensor:
    if array.dtype not in [d.numpy for d in ALL]:
        raise ArtifactError(f"{place} has element type {array.dtype}", remedy="numpy.float32, for example")
    return from_numpy(array)
